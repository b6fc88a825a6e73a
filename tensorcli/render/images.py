"""A heat map as a picture for terminals that draw one: kitty's protocol or sixel."""

from __future__ import annotations

from base64 import standard_b64encode
from zlib import compress

import numpy as np

from tensorcli.render.pictures import HEAT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tensorcli.value_results import HeatmapResult

SIDE = 480
"""Pixels of the longer side, about: a cell of the matrix is a square of as many as fit."""

CHUNK = 4096
"""Characters of a picture in one piece, as kitty's protocol has it."""

NOT_FINITE = (255, 0, 0)
LEVELS = 64


def levels(result: HeatmapResult) -> Any:
    """The matrix as numbers of colours, LEVELS for what is not finite."""
    values = np.array(
        [[np.nan if value is None else value for value in row] for row in result.rows]
    )
    low, high = result.minimum, result.maximum
    if low is None or high is None or low == high:
        places = np.full(values.shape, LEVELS // 2)
    else:
        share = np.nan_to_num((values - low) / (high - low))
        places = np.minimum((share * LEVELS).astype(np.int64), LEVELS - 1)
    return np.where(np.isnan(values), LEVELS, places)


def _channels(number: int) -> tuple[int, int, int]:
    """Red, green and blue of a colour of the 256-colour cube."""
    red, green, blue = ((number - 16) // 36, (number - 16) // 6 % 6, (number - 16) % 6)
    return tuple(55 + 40 * part if part else 0 for part in (red, green, blue))  # type: ignore[return-value]  # three


def palette() -> Any:
    """Red, green and blue of each level, between those of HEAT, and of what is not finite."""
    known = np.array([_channels(number) for number in HEAT], dtype=np.float64)
    place = np.linspace(0, len(known) - 1, LEVELS)
    channels = [np.interp(place, np.arange(len(known)), known[:, channel]) for channel in range(3)]
    return np.vstack([np.stack(channels, 1), [NOT_FINITE]]).round().astype(np.uint8)


def enlarged(grid: Any) -> Any:
    """Each cell as a square of pixels."""
    times = max(1, SIDE // max(grid.shape))
    return np.repeat(np.repeat(grid, times, 0), times, 1)


def kitty(result: HeatmapResult) -> str:
    """The picture as kitty's escape sequences: compressed pixels, in pieces."""
    pixels = palette()[enlarged(levels(result))]
    height, width = pixels.shape[:2]
    data = standard_b64encode(compress(pixels.tobytes())).decode("ascii")
    pieces = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
    parts = []
    for number, piece in enumerate(pieces):
        head = f"a=T,q=2,f=24,o=z,s={width},v={height}," if number == 0 else ""
        more = 0 if number == len(pieces) - 1 else 1
        parts.append(f"\x1b_G{head}m={more};{piece}\x1b\\")
    return "".join(parts) + "\n"


def sixel(result: HeatmapResult) -> str:
    """The picture as sixels: bands of six rows, in each a pass for every colour that it has."""
    grid = enlarged(levels(result))
    height, width = grid.shape
    colours = [
        f"#{number};2;{round(r / 2.55)};{round(g / 2.55)};{round(b / 2.55)}"
        for number, (r, g, b) in enumerate(palette().tolist())
    ]
    bands = []
    for top in range(0, height, 6):
        band = grid[top : top + 6]
        weights = (1 << np.arange(len(band)))[:, None]
        passes = [
            f"#{colour}{_runs(((band == colour) * weights).sum(0))}" for colour in np.unique(band)
        ]
        bands.append("$".join(passes))
    return f'\x1bP0;1;0q"1;1;{width};{height}{"".join(colours)}{"-".join(bands)}\x1b\\\n'


def _runs(bits: Any) -> str:
    """Sixels with a count before those that repeat."""
    edges = np.flatnonzero(np.diff(bits)) + 1
    starts = np.concatenate([[0], edges, [len(bits)]])
    parts = []
    for start, end in zip(starts, starts[1:], strict=False):
        sign, count = chr(63 + int(bits[start])), int(end - start)
        parts.append(f"!{count}{sign}" if count > 3 else sign * count)
    return "".join(parts)


PROTOCOLS = {"kitty": kitty, "sixel": sixel}
