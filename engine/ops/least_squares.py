"""Least squares, pseudo-inverses and ranks: what singular values are cut off for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine import layout as layouts
from engine.errors import DtypeError, TensorRuntimeError
from engine.kinds import composite, kernel, made
from engine.matrices import decomposed
from engine.registry import functions
from engine.signature import ArgumentError, type_name
from engine.tensor import Tensor, kind_of

if TYPE_CHECKING:
    from engine.kinds import Made


def _linalg(name: str) -> Any:
    return functions[f"linalg.{name}"]


def _epsilon(t: Tensor) -> float:
    return 2.0**-52 if t.dtype.name in ("float64", "complex128") else 2.0**-23


def _tolerances(t: Tensor, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """Absolute and relative: the relative one is eps·max(m, n) where neither is given."""
    for name, value in (("atol", atol), ("rtol", rtol)):
        if value is not None and not isinstance(value, (Tensor, int, float)):
            raise ArgumentError(
                f"linalg.pinv(): argument '{name}' must be float, not {type_name(value)}", name
            )
    a, r = (v.array if isinstance(v, Tensor) else v for v in (atol, rtol))
    if r is None:
        r = _epsilon(t) * max(t.layout.shape[-2:]) if a is None else 0.0
    return (0.0 if a is None else a), r


def _cut(xp: Any, largest: Any, atol: Any, rtol: Any) -> Any:
    limit = xp.maximum(xp.asarray(atol), xp.asarray(rtol) * largest)
    return xp.asarray(limit)[..., None]


def _h(a: Any) -> Any:
    return a.swapaxes(-1, -2).conj()


def _pseudo_inverse(xp: Any, a: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    if hermitian:
        values, u = xp.linalg.eigh(a)
        size = xp.abs(values)
        vh = _h(u)
    else:
        u, values, vh = decomposed(xp, a, False)
        size = values
    keep = size > _cut(xp, size.max(axis=-1), atol, rtol)
    inverse = xp.where(keep, 1 / xp.where(keep, values, 1), 0).astype(values.dtype)
    return (_h(vh) * inverse[..., None, :]) @ _h(u)


def _pinv_gradient(g: Tensor, y: Tensor, input: Tensor) -> Tensor:
    m, n = input.layout.shape[-2:]
    yh, gh = y.mH, g.mH
    if m <= n:
        k = gh @ y
        kyh = k @ yh
        return -(y @ k).mH + kyh - (input @ y) @ kyh + (yh @ y) @ (gh - k @ input)
    k = y @ gh
    yhk = yh @ k
    return -(k @ y).mH + (gh - input @ k) @ y @ yh + yhk - (yhk @ y) @ input


@kernel(
    name="linalg.pinv",
    spaces=("linalg.",),
    method=False,
    vjp={"input": _pinv_gradient},
    node="LinalgPinvBackward0",
    example="linalg.pinv(tensor([[1., 0.], [0., 2.], [0., 0.]]))",
)
def pinv(
    input: Tensor,
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
) -> Made:
    """The pseudo-inverse: singular values up to the larger of ``atol`` and ``rtol`` times the
    largest count as zero."""
    if input.ndim < 2 or input.dtype.category < dtypes.FLOAT or input.dtype.low:
        raise DtypeError(
            f"linalg.pinv({input.dtype.title}{{{list(input.layout.shape)}}}): expected a tensor "
            "with 2 or more dimensions of float, double, cfloat or cdouble types"
        )
    *lead, m, n = input.layout.shape
    if hermitian and m != n:
        raise TensorRuntimeError(
            f"linalg.eigh: A must be batches of square matrices, but they are {m} by {n} matrices"
        )
    absolute, relative = _tolerances(input, atol, rtol if rcond is None else rcond)

    def run(xp: Any) -> Any:
        if input.layout.numel == 0:
            return xp.zeros((*lead, n, m), input.array.dtype)
        return _pseudo_inverse(xp, input.array, absolute, relative, hermitian)

    return made(input.dtype, (*lead, n, m), run)


@composite(out=False, example="pinverse(tensor([[1., 0.], [0., 2.]]))")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse; singular values up to ``rcond`` times the largest count as zero."""
    return _linalg("pinv")(input, rcond)


@kernel(
    name="linalg.matrix_rank",
    spaces=("linalg.",),
    method=False,
    example="linalg.matrix_rank(tensor([[1., 2.], [2., 4.]]))",
)
def matrix_rank(
    input: Tensor,
    tol: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
) -> Made:
    """How many singular values are above the tolerance (by default eps·max(m, n)·largest)."""
    if input.ndim < 2:
        raise TensorRuntimeError(
            "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions."
        )
    if input.dtype.category < dtypes.FLOAT or input.dtype.low:
        raise TensorRuntimeError("This function doesn't handle types other than float and double")
    *lead, m, n = input.layout.shape
    if hermitian and m != n:
        raise TensorRuntimeError(
            f"linalg.eigh: A must be batches of square matrices, but they are {m} by {n} matrices"
        )
    absolute, relative = _tolerances(input, atol if tol is None else tol, rtol)
    if tol is not None:
        relative = 0.0

    def run(xp: Any) -> Any:
        if input.layout.numel == 0:
            return xp.zeros(tuple(lead), "int64")
        if hermitian:
            values = xp.abs(xp.linalg.eigvalsh(input.array))
        else:
            values = decomposed(xp, input.array, False)[1]
        limit = _cut(xp, values.max(axis=-1), absolute, relative)
        return xp.asarray((values > limit).sum(axis=-1))

    return made(dtypes.int64, tuple(lead), run)


_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _solve_each(xp: Any, a: Any, b: Any, rcond: float | None) -> tuple[Any, Any, Any]:
    """Solutions for a batch of problems, ranks and singular values for the matrices given."""
    lead = xp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    m, n = a.shape[-2:]
    whole = xp.broadcast_to(a, (*lead, m, n))
    b = xp.broadcast_to(b, (*lead, *b.shape[-2:]))
    x = xp.zeros((*lead, n, b.shape[-1]), a.dtype)
    own = a.shape[:-2]
    ranks = xp.zeros(own, "int64")
    values = xp.zeros((*own, min(m, n)), a.real.dtype)
    if min(m, n) == 0:
        return x, ranks, values
    for nr, at in enumerate(xp.ndindex(lead)):
        # LAPACK writes to standard output what it thinks of numbers that are not finite.
        total = abs(whole[at]).sum() + abs(b[at]).sum()
        if xp.isnan(whole[at]).any() or xp.isnan(b[at]).any():
            which = f"(Batch element {nr}): " if at else ""
            raise TensorRuntimeError(
                f"torch.linalg.lstsq: {which}Argument 4 has illegal value. Most certainly there "
                "is a bug in the implementation calling the backend library."
            )
        if not xp.isfinite(total):
            x[at] = xp.nan
            continue
        found = xp.linalg.lstsq(whole[at], b[at], rcond=rcond)
        x[at] = found[0]
        place = tuple(
            i if size > 1 else 0 for i, size in zip(at[len(lead) - len(own) :], own, strict=True)
        )
        ranks[place], values[place] = found[2], found[3]
    return x, ranks, values


def _lstsq_gradient(g: Any, y: Any, input: Tensor, B: Tensor, needed: tuple[bool, ...]) -> Any:
    x = y[0]
    gx, residual = g[0], g[1]
    vector = _is_vector(input, B)
    target = B.unsqueeze(-1) if vector else B
    x = x.unsqueeze(-1) if vector else x
    ga: Any = None
    gb: Any = None
    if gx is not None:
        gx = gx.unsqueeze(-1) if vector else gx
        inverse = _linalg("pinv")(input)
        gb = inverse.mH @ gx
        ga = _pinv_gradient(gx @ target.mH, inverse, input)
    if residual is not None and residual.layout.numel:
        off = 2 * (input @ x - target) * residual.unsqueeze(-2)
        ga = off @ x.mH if ga is None else ga + off @ x.mH
        gb = -off if gb is None else gb - off
    if gb is not None and vector:
        gb = gb.squeeze(-1)
    return ga if needed[0] else None, gb if needed[1] else None


def _is_vector(a: Tensor, b: Tensor) -> bool:
    return a.ndim - 1 == b.ndim and a.layout.shape[:-1] == b.layout.shape


@kernel(
    name="linalg.lstsq",
    spaces=("linalg.",),
    method=False,
    fields=("solution", "residuals", "rank", "singular_values"),
    constant=(3,),
    vjp={"input,B": _lstsq_gradient},
    node="LinalgLstsqBackward0",
    example="linalg.lstsq(tensor([[1., 0.], [1., 1.]]), tensor([[0.], [1.]])).solution",
)
def lstsq(input: Tensor, B: Tensor, rcond: Any = None, *, driver: str | None = None) -> Any:
    """X that makes the norm of A X - B least; residuals only for tall matrices of full rank with
    the drivers gels, gelsd and gelss."""
    name = "torch.linalg.lstsq"
    if input.ndim < 2:
        raise TensorRuntimeError(f"{name}: input must have at least 2 dimensions.")
    if B.ndim < 1:
        raise TensorRuntimeError(f"{name}: other must have at least 1 dimension.")
    if input.dtype is not B.dtype:
        raise DtypeError(
            f"{name}: Expected input and other to have the same dtype, but got "
            f"input's dtype {input.dtype.title} and other's dtype {B.dtype.title}"
        )
    if input.dtype.category < dtypes.FLOAT or input.dtype.low:
        raise TensorRuntimeError("This function doesn't handle types other than float and double")
    vector = _is_vector(input, B)
    *lead, m, n = input.layout.shape
    rows = B.layout.shape[-1] if vector or B.ndim == 1 else B.layout.shape[-2]
    if rows != m:
        place = -1 if vector or B.ndim < input.ndim else -2
        raise TensorRuntimeError(f"{name}: input.size(-2) should match other.size({place})")
    chosen = driver or "gelsy"
    if chosen not in _DRIVERS:
        raise TensorRuntimeError(
            f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    columns = 1 if vector else B.layout.shape[-1]
    batch = layouts.broadcast_shapes(tuple(lead), () if vector else B.layout.shape[:-2])
    if vector:
        batch = tuple(lead)
    tall = max(m, n)
    shape = (*batch, n) if vector else (*batch, n, columns)
    storage = layouts.contiguous_strides((*batch, columns, tall))
    strides = (*storage[:-2], 1) if vector else (*storage[:-2], 1, tall if tall else 1)
    limit = _epsilon(input) * tall if rcond is None else float(rcond)
    cache: list[Any] = []

    def run(xp: Any) -> Any:
        if not cache:
            b = B.array[..., None] if vector else B.array
            x, ranks, values = _solve_each(xp, input.array, b, limit)
            off = xp.abs(input.array @ x - b) ** 2
            full = bool((ranks == n).all()) and m > n and chosen != "gelsy"
            residuals = off.sum(axis=-2) if full else xp.zeros((0,), values.dtype)
            if vector:
                x = x[..., 0]
            cache.extend([x, residuals, ranks, values])
        return cache

    real = dtypes.real_of(input.dtype)
    empty = layouts.contiguous((0,))
    parted = m > n and chosen != "gelsy"
    residual_shape: tuple[int, ...] = (*batch, columns) if parted else (0,)
    if parted and input.array is not None:
        residual_shape = run(kind_of(input.dtype, input.device).xp)[1].shape
    valued = chosen in ("gelsd", "gelss")
    return (
        made(input.dtype, layouts.layout(shape, strides), run),
        made(real, residual_shape, run),
        made(
            dtypes.int64,
            empty if chosen == "gels" else layouts.contiguous(tuple(lead)),
            (lambda xp: xp.zeros((0,), "int64")) if chosen == "gels" else run,
        ),
        made(
            real,
            (*lead, min(m, n)) if valued else (0,),
            run if valued else (lambda xp: xp.zeros((0,))),
        ),
    )
