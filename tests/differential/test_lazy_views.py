"""Random programs of conjugates, parts, views and in-place operations on complex tensors: values,
bits, geometry, history, versions, errors and gradients are PyTorch's."""

from __future__ import annotations

import random
import re
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")


from engine.tensor import Tensor  # noqa: E402
from tests.differential.agree import OURS  # noqa: E402

PROGRAMS = 1_500

VIEWS = (
    "{t}.conj()", "{t}.conj()", "{t}.conj()", "{t}.imag", "{t}.real", "{t}.mH", "{t}.H", "{t}.T",
    "{t}.adjoint()", "{t}[0]", "{t}[..., 1:]", "{t}[..., ::2]", "{t}[:, None]", "{t}.unsqueeze(0)",
    "{t}.reshape(-1)", "{t}.view(-1)", "{t}.t()", "{t}.detach()",
    "{t}.diagonal()", "{t}.contiguous()", "{t}.resolve_conj()", "{t}.resolve_neg()",
    "torch.view_as_real({t})", "{t}.flatten()", "{t}.squeeze()", "{t}.data",
    "{t}.unfold(-1, 2, 2)", "{t}.positive()",
    "{t}.narrow(0, 0, 1)", "{t}.permute(*range({t}.dim())[::-1])", "torch.view_as_complex({t})",
    "{t}.to({o}.dtype)", "{t}.ravel()",
)  # fmt: skip
FRESH = (
    "{t} + {o}", "{t} * {o}", "{t}.expand(2, *{t}.shape) * 1", "{t} - 1", "{t} * 2j",
    "{t}.clone()", "-{t}", "{t}.sum()", "{t}.sum(0)", "({t} @ {t}.mH).clone()", "{t}.abs()",
    "torch.cat([{t}, {o}])", "{t}.flip(0)", "torch.where({t}.real > 0, {t}, {t}.conj())",
    "{t}[[0]]", "{t}[{t}.real > 0]", "{t}.cumsum(0)", "{t}.roll(1)", "torch.stack([{t}, {o}])",
    "{t}.repeat(2, 1)", "{t}.mean()", "{t}.angle()", "{t}.tril()", "torch.ones_like({t})",
    "torch.dot({t}.flatten(), {t}.flatten()).clone()",
    "torch.vdot({t}.flatten(), {t}.flatten().conj()).clone()", "{t}.prod()", "{t}.new_zeros(2)",
    "{t}.outer({o})", "{t}.square()", "{t}.sgn()",
    "torch.einsum('...i,...i->...', {t}, {o}).clone()", "{t}.masked_fill({t}.real > 0, 2)",
    "{t}.diag()", "{t}.to(torch.complex128)", "{t}.trace()",
    "{t}.norm()", "{t}.var()",
)  # fmt: skip
LOOKS = (
    "torch.equal({t}, {o})", "{t}.tolist()", "str({t}.detach())", "{t}.item()",
    "{t}.is_set_to({o})",
    "{t}.is_contiguous()",
)  # fmt: skip
WRITES = (
    "{t}.mul_({s})", "{t}.add_({s})", "{t}.mul_(2)", "{t}.mul_(1j)", "{t}.add_(1)",
    "{t}.sub_({s})", "{t}.copy_({s})", "{t}.copy_({s}.conj())", "{t}.fill_(3)", "{t}.fill_(2j)",
    "{t}.zero_()", "{t}[0] = 5", "{t}[0] = {s}", "{t}[..., 0] = 1j", "{t}[{t}.real > 0] = 4",
    "{t}.neg_()", "{t}[[0]] = {o}.clone()", "{t}.conj_physical_()", "{t}.square_()", "{t}.tril_()",
    "{t}.masked_fill_({t}.real > 0, 2)", "{t}.index_fill_(0, torch.tensor([0]), 3)",
    "{t}.index_add_(0, torch.tensor([0]), {t}[:1].clone())",
    "{t}.index_copy_(0, torch.tensor([0]), {t}[:1].clone())",
    "{t}.index_put_((torch.tensor([0]),), {o}.clone())",
    "{t}.put_(torch.tensor([0]), {t}.flatten()[:1].clone())",
    "{t}.scatter_(0, torch.zeros_like({t}, dtype=torch.int64), 2)", "{t}.cumsum_(0)",
    "{t}.lerp_({o}.clone(), 0.5)", "{t}.addcmul_({s}, {s})", "{t}.real = 2", "{t}.imag = {s}",
    "{t}.imag = 2", "{t} += {s}", "{t} *= {s}", "{t} /= 2",
    "torch.mul({t}.detach(), 2, out={t}.detach())", "torch.neg({t}.detach(), out={t}.detach())",
    "torch.conj_physical({t}.detach(), out={t}.detach())", "{t}.fill_diagonal_(2)", "{t}.sin_()",
    "torch.cumsum({t}.detach(), 0, out={t}.detach())", "{t}.normal_()", "{t}.uniform_()",
    "{t}.div_({s})", "{t}.pow_(2)",
)  # fmt: skip
AGAIN = (
    "AsStridedBackward",
    "ConjBackward",
    "NegViewBackward",
    "ViewAsRealBackward",
    "ViewAsComplexBackward",
)
STARTS = (
    "torch.tensor([[1+2j, 3-1j, 5+4j], [2j, -1+1j, 4-4j]])",
    "torch.tensor([[1+2j, 3-1j], [2-3j, 0.5-1j]])",
    "torch.tensor([[1+2j, 3-1j], [2-3j, 0.5-1j]]).t()",
    "torch.tensor([1+2j, 3-1j, -2+0.5j])",
    "torch.tensor([[1+2j, 3-1j, 5+4j], [2j, -1+1j, 4-4j]], dtype=torch.complex128)[:, ::2]",
)


def make_program(rng: random.Random) -> list[str]:
    """Lines that make tensors t0, t1 … and change them."""
    lines = [f"t0 = {rng.choice(STARTS)}"]
    if rng.random() < 0.5:
        lines.append("w = t0.clone().requires_grad_()")
        lines.append("t0 = w * 1")
    count = 1
    for _ in range(rng.randint(2, 8)):
        names = {"t": f"t{rng.randrange(count)}", "o": f"t{rng.randrange(count)}"}
        # What is written from shares all of its memory or none: else PyTorch's result is by chance.
        wider = ("{t}", "{t}.conj()", "{o}.clone()", "{o}.clone().conj()")
        names["s"] = rng.choice(wider).format(**names)
        kind = rng.random()
        if kind < 0.5:
            lines.append(f"t{count} = {rng.choice(VIEWS).format(**names)}")
            count += 1
        elif kind < 0.65:
            lines.append(f"t{count} = {rng.choice(FRESH).format(**names)}")
            count += 1
        elif kind < 0.7:
            lines.append(f"seen = {rng.choice(LOOKS).format(**names)}")
        else:
            lines.append(rng.choice(WRITES).format(**names))
    return lines


def listed(value: Any) -> Any:
    """Complex numbers as pairs, inside lists too; in a text zeros without their signs, which
    PyTorch's vectorised products lose."""
    if isinstance(value, str):
        return re.sub(r"[-+ ]0\.(?!\d)", " 0.", value)
    if isinstance(value, list):
        return [listed(v) for v in value]
    return [value.real, value.imag] if isinstance(value, complex) else value


def alike(a: Any, b: Any) -> bool:
    """Whether two records are equal, numbers as far as rounding allows."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or abs(a - b) <= 2e-4 * max(abs(a), abs(b), 0.1)
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(alike, a, b))
    return bool(a == b)


def node(f: Any) -> str:
    """A node's name without the number that tells PyTorch's overloads apart; those that find a view
    again all the same, as PyTorch has two where the last changes nothing."""
    name = "" if f is None else str(getattr(f, "type_name", type(f).__name__)).rpartition("::")[2]
    name = name.rstrip("0123456789")
    return "view" if name in AGAIN else name


def maker(x: Any) -> str:
    try:
        return node(x.grad_fn)
    except RuntimeError as e:
        return said(e)


def said(error: Exception) -> str:
    """An error's first line, as far as it does not name the maker of a value."""
    text = str(error).split("\n")[0].partition(", which is output")[0]
    if "returned an invalid gradient" in text:
        return "invalid gradient"
    return text.partition(" operation: [")[0]  # of several kept values each may be named first


def described(value: Any, held: dict[str, Any]) -> Any:
    """What can be seen of a value."""
    if not isinstance(value, (Tensor, torch.Tensor)):
        return listed(value) if isinstance(value, (str, bool, int, float, complex, list)) else ""
    x: Any = value
    base = next((name for name, t in held.items() if t is x._base), x._base is not None)
    try:
        leaf = x.is_leaf
    except RuntimeError as e:
        return str(e)
    beside = [n for n, t in held.items() if isinstance(t, type(x)) and t.data_ptr() == x.data_ptr()]
    elements = "" if x.is_meta else listed(x.detach().tolist())
    return (
        str(x.dtype), tuple(x.shape), tuple(x.stride()), x.storage_offset(), bool(x.is_conj()),
        bool(x.is_neg()), bool(x.requires_grad), leaf, x._version, base, elements,
        beside,
    )  # fmt: skip


def outcome(lines: list[str], module: Any) -> list[Any]:
    """What every line did; the program ends at an error of another kind than RuntimeError."""
    names: dict[str, Any] = {"torch": module}
    log: list[Any] = []
    module.manual_seed(0)
    for line in lines:
        try:
            exec(line, names)
        except (RuntimeError, TypeError, IndexError, AttributeError, NotImplementedError) as e:
            log.append((line, said(e)))
            if " = " in line and line.startswith("t"):
                return log
        except NameError:
            return log
        held = {n: v for n, v in names.items() if n[0] in "tws" and n != "torch"}
        log.append((line, {n: described(v, held) for n, v in held.items()}))
    floats = [v for v in held.values() if isinstance(v, (Tensor, torch.Tensor)) and v.requires_grad]
    try:
        total = sum((v.abs() ** 2).sum() for v in floats if v.numel())
        total.backward()
        log.append(
            [None if v.grad is None else listed(v.grad.tolist()) for v in floats if v.is_leaf]
        )
        log.append([v.grad is not None and bool(v.grad.is_conj()) for v in floats if v.is_leaf])
    except (RuntimeError, AttributeError) as e:
        log.append(said(e))
    log.append([maker(v) for v in floats])
    return log


def compared(seed: int) -> tuple[list[str], Any, Any] | None:
    """The first difference of the program of that seed: its lines, PyTorch's record and ours."""
    lines = make_program(random.Random(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, mine = outcome(lines, torch), outcome(lines, OURS)
    for a, b in zip(theirs, mine, strict=False):
        if not alike(a, b):
            return lines, a, b
    return None if len(theirs) == len(mine) else (lines, theirs[-1], mine[-1])


def test_random_programs() -> None:
    for seed in range(PROGRAMS):
        found = compared(seed)
        assert found is None, "\n".join(map(str, (seed, *found[0], *found[1:])))
