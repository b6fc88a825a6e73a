"""Pictures in a terminal as lines in pieces: histograms, plots, heat maps; in ASCII on request."""

from __future__ import annotations

from tensorcli.render.explanation import number
from tensorcli.render.lines import joined, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorcli import value_results as found
    from tensorcli.render.lines import Line

EIGHTHS = " ▁▂▃▄▅▆▇█"
WIDE_EIGHTHS = " ▏▎▍▌▋▊▉█"
SHADES = " .:-=+*#%@"
HEIGHT = 10

# The colours of a heat map from low to high in the 256-colour cube: dark blue to yellow, even to
# eyes that tell red from green badly.
HEAT = (17, 18, 19, 20, 26, 32, 38, 44, 43, 78, 114, 150, 186, 222, 228, 230)


def bars(counts: Sequence[int]) -> str:
    """A histogram of one line: a block per part, none for an empty one."""
    largest = max(counts, default=0)
    if largest == 0:
        return ""
    return "".join(EIGHTHS[-(-8 * count // largest)] for count in counts)


def histogram_lines(result: found.HistogramResult, width: int) -> list[Line]:
    """A bar for each part of the range."""
    lines: list[Line] = []
    if result.counts:
        edges = [number(edge) for edge in result.edges]
        longest = max(map(len, edges))
        most = max(result.counts)
        figures = len(str(most))
        room = max(width - 2 * longest - figures - 7, 4)
        for i, count in enumerate(result.counts):
            first, last = edges[i], edges[i + 1] if len(edges) > i + 1 else edges[i]
            title = f"{first:>{longest}} .. {last:>{longest}}  "
            bar = _bar(count / most * room, result.ascii)
            lines.append([(title, "head"), (f"{count:>{figures}} ", ""), (bar, "name")])
    else:
        lines.append([("no finite values", "dim")])
    for name, count in (("NaN", result.nan), ("Inf", result.inf)):
        if count:
            lines.append([(f"{name}  {count}", "bad")])
    if result.sampled < result.count:
        lines.append([(f"a sample of {result.sampled} of {result.count} elements", "dim")])
    return lines


def _bar(length: float, ascii: bool) -> str:
    if ascii:
        return "#" * max(round(length), 1 if length else 0)
    eighths = max(round(8 * length), 1 if length else 0)
    return "█" * (eighths // 8) + WIDE_EIGHTHS[eighths % 8].strip()


def plot_lines(result: found.PlotResult, width: int) -> list[Line]:
    """A line over columns, in dots of two by four where there is Unicode."""
    low, high = result.minimum, result.maximum
    if low is None or high is None:
        return [[("no finite values", "dim")]]
    labels = number(high), number(low)
    margin = max(map(len, labels)) + 1
    columns = max(width - margin - 1, 8)
    per_cell = (1, 2) if result.ascii else (2, 4)
    rows = _dots(result.values, low, high, columns, per_cell)
    lines: list[Line] = []
    for i, row in enumerate(rows):
        label = labels[0] if i == 0 else labels[1] if i == len(rows) - 1 else ""
        lines.append([(f"{label:>{margin - 1}} ", "head"), ("|", "dim"), (row.rstrip(), "name")])
    last = result.count - 1
    ends = f"0{str(last):>{max(min(columns, _used(result, columns, per_cell[0])) - 1, 1)}}"
    lines.append([(" " * (margin + 1) + ends, "head")])
    grouped = len(result.values) < result.count
    if grouped:
        lines.append([(f"means of {len(result.values)} groups of {result.count} values", "dim")])
    return lines


def _used(result: found.PlotResult, columns: int, across: int) -> int:
    return min(columns, -(-_stretch(len(result.values), columns * across) // across))


def _stretch(count: int, room: int) -> int:
    """How many dots wide a line of so many points is: each as often as there is room."""
    return min(room, count * max(1, room // max(count, 1)))


BRAILLE = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def _dots(
    values: Sequence[float | None],
    low: float,
    high: float,
    columns: int,
    per_cell: tuple[int, int],
) -> list[str]:
    across, down = per_cell
    width = _stretch(len(values), columns * across)
    height = HEIGHT * down
    span = high - low
    grid = [[0] * columns for _ in range(HEIGHT)]
    previous: int | None = None
    for x in range(width):
        value = _between(values, x * (len(values) - 1) / max(width - 1, 1))
        if value is None:
            previous = None
            continue
        level = 0 if span == 0 else round((value - low) / span * (height - 1))
        y = height - 1 - level
        start = y if previous is None else previous
        for dot in range(min(start, y), max(start, y) + 1):
            if across == 1:
                grid[dot // down][x] |= 1 << (dot % down)
            else:
                grid[dot // down][x // 2] |= BRAILLE[dot % 4][x % 2]
        previous = y
    if across == 1:
        return ["".join(" '.|"[cell] for cell in row) for row in grid]
    return ["".join(chr(0x2800 + cell) if cell else " " for cell in row) for row in grid]


def _between(values: Sequence[float | None], place: float) -> float | None:
    """The value of the line at a place between two points."""
    index = int(place)
    first = values[index]
    if index + 1 >= len(values) or place == index:
        return first
    second = values[index + 1]
    if first is None or second is None:
        return first if place - index < 0.5 else second
    return first + (second - first) * (place - index)


def heatmap_lines(result: found.HeatmapResult, width: int) -> list[Line]:
    """Two rows of the matrix in a line of half blocks; shades in ASCII; a legend below."""
    low, high = result.minimum, result.maximum
    lines: list[Line] = []
    rows = [_narrowed(row, width) for row in result.rows]
    if result.ascii:
        for row in rows:
            shades = "".join(SHADES[_level(value, low, high, len(SHADES))] if value is not None
                             else "?" for value in row)  # fmt: skip
            lines.append([(shades, "")])
    else:
        for i in range(0, len(rows), 2):
            below = rows[i + 1] if i + 1 < len(rows) else (None,) * len(rows[i])
            has_below = i + 1 < len(rows)
            line: Line = []
            for top, bottom in zip(rows[i], below, strict=True):
                line.append(("▀", _colours(top, bottom, low, high, has_below)))
            lines.append(line)
    return lines + legend(result, rows, width)


def legend(
    result: found.HeatmapResult, rows: Sequence[Sequence[float | None]], width: int
) -> list[Line]:
    """What the colours stand for, and how the picture was made smaller."""
    low, high = result.minimum, result.maximum
    facts = [f"{visible(result.name)} {list(result.shape)}"]
    if low is not None and high is not None:
        facts.append(f"{number(low)} .. {number(high)}")
    shown = len(rows), len(rows[0])
    whole = result.shape if len(result.shape) == 2 else (1, *result.shape)
    if shown != tuple(whole):
        facts.append(f"means of blocks, {shown[0]} by {shown[1]}")
    if any(value is None for row in result.rows for value in row):
        facts.append("not finite: " + ("?" if result.ascii else "red"))
    return joined([(fact, "dim") for fact in facts], width)


def _narrowed(row: Sequence[float | None], width: int) -> list[float | None]:
    """A row in at most so many columns: means of neighbours, none where one of them is none."""
    if len(row) <= width:
        return list(row)
    found: list[float | None] = []
    for i in range(width):
        part = row[i * len(row) // width : (i + 1) * len(row) // width]
        known = [value for value in part if value is not None]
        found.append(sum(known) / len(known) if len(known) == len(part) else None)
    return found


def _level(value: float, low: float | None, high: float | None, levels: int) -> int:
    if low is None or high is None or high == low:
        return levels // 2
    return min(int((value - low) / (high - low) * levels), levels - 1)


def _colour(value: float | None, low: float | None, high: float | None) -> str:
    return "color(196)" if value is None else f"color({HEAT[_level(value, low, high, len(HEAT))]})"


def _colours(
    top: float | None, bottom: float | None, low: float | None, high: float | None, has_below: bool
) -> str:
    upper = _colour(top, low, high)
    return f"{upper} on {_colour(bottom, low, high)}" if has_below else upper
