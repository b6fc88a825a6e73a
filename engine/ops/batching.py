"""vmap: a function of single examples turned into one of batches, example by example."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import draws, lazy, tape
from engine import layout as layouts
from engine.errors import TensorRuntimeError
from engine.foreign import exchange
from engine.registry import F, function
from engine.tensor import Tensor, alias
from engine.trees import Tree, build, flatten, spread

if TYPE_CHECKING:
    from collections.abc import Callable


def _name_of(f: Any) -> str:
    return str(getattr(f, "name", None) or getattr(f, "__name__", "function"))


class _Batch:
    """The mapped arguments of one call: leaves with the dimension each is mapped over."""

    __slots__ = ("dims", "form", "leaves", "size")

    def __init__(self, f: Any, in_dims: Any, args: tuple[Any, ...]):
        name = _name_of(f)
        called = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
        if type(in_dims) is not int and not isinstance(in_dims, tuple):
            raise ValueError(
                f"{called}expected `in_dims` to be int or a (potentially nested) tuple matching "
                f"the structure of inputs, got: {type(in_dims)}."
            )
        if not args:
            raise ValueError(
                f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you "
                "are trying to vmap over a function with no inputs. The latter is unsupported."
            )
        self.leaves, self.form = flatten(args)
        dims = spread(in_dims, self.form)
        if dims is None:
            raise ValueError(
                f"{called}in_dims is not compatible with the structure of `inputs`. in_dims has "
                f"structure {flatten(in_dims)[1]} but inputs has structure {self.form}."
            )
        self.dims = [_check_dim(d, x, called) for d, x in zip(dims, self.leaves, strict=True)]
        sizes = [
            x.layout.shape[d] for d, x in zip(self.dims, self.leaves, strict=True) if d is not None
        ]
        if not sizes:
            raise ValueError("vmap: Expected at least one Tensor to vmap over")
        if any(size != sizes[0] for size in sizes):
            raise ValueError(
                "vmap: Expected all tensors to have the same size in the mapped dimension, got "
                f"sizes {sizes} for the mapped dimension"
            )
        self.size = sizes[0]

    def example(self, at: int) -> Any:
        """The arguments of one call."""
        return build(
            self.form,
            [
                x if d is None else x.select(d, at)
                for d, x in zip(self.dims, self.leaves, strict=True)
            ],
        )

    def stand_in(self) -> Any:
        """Arguments of the shape that an example of an empty batch would have."""
        return build(
            self.form,
            [
                x if d is None else x.new_zeros((*x.layout.shape[:d], *x.layout.shape[d + 1 :]))
                for d, x in zip(self.dims, self.leaves, strict=True)
            ],
        )


def _check_dim(dim: Any, x: Any, called: str) -> int | None:
    if dim is None:
        return None
    if type(dim) is not int:
        raise ValueError(
            f"{called}Got in_dim={dim} for an input but in_dim must be either an integer "
            "dimension or None."
        )
    if not isinstance(x, Tensor):
        raise ValueError(
            f"{called}Got in_dim={dim} for an input but the input is of type {type(x)}. We cannot "
            "vmap over non-Tensor arguments, please use None as the respective in_dim"
        )
    ndim = x.layout.ndim
    if not -ndim <= dim < ndim:
        raise ValueError(
            f"{called}Got in_dim={dim} for some input, but that input is a Tensor of "
            f"dimensionality {ndim} so expected in_dim to satisfy -{ndim} <= in_dim < {ndim}."
        )
    return dim % ndim


def _out_dims(f: Any, out_dims: Any, form: Tree) -> list[Any]:
    name = _name_of(f)
    for dim in flatten(out_dims)[0]:
        if dim is not None and type(dim) is not int:
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a "
                "python collection of ints representing where in the outputs the vmapped "
                "dimension should appear."
            )
    if form.kind is None and isinstance(out_dims, tuple) and len(out_dims) == 1:
        return [out_dims[0]]
    dims = spread(out_dims, form)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with "
            f"the structure of `outputs`. out_dims has structure {flatten(out_dims)[1]} but "
            f"outputs has structure {form}."
        )
    return dims


def _joined(f: Any, rows: list[Any], dim: int | None) -> Any:
    """The results of all examples as one tensor."""
    first = rows[0]
    name = _name_of(f)
    if dim is None:
        if isinstance(first, Tensor) and any(row is not first for row in rows):
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
            )
        return first
    if not isinstance(first, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(first)}. Did "
            "you mean to set out_dims= to None for output?"
        )
    ndim = first.layout.ndim
    if not -ndim - 1 <= dim <= ndim:
        F.zeros((0,) * (ndim + 1)).movedim(0, dim)
    whole = _in_place(rows)
    return whole if dim == 0 else whole.movedim(0, dim)


def _in_place(rows: list[Tensor]) -> Tensor:
    """The rows stacked; rows that lie evenly in one memory are shown there, as the one view that
    a function of views makes of the whole batch. Their order in memory stays."""
    first = rows[0]
    if len(rows) > 1 and all(row is first for row in rows):
        return first.unsqueeze(0).expand(len(rows), *first.layout.shape)
    if len(rows) > 1 and not any(tape.requires_grad(row) for row in rows):
        step = rows[1].offset - first.offset
        if step > 0 and all(
            lazy.alike(row, first)
            and row.layout is first.layout
            and row.offset == first.offset + at * step
            for at, row in enumerate(rows)
        ):
            shape = (len(rows), *first.layout.shape)
            return alias(first, layouts.layout(shape, (step, *first.layout.strides)))
    if first.layout.contiguous or not first.layout.dense:
        return F.stack(rows)
    strides = first.layout.strides
    order = sorted(range(len(strides)), key=lambda d: -strides[d])
    back = [order.index(d) + 1 for d in range(len(strides))]
    return F.stack([row.permute(order) for row in rows]).permute(0, *back)


def _check_no_draws(f: Any, args: Any) -> Any:
    """A first call of ``f``, refused if it draws random numbers."""
    before = draws.default.get_state()
    result = f(*args)
    if draws.default.get_state().tobytes() != before.tobytes():
        raise TensorRuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the "
            "'same' or 'different' randomness flags on vmap or perform the randomness operation "
            "out of vmap"
        )
    return result


@function("vmap", "func.vmap")
def vmap(
    func: Any,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that maps ``func`` over a dimension of its arguments and stacks what it gives.

    ``in_dims`` says over which dimension of each argument (None: over none), ``out_dims`` where
    the mapped dimension goes in each result.
    """
    f = exchange.function(func)
    if randomness not in ("error", "different", "same"):
        raise TensorRuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        batch = _Batch(func, in_dims, args)

        def call(*one: Any) -> Any:
            return f(*one, **kwargs)

        if not batch.size:
            leaves, form = flatten(call(*batch.stand_in()))
            dims = _out_dims(func, out_dims, form)
            return build(
                form,
                [
                    _joined(func, [y], d).narrow(d or 0, 0, 0)
                    for y, d in zip(leaves, dims, strict=True)
                ],
            )
        kept = draws.default.get_state() if randomness == "same" else None
        columns: list[list[Any]] = []
        for at in range(batch.size):
            if kept is not None and at:
                draws.default.set_state(kept)
            if randomness == "error" and not at:
                result = _check_no_draws(call, batch.example(0))
            else:
                result = call(*batch.example(at))
            leaves, form = flatten(result)
            if not at:
                dims = _out_dims(func, out_dims, form)
                columns = [[] for _ in leaves]
            for column, leaf in zip(columns, leaves, strict=True):
                column.append(leaf)
        return build(
            form,
            [_joined(func, column, d) for column, d in zip(columns, dims, strict=True)],
        )

    return wrapped
