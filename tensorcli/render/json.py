"""Results as JSON Lines, schema 1: one object per result, strict JSON, no escape codes.

Objects are written as text directly: a tensor's elements need the shortest decimal of their own
dtype, which json.dumps cannot give.
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring_ascii as quoted

from engine.tape import shown_node
from tensorcli import results
from tensorcli.render.numbers import array_text, float_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from tensorcli.diagnostics import Diagnostic

SCHEMA = 1
MOST_ELEMENTS = 1_000_000
DEEPEST = 100
"""Lists nested deeper, or in themselves, have a null for what is below: readers have limits too."""


def record(result: results.Result, file: str | None = None, full: bool = False) -> str:
    """One result as one line, without the newline."""
    kind, fields = RECORDS.get(type(result), _finding)(result, full)
    head = [f'"schema":{SCHEMA}', f'"kind":"{kind}"']
    if file is not None:
        head.append(f'"file":{quoted(file)}')
    if not fields.startswith('"line"'):
        head.append(f'"line":{plain(result.line)}')
    return "{" + ",".join(head) + "," + fields + "}"


def end_record(file: str) -> str:
    return f'{{"schema":{SCHEMA},"kind":"end","file":{quoted(file)}}}'


def plain(value: object) -> str:
    """Bare JSON of None, bool, int, float, str, and lists and dicts of them."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return float_text(float(value))  # numpy's float64 is a float with another repr
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{quoted(k)}:{plain(v)}" for k, v in value.items()) + "}"
    assert isinstance(value, list | tuple), type(value)
    return "[" + ",".join(map(plain, value)) + "]"


def members(**values: object) -> str:
    return ",".join(f'"{name}":{plain(value)}' for name, value in values.items())


# -- tensors and other values ----------------------------------------------------------------


def tensor_fields(tensor: Any, full: bool) -> str:
    node = shown_node(tensor)
    head = members(
        dtype=tensor.dtype.name,
        shape=tensor.layout.shape,
        stride=tensor.layout.strides,
        storage_offset=int(tensor.offset),
        contiguous=bool(tensor.layout.contiguous),
        device=str(tensor.device),
        requires_grad=bool(tensor.requires_grad),
        is_leaf=node is None,
        grad_fn=None if node is None else node.name,
    )
    if tensor.array is None:
        return head + ',"data":null'
    if tensor.layout.numel > MOST_ELEMENTS and not full:
        return head + f',"data":null,"data_omitted":{tensor.layout.numel}'
    return f'{head},"data":{array_text(host_array(tensor.array), tensor.dtype.name)}'


def host_array(array: Any) -> Any:
    """The array in this process's memory, wherever its device is."""
    fetch = getattr(array, "get", None)
    return array if fetch is None else fetch()


class Writer:
    """Writes values; remembers what it is inside of, for lists that contain themselves."""

    __slots__ = ("full", "inside")

    def __init__(self, full: bool) -> None:
        self.full = full
        self.inside: set[int] = set()

    def nested(self, value: object) -> str:
        """Inside containers int, finite float, bool, str and None are bare, others are objects."""
        if value is None or value.__class__ in (bool, int, str):
            return plain(value)
        if isinstance(value, float) and value - value == 0.0:
            return plain(value)
        return self.object(value)

    def object(self, value: object) -> str:
        if is_tensor(value):
            return '{"kind":"tensor",' + tensor_fields(value, self.full) + "}"
        return '{"kind":"value",' + self.fields(value) + "}"

    def fields(self, value: Any) -> str:
        name = type_name(value)
        body = BODIES.get(name)
        if body is not None:
            return f'"type":{quoted(name)},"value":{body(value)}'
        if isinstance(value, tuple | list | dict | set | frozenset):
            return self.container(value, name)
        if isinstance(value, bool | int | str | float):
            return f'"type":{quoted(name)},"value":{plain(value)}'
        return f'"type":{quoted(name)},"value":{opaque(value)}'

    def container(self, value: Any, name: str) -> str:
        if id(value) in self.inside or len(self.inside) >= DEEPEST:
            return f'"type":{quoted(name)},"value":null'
        self.inside.add(id(value))
        try:
            fields = getattr(value, "_fields", None) if isinstance(value, tuple) else None
            head = "" if fields is None else f',"fields":{plain(list(fields))}'
            return f'"type":{quoted(name)}{head},"value":{self.items(value)}'
        finally:
            self.inside.discard(id(value))

    def items(self, value: Any) -> str:
        parts: Iterable[str]
        if isinstance(value, dict):
            parts = [f"[{self.nested(k)},{self.nested(v)}]" for k, v in value.items()]
        elif isinstance(value, set | frozenset):
            parts = sorted(map(self.nested, value))
        else:
            parts = map(self.nested, value)
        return "[" + ",".join(parts) + "]"


def is_tensor(value: object) -> bool:
    from engine.tensor import Tensor

    return isinstance(value, Tensor)


_TYPE_NAMES = {
    "NDArray": "ndarray",
    "NoneType": "NoneType",
    "Function": "function",
    "MemoryFormat": "memory_format",
    "StorageLayout": "layout",
    "TensorType": "type",
    "Layout": "layout",
}


def type_name(value: object) -> str:
    """The type's name as PyTorch and Python have it."""
    kind = type(value)
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return f"return_types.{kind.__name__.rpartition('.')[2]}"
    name = kind.__name__.rpartition(".")[2]
    return _TYPE_NAMES.get(name, name)


def _complex_body(value: complex) -> str:
    return f"[{float_text(value.real)},{float_text(value.imag)}]"


def _without_module(value: object) -> str:
    return quoted(str(value).removeprefix("torch."))


BODIES: dict[str, Callable[[Any], str]] = {
    "complex": _complex_body,
    "dtype": _without_module,
    "device": _without_module,
    "layout": _without_module,
    "memory_format": _without_module,
    "Size": lambda value: plain([int(size) for size in value]),
}


def opaque(value: object) -> str:
    """The text of an object without a form of its own; null where that is an address."""
    from tensorcli.language.value_text import repr_of

    text = repr_of(value)
    return "null" if re.search(r"0x[0-9a-f]+|<", text) else quoted(text)


# -- results ---------------------------------------------------------------------------------

Fields = tuple[str, str]


def _tensor(result: results.TensorResult, full: bool) -> Fields:
    return "tensor", tensor_fields(result.value, full)


def _value(result: results.ValueResult, full: bool) -> Fields:
    return "value", Writer(full).fields(result.value)


def _print(result: results.PrintResult, full: bool) -> Fields:
    return "print", f'"text":{quoted(result.text.removesuffix(chr(10)))}'


def _warning(result: results.WarningResult, full: bool) -> Fields:
    return "warning", f'"message":{quoted(result.message)}'


def _hint(result: results.HintResult, full: bool) -> Fields:
    hint = result.diagnostic
    return "hint", members(
        **_place(hint.span),
        code=hint.code,
        message=hint.message,
        fixes=[_fix(fix) for fix in hint.fixes],
    )


def _error(result: results.ErrorResult, full: bool) -> Fields:
    return "error", diagnostic_fields(result.diagnostic)


def diagnostic_fields(diagnostic: Diagnostic) -> str:
    return members(
        **_place(diagnostic.span),
        type=diagnostic.type,
        message=diagnostic.message,
        code=diagnostic.code,
        labels=[{**_place(label.span), "text": label.text} for label in diagnostic.labels],
        notes=list(diagnostic.notes),
        fixes=[_fix(fix) for fix in diagnostic.fixes],
        **({"shapes": [_shape(row) for row in diagnostic.shapes]} if diagnostic.shapes else {}),
    )


def _place(span: Any) -> dict[str, object]:
    names = ("line", "column", "end_line", "end_column")
    return {name: None if span is None else getattr(span, name) for name in names}


def _fix(fix: Any) -> dict[str, object]:
    if isinstance(fix, str):
        return {"expr": fix, "shape": None}
    return {"expr": fix.expr, "shape": None if fix.shape is None else list(fix.shape)}


def _shape(row: Any) -> dict[str, object]:
    return {"text": row.text, "shape": list(row.shape), "dim": row.dim}


def _layout(result: results.LayoutResult, full: bool) -> Fields:
    names = type(result).__slots__
    return "layout", members(**{name: _parts(getattr(result, name)) for name in names})


def _gradients(result: results.GradientsResult, full: bool) -> Fields:
    return "gradients", members(rows=[_slots(row) for row in result.rows])


def _precision(result: results.PrecisionResult, full: bool) -> Fields:
    rows = [_slots(row) for row in result.rows]
    return "precision", members(source_dtype=result.source_dtype, rows=rows)


def _broadcast(result: results.BroadcastResult, full: bool) -> Fields:
    rows = [_slots(row) for row in result.rows]
    return "broadcast", members(rows=rows, shape=result.shape, failing_dim=result.failing_dim)


_ROWS = (
    results.Summary,
    results.GradientRow,
    results.PrecisionRow,
    results.ShapeRow,
)


def _finding(result: results.Finding, full: bool) -> Fields:
    if result.kind == "graph_document":
        from tensorcli.render.graph_documents import document

        return result.kind, members(**document(result))
    slots: tuple[str, ...] = tuple(type(result).__slots__)
    names = [name for name in slots if name not in ("line", "shown")]
    return result.kind, members(**{name: _parts(getattr(result, name)) for name in names})


def _parts(value: Any) -> object:
    """What a finding is made of: records, in tuples, as dicts in lists."""
    if isinstance(value, tuple):
        return [_parts(item) for item in value]
    if hasattr(type(value), "__dataclass_fields__"):
        return {name: _parts(getattr(value, name)) for name in type(value).__slots__}
    return _slots(value)


def _slots(value: Any) -> object:
    """A slotted record as a dict, its parts likewise."""
    if isinstance(value, _ROWS):
        return {name: _slots(getattr(value, name)) for name in type(value).__slots__}
    return value


RECORDS: dict[type, Callable[[Any, bool], Fields]] = {
    results.TensorResult: _tensor,
    results.ValueResult: _value,
    results.PrintResult: _print,
    results.WarningResult: _warning,
    results.HintResult: _hint,
    results.ErrorResult: _error,
    results.LayoutResult: _layout,
    results.GradientsResult: _gradients,
    results.PrecisionResult: _precision,
    results.BroadcastResult: _broadcast,
}
