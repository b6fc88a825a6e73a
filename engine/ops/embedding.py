"""Tables looked up by number: embedding, embedding_bag, one_hot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes, tape
from engine.errors import DtypeError, EngineError, TensorIndexError, TensorRuntimeError
from engine.kinds import composite, kernel, made
from engine.kinds.functional import functional
from engine.kinds.native import Native
from engine.kinds.underived import unlisted
from engine.modes import state
from engine.registry import F, function, ops

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.tensor import Tensor


class PaddingIndexError(EngineError, AssertionError):
    """PyTorch raises AssertionError here."""

    code = "index"


def check_indices(indices: Tensor, name: str, what: str = "indices", place: int = 1) -> None:
    """Refuse numbers that are no row numbers."""
    if indices.dtype not in (dtypes.int64, dtypes.int32):
        known = f"torch.{indices.dtype.title}Tensor"
        if indices.dtype.is_bool:
            known = "CPUBoolType"
        raise DtypeError(
            f"Expected tensor for argument #{place} '{what}' to have one of the following scalar "
            f"types: Long, Int; but got {known} instead (while checking arguments for {name})"
        )


def _check_range(xp: Any, index: Any, rows: int) -> None:
    if index.size and (int(index.min()) < 0 or int(index.max()) >= rows):
        raise TensorIndexError("index out of range in self")


def table_gradient(
    g: Tensor, indices: Tensor, shape: tuple[int, ...], padding_idx: int, by_frequency: bool
) -> Tensor:
    """The gradient of a table of that shape, given that of the rows that were looked up."""
    flat = indices.reshape(-1).to(dtypes.int64)
    rows = g.reshape((flat.layout.numel, shape[1]))
    counts = flat != padding_idx
    if by_frequency:
        times = flat.bincount(minlength=shape[0])[flat]
        rows = rows / times.to(rows.dtype).unsqueeze(1)
    rows = F.where(counts.unsqueeze(1), rows, 0.0)
    return g.new_zeros(shape).index_add(0, flat, rows)


def _embedding_slope(
    g: Tensor,
    weight_shape: tuple[int, ...],
    indices: Tensor,
    padding_idx: int,
    scale_grad_by_freq: bool,
    sparse: bool,
) -> Tensor:
    if sparse:
        raise TensorRuntimeError("there are no sparse gradients here")
    return table_gradient(g, indices, weight_shape, padding_idx, scale_grad_by_freq)


@kernel(
    vjp={"weight": Native("EmbeddingDenseBackwardBackward0", _embedding_slope)},
    method=False,
    out=False,
    example="embedding(tensor([[1., 2.], [3., 4.]]), tensor([1, 0]))",
)
def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Made:
    """The rows of a table with the given numbers; row ``padding_idx`` gets no gradient."""
    if weight.layout.ndim != 2:
        raise TensorRuntimeError("'weight' must be 2-D")
    check_indices(indices, "embedding")
    rows, width = weight.layout.shape

    def run(xp: Any) -> Any:
        index = indices.array
        _check_range(xp, index, rows)
        return weight.array[index]

    return made(weight.dtype, (*indices.layout.shape, width), run)


_refuse = unlisted("embedding_renorm")
_RENORM = tape.Gradient("EmbeddingRenormBackward0", lambda node, g: _refuse(g))


@function("embedding_renorm_")
def embedding_renorm_(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale down, in place, the rows looked up whose norm is above ``max_norm``."""
    check_indices(indices, "embedding_renorm_")
    xp = weight.kind.xp
    index = xp.unique(indices.array)
    _check_range(xp, index, weight.layout.shape[0])
    picked = weight.detach()[F.tensor(index.tolist(), dtype=dtypes.int64)]
    norms = picked.norm(norm_type, 1).array
    recorded = state.grad and tape.requires_grad(weight)
    tape.check_inplace(weight, recorded)
    node = tape.make_node(_RENORM, weight, (weight,)) if recorded else None
    for row, norm in zip(index.tolist(), norms.tolist(), strict=True):
        if norm > max_norm:
            weight.array[row] *= weight.array.dtype.type(max_norm / (norm + 1e-7))
    tape.bump(weight)
    if node is not None:
        tape.rebase(weight, node)
    return weight


def _wrapped_padding(padding_idx: Any, weight: Any) -> Any:
    if padding_idx is None:
        return -1
    rows = weight.size(0)
    if padding_idx >= rows or padding_idx < -rows:
        raise PaddingIndexError("Padding_idx must be within num_embeddings")
    return padding_idx + rows if padding_idx < 0 else padding_idx


@functional(
    name="embedding",
    example="nn.functional.embedding(tensor([1, 0]), tensor([[1., 2.], [3., 4.]]))",
)
def _embedding(
    input: Any,
    weight: Any,
    padding_idx: Any = None,
    max_norm: Any = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """The rows of a table with the given numbers; row ``padding_idx`` gets no gradient.

    ``max_norm``: the rows looked up are scaled down to that norm first, in the table itself.
    """
    padding = _wrapped_padding(padding_idx, weight)
    if max_norm is not None:
        input = input.contiguous()
        embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    return ops["embedding"].function(weight, input, padding, scale_grad_by_freq, sparse)


@composite(
    name="nn.functional.one_hot",
    method=False,
    out=False,
    data_dependent=True,
    example="nn.functional.one_hot(tensor([0, 2, 1]))",
)
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """A 1 at each class number among zeros, in a new last dimension."""
    if input.dtype is not dtypes.int64:
        raise DtypeError("one_hot is only applicable to index tensor of type LongTensor.")
    if input.layout.numel == 0:
        if num_classes <= 0:
            raise TensorRuntimeError("Can not infer total number of classes from empty tensor.")
        return F.zeros((*input.layout.shape, num_classes), dtype=dtypes.int64)
    if int(input.min().item()) < 0:
        raise TensorRuntimeError("Class values must be non-negative.")
    highest = int(input.max().item())
    if num_classes == -1:
        num_classes = highest + 1
    elif num_classes <= highest:
        raise TensorRuntimeError("Class values must be smaller than num_classes.")
    whole = F.zeros((*input.layout.shape, num_classes), dtype=dtypes.int64)
    return whole.scatter_(-1, input.unsqueeze(-1), 1)
