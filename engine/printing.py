"""A tensor as PyTorch's text, to the character; it must not know who prints it or where to.

The text depends on the tensor, the print options below and the default dtype, nothing else.
Numbers are formatted once, as Python floats and integers; the texts give the width of their
column, then they are padded and laid out from the innermost dimension outwards, so that depth
costs no recursion and a summarised tensor costs only what it shows.
"""

from __future__ import annotations

import math
from itertools import repeat
from typing import TYPE_CHECKING

from engine import modes
from engine.dtypes import bool_, complex_of, float16, float32, float64, int64
from engine.tensor import ParameterAutograd

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from engine.dtypes import DType
    from engine.tensor import Tensor

PROFILES: dict[str, tuple[int, float, int, int]] = {
    "default": (4, 1000, 3, 80),
    "short": (2, 1000, 2, 80),
    "full": (4, math.inf, 3, 80),
}

PREFIX = "tensor("

# The float dtypes whose tolist() gives Python floats. The others widen to float32 first, exactly.
NATIVE_FLOATS = (float32, float64, float16)


class PrintOptions:
    """The options in force. One instance; `set_printoptions` and `reset_options` write it."""

    __slots__ = ("edgeitems", "linewidth", "precision", "sci_mode", "threshold")

    def __init__(self) -> None:
        self.precision, self.threshold, self.edgeitems, self.linewidth = PROFILES["default"]
        self.sci_mode: bool | None = None


options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change the options that are given.

    As in PyTorch, `sci_mode` goes back to automatic on every call that does not name it, values
    are not checked here, and an unknown profile is ignored.
    """
    if profile in PROFILES:
        chosen = PROFILES[profile]
        options.precision, options.threshold, options.edgeitems, options.linewidth = chosen
    if precision is not None:
        options.precision = precision
    if threshold is not None:
        options.threshold = threshold
    if edgeitems is not None:
        options.edgeitems = edgeitems
    if linewidth is not None:
        options.linewidth = linewidth
    options.sci_mode = sci_mode


def get_options() -> dict[str, Any]:
    """The options as keywords for `set_printoptions`, in the order PyTorch lists them."""
    return {
        "precision": options.precision,
        "threshold": options.threshold,
        "edgeitems": options.edgeitems,
        "linewidth": options.linewidth,
        "sci_mode": options.sci_mode,
    }


def reset_options() -> None:
    """Back to what a fresh process has."""
    set_printoptions(profile="default")


def tensor_text(t: Tensor, *, default_dtype: DType | None = None) -> str:
    """What PyTorch's `repr` gives for this tensor under the present options."""
    shape = t.shape
    dtype = t.dtype
    device = t.device.type
    suffixes = [] if device == "cpu" else [f"device='{t.device}'"]
    if default_dtype is None:
        default_dtype = modes.state.default_dtype

    is_meta = device == "meta"
    if is_meta or 0 in shape:
        # No elements to infer a dtype from, so int64 and bool are named too; a shape of (0,) shows.
        if is_meta or len(shape) != 1:
            suffixes.append(f"size={tuple(shape)}")
        named = dtype is default_dtype
        body = "..." if is_meta else "[]"
    else:
        if not options.edgeitems:
            suffixes.append(f"size={tuple(shape)}")
        named = dtype in (default_dtype, int64, bool_, complex_of(default_dtype))
        body = _elements_text(t)
    if not named:
        suffixes.append(f"dtype=torch.{dtype.name}")

    suffixes.extend(_gradient_suffix(t))
    text = _with_suffixes(PREFIX + body, suffixes)
    return f"Parameter containing:\n{text}" if isinstance(t.ag, ParameterAutograd) else text


def format_tensor_value(
    t: Tensor,
    spec: str,
    *,
    format_item: Callable[[Any, str], str] = format,
) -> str:
    """What `f"{t:spec}"` gives: a 0-d tensor formats its element, any other takes no spec.

    `format_item` formats the Python number; a caller with limits on widths passes its own.
    Raises TypeError for a spec that is not empty on a tensor of one or more dimensions.
    """
    if not t.shape and t.device.type != "meta":
        return format_item(_values(t.array, t.dtype)[0], spec)
    if spec:
        raise TypeError("unsupported format string passed to Tensor.__format__")
    return tensor_text(t)


def _gradient_suffix(t: Tensor) -> list[str]:
    try:
        node = t.grad_fn
    except RuntimeError:
        # A view made and overwritten under no_grad cannot say what its history is.
        return ["grad_fn=<Invalid>"]
    if node is not None:
        return [f"grad_fn=<{node.name.rpartition('::')[2]}>"]
    return ["requires_grad=True"] if t.requires_grad else []


def _with_suffixes(text: str, suffixes: list[str]) -> str:
    if not suffixes:
        return text + ")"
    parts = [text]
    # PyTorch counts the last line two longer than it is when it is the first, one when it is not.
    used = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if used + len(suffix) + 2 > options.linewidth:
            parts.append(",\n" + " " * len(PREFIX) + suffix)
            used = len(PREFIX) + len(suffix)
        else:
            parts.append(", " + suffix)
            used += len(suffix) + 2
    parts.append(")")
    return "".join(parts)


def _elements_text(t: Tensor) -> str:
    """The part inside `tensor(…)` for a tensor with at least one element."""
    shape: tuple[int, ...] = t.shape
    array = t.array
    gaps: tuple[int | None, ...] = (None,) * len(shape)
    if shape and math.prod(shape) > options.threshold:
        if not options.edgeitems:
            return "[...]"
        array, shape, gaps = _summary(array, shape, options.edgeitems)

    texts, width = _element_texts(_values(array, t.dtype), t.dtype)
    return _layout_text(texts, shape, gaps, width) if shape else texts[0]


def _summary(
    array: Any, shape: tuple[int, ...], edge: int
) -> tuple[Any, tuple[int, ...], tuple[int | None, ...]]:
    """The elements that are shown, their shape, and where in each dimension the ellipsis goes.

    The shown places of all dimensions form one open mesh: a single gather copies nothing else.
    """
    if edge < 0 and len(shape) > 1:
        # In one dimension PyTorch shows what slices by a negative count give.
        raise RuntimeError("stack expects a non-empty TensorList")
    mesh: list[Any] = []
    kept: list[int] = []
    gaps: list[int | None] = []
    for dim, size in enumerate(shape):
        places: Sequence[int] = range(size)
        gap = None
        if size > 2 * edge:
            head = places[:edge]
            gap = len(head)
            places = [*head, *places[-edge:]]
        kept.append(len(places))
        gaps.append(gap)
        column: list[Any] = list(places)
        for _ in range(len(shape) - dim - 1):
            column = [[place] for place in column]
        mesh.append(column)
    return (array[tuple(mesh)] if kept != [0] else array[:0]), tuple(kept), tuple(gaps)


def _values(array: Any, dtype: DType) -> list[Any]:
    """The elements in order as Python numbers."""
    if dtype.is_floating_point and dtype not in NATIVE_FLOATS:
        array = array.astype("float32")
    flat: list[Any] = array.reshape(-1).tolist()
    return flat


def _element_texts(values: list[Any], dtype: DType) -> tuple[list[str], int]:
    """Every element's text, padded to its column, and the width that line breaking reckons with."""
    if dtype.is_floating_point:
        texts, width = _float_texts(values)
        return _padded(texts, width), width
    if dtype.is_complex:
        real, real_width = _float_texts([value.real for value in values])
        imag, imag_width = _float_texts([value.imag for value in values])
        joined = [
            a + b + "j" if b[0] == "-" else a + "+" + b + "j"
            for a, b in zip(_padded(real, real_width), imag, strict=True)
        ]
        return joined, real_width + imag_width + 1
    texts = list(map(str, values))
    width = max(map(len, texts), default=1)
    return _padded(texts, width), width


def _padded(texts: list[str], width: int) -> list[str]:
    return list(map(str.rjust, texts, repeat(width)))


def _float_texts(values: list[float]) -> tuple[list[str], int]:
    """Texts of one precision, and the width of the widest finite value that is not zero.

    Zeros, infinities and NaN do not count towards the width, so they may stick out of it: PyTorch
    reckons that way.
    """
    # x - x is 0.0 for finite x only: the one test that needs no call.
    telling = [x for x in values if x and x - x == 0.0]
    if not telling:
        return [_whole_text(x) for x in values], 1
    sizes = list(map(abs, telling))
    low, high = min(sizes), max(sizes)
    scientific = options.sci_mode
    if scientific is None:
        scientific = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4

    if scientific:
        texts = list(map(format, values, repeat(f".{options.precision}e")))
    elif all(map(float.is_integer, telling)):
        texts = list(map(_whole_text, values))
    else:
        texts = list(map(format, values, repeat(f".{options.precision}f")))
    if len(telling) == len(values):
        return texts, max(map(len, texts))
    counted = [len(s) for s, x in zip(texts, values, strict=True) if x and x - x == 0.0]
    return texts, max(counted)


def _whole_text(x: float) -> str:
    # The point says that the dtype is a float's; infinities and NaN say so themselves.
    return f"{x:.0f}." if x - x == 0.0 else f"{x:.0f}"


def _layout_text(
    texts: list[str], shape: tuple[int, ...], gaps: tuple[int | None, ...], width: int
) -> str:
    """Brackets, commas, line breaks and ellipses around the elements, innermost dimension first."""
    last = len(shape) - 1
    indent = len(PREFIX) + last
    per_line = max(1, math.floor((options.linewidth - indent) / (width + 2)))
    new_line = ",\n" + " " * (indent + 1)
    # In a row the ellipsis has a space of its own, and line breaking counts it as an element.
    rows = _groups(texts, shape[last], gaps[last], " ...")
    blocks = [_row_text(row, per_line, new_line) for row in rows]
    for dim in range(last - 1, -1, -1):
        between = "," + "\n" * (last - dim) + " " * (len(PREFIX) + dim + 1)
        groups = _groups(blocks, shape[dim], gaps[dim], "...")
        blocks = ["[" + between.join(group) + "]" for group in groups]
    return blocks[0]


def _groups(items: list[str], size: int, gap: int | None, ellipsis: str) -> list[list[str]]:
    """The items in groups of `size`, each with the ellipsis at `gap` if there is one."""
    if gap is None:
        return [items[i : i + size] for i in range(0, len(items), size)]
    return [
        [*items[i : i + gap], ellipsis, *items[i + gap : i + size]]
        for i in range(0, len(items) or 1, size or 1)
    ]


def _row_text(row: list[str], per_line: int, new_line: str) -> str:
    if len(row) <= per_line:
        return "[" + ", ".join(row) + "]"
    lines = [", ".join(row[i : i + per_line]) for i in range(0, len(row), per_line)]
    return "[" + new_line.join(lines) + "]"
