"""Why an operation gave NaN or infinity, in words, and what is known to help."""

from __future__ import annotations

from math import inf, isinf, isnan

import numpy as np

from engine.numeric_limits import FloatLimits
from engine.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Reason = tuple[str, str | None]


class Element:
    """An operand: how it is called, and its element where the result is not finite."""

    __slots__ = ("array", "first", "index", "text", "value")

    def __init__(
        self, text: str, index: tuple[int, ...] | None, value: float | None, array: Any = None
    ) -> None:
        self.text = text
        self.index = index
        self.value = value
        self.array = array
        self.first = False

    @property
    def words(self) -> str:
        if self.value is None:
            return ""
        text = f"{self.value:.6g}"
        whole = abs(self.value) < 1e6 and float(text).is_integer()
        is_near = whole and self.value != float(text)
        return f"{self.value:.9g}" if is_near else text  # 1.00000012 is not 1


def forward_reason(
    name: str, what: str, elements: Sequence[Element], result: Tensor, value: Any
) -> Reason:
    """Why `name` made it out of operands that had none."""
    numbers = [e.value for e in sorted(elements, key=lambda e: not e.first) if e.value is not None]
    rule = FORWARD.get(name)
    if rule is not None:
        found = rule(numbers, what, result)
        if found is not None:
            return found
    if name in ("tensor", "full", "full_like", "as_tensor", "Tensor", "masked_fill", "where"):
        return f"the program writes {'a NaN' if what == 'NaN' else 'an infinity'} here", None
    if name in ("empty", "empty_like", "new_empty"):
        return "empty() gives memory as it was found: any values", "use zeros()"
    found = _over_rows(name, what, elements, result)
    if found is not None:
        return found
    if what == "Inf":
        return _too_large(result), CURE_LARGE
    if numbers:
        return f"{name or 'the operation'} has no value at {_listed(numbers)}", None
    return f"{name or 'the operation'} has no value there", None


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(f"{n:.6g}" for n in numbers)


def _too_large(result: Tensor) -> str:
    largest = FloatLimits(result.dtype).max if result.dtype.is_floating_point else inf
    return f"the value is beyond the largest {result.dtype.name}, {largest:.4g}"


CURE_LARGE = "compute in a wider dtype, or scale the values down first"
CURE_LOG = "keep the input away from 0: x.clamp(min=1e-12).log(), or log1p(x) for small x"
CURE_DIV = "keep the divisor away from 0: x / (y + 1e-12), or choose with where() beforehand"
CURE_SOFTMAX = "use log_softmax(x, dim) or logsumexp(x, dim), which subtract the largest first"


def _divide(numbers: Sequence[float], what: str, result: Tensor) -> Reason | None:
    if len(numbers) < 2:
        return None
    a, b = numbers[0], numbers[1]
    if a == 0 and b == 0:
        return "0 / 0 has no value", CURE_DIV
    if isinf(a) and isinf(b):
        return "inf / inf has no value", None
    if b == 0:
        return f"{a:.6g} divided by 0 is infinite", CURE_DIV
    return None


def _subtract(numbers: Sequence[float], what: str, result: Tensor) -> Reason | None:
    if len(numbers) >= 2 and isinf(numbers[0]) and isinf(numbers[1]):
        return "inf - inf has no value", None
    return None


def _multiply(numbers: Sequence[float], what: str, result: Tensor) -> Reason | None:
    if any(n == 0 for n in numbers) and any(isinf(n) for n in numbers):
        text = "use where() to choose values: a mask of zeros does not take an infinity away"
        return "0 * inf has no value", text
    return None


def _logarithm(numbers: Sequence[float], what: str, result: Tensor) -> Reason | None:
    if numbers and numbers[0] == 0:
        return "the logarithm of 0 is -inf", CURE_LOG
    if numbers and numbers[0] < 0:
        return f"{numbers[0]:.6g} is negative and has no real logarithm", CURE_LOG
    return None


def _log1p(numbers: Sequence[float], what: str, result: Tensor) -> Reason | None:
    return _logarithm([n + 1 for n in numbers], what, result)


def _root(numbers: Sequence[float], what: str, result: Tensor) -> Reason | None:
    if numbers and numbers[0] < 0:
        return f"{numbers[0]:.6g} is negative and has no real root", "use x.clamp(min=0).sqrt()"
    return None


def _inverse_root(numbers: Sequence[float], what: str, result: Tensor) -> Reason | None:
    if numbers and numbers[0] == 0:
        return "1 / sqrt(0) is infinite", "add a small number first: (x + 1e-12).rsqrt()"
    return _root(numbers, what, result)


def _exponential(numbers: Sequence[float], what: str, result: Tensor) -> Reason | None:
    if numbers and what == "Inf":
        largest = float(np.log(FloatLimits(result.dtype).max))
        reason = (
            f"exp({numbers[0]:.6g}) is beyond {result.dtype.name}, which ends at exp({largest:.4g})"
        )
        return reason, "subtract the maximum first, or use softmax, log_softmax, logsumexp"
    return None


def _power(numbers: Sequence[float], what: str, result: Tensor) -> Reason | None:
    if len(numbers) < 2:
        return None
    base, exponent = numbers[0], numbers[1]
    if base < 0 and exponent != int(exponent if not isinf(exponent) else 0):
        cure = "x.abs().pow(p) * x.sign() is the real root of odd degree"
        return f"{base:.6g} is negative: a fraction as exponent has no real value", cure
    if base == 0 and exponent < 0:
        return f"0 to the power {exponent:.6g} is 1 / 0", CURE_DIV
    return None


def _reciprocal(numbers: Sequence[float], what: str, result: Tensor) -> Reason | None:
    return ("1 / 0 is infinite", CURE_DIV) if numbers and numbers[0] == 0 else None


def _arc(numbers: Sequence[float], what: str, result: Tensor) -> Reason | None:
    if numbers and abs(numbers[0]) > 1:
        return f"{numbers[0]:.9g} is outside of -1 .. 1", "use x.clamp(-1, 1) first"
    return None


def _area(numbers: Sequence[float], what: str, result: Tensor) -> Reason | None:
    if numbers and abs(numbers[0]) == 1:
        return f"atanh({numbers[0]:.6g}) is infinite", "keep the input inside of -1 .. 1"
    return _arc(numbers, what, result)


def _cast(numbers: Sequence[float], what: str, result: Tensor) -> Reason | None:
    if what == "Inf" and numbers and not isinf(numbers[0]):
        largest = FloatLimits(result.dtype).max
        reason = f"{numbers[0]:.6g} is beyond the largest {result.dtype.name}, {largest:.6g}"
        return reason, "use bfloat16 or float32, which have float32's range, or scale it down"
    return None


FORWARD: dict[str, Callable[[Sequence[float], str, Tensor], Reason | None]] = {
    "div": _divide, "divide": _divide, "true_divide": _divide, "remainder": _divide,
    "fmod": _divide, "sub": _subtract, "subtract": _subtract, "add": _subtract,
    "mul": _multiply, "multiply": _multiply, "log": _logarithm, "log2": _logarithm,
    "log10": _logarithm, "log1p": _log1p, "sqrt": _root, "rsqrt": _inverse_root,
    "exp": _exponential, "expm1": _exponential, "pow": _power, "float_power": _power,
    "reciprocal": _reciprocal, "acos": _arc, "arccos": _arc, "asin": _arc, "arcsin": _arc,
    "atanh": _area, "half": _cast, "to": _cast, "type": _cast, "bfloat16": _cast,
}  # fmt: skip


def _over_rows(name: str, what: str, elements: Sequence[Element], result: Tensor) -> Reason | None:
    """Operations over many elements: sums, means, products, softmax."""
    arrays = [e.array for e in elements if e.array is not None]
    if not arrays:
        return None
    first = arrays[0]
    if name in ("mean", "nanmean", "median", "std", "var") and first.size == 0:
        return f"the {name} of no elements is 0 / 0", "look whether the selection is empty first"
    if name in ("std", "var", "std_mean", "var_mean"):
        return (
            f"the {name} of one element divides by its count less one, which is 0",
            "use correction=0 (unbiased=False), or more than one element",
        )
    if what == "NaN" and any(np.isinf(a).any() for a in arrays if a.dtype.kind == "f"):
        if name in ("softmax", "log_softmax"):
            return (
                "a row of nothing but -inf (or one with inf) has no softmax: inf - inf",
                "leave at least one element of each row unmasked, or zero such rows afterwards",
            )
        if name in ("sum", "mean", "cumsum", "nansum", "logsumexp", "var", "std"):
            return "inf - inf: infinities of both signs were added", None
        return "0 * inf or inf - inf: there are infinities among the operands", None
    if name in ("cross_entropy", "nll_loss"):
        return "the mean over the targets that count is 0 / 0: all are ignored", None
    if name in ("sum", "mean", "cumsum", "matmul", "mm", "norm", "prod", "linalg.norm"):
        return _too_large(result), CURE_LARGE
    return None


# -- backward --------------------------------------------------------------------------------

# Node -> the slope at the input that is infinite, in words, and where that is.
SLOPES = {
    "Log": ("log", "1 / input"),
    "Log2": ("log2", "1 / (input * log 2)"),
    "Log10": ("log10", "1 / (input * log 10)"),
    "Sqrt": ("sqrt", "1 / (2 * result)"),
    "Rsqrt": ("rsqrt", "-result ** 3 / 2"),
    "Reciprocal": ("1 / x", "-result ** 2"),
    "Pow": ("pow", "exponent * input ** (exponent - 1)"),
    "Div": ("the quotient", "1 / divisor"),
    "Asin": ("asin", "1 / sqrt(1 - input ** 2)"),
    "Acos": ("acos", "-1 / sqrt(1 - input ** 2)"),
    "Atanh": ("atanh", "1 / (1 - input ** 2)"),
    "LinalgVectorNorm": ("the norm", "input / norm"),
    "Norm": ("the norm", "input / norm"),
    "Exp": ("exp", "result"),
    "Std": ("std", "(input - mean) / (count * std)"),
}
CHOOSERS = ("Where", "MaskedFill", "Index", "Maximum", "Minimum", "Clamp", "Mul", "Slice", "Select")
CURES = {
    "Sqrt": "keep the input of sqrt off 0: (x + 1e-12).sqrt()",
    "LinalgVectorNorm": "add a small number under the root: (x.pow(2).sum() + 1e-12).sqrt()",
    "Std": "add a small number: (x.var() + 1e-12).sqrt()",
    "Log": "keep the input of log off 0: x.clamp(min=1e-12).log()",
    "Div": "keep the divisor off 0: x / y.clamp(min=1e-12) for a positive y",
    "Reciprocal": "keep the divisor off 0: 1 / x.clamp(min=1e-12) for a positive x",
    "Rsqrt": "keep the input of rsqrt off 0: (x + 1e-12).rsqrt()",
    "Pow": "keep the base off 0: (x + 1e-12).pow(p)",
    "Asin": "keep the input inside of -1 .. 1: x.clamp(-1 + 1e-6, 1 - 1e-6).asin()",
    "Acos": "keep the input inside of -1 .. 1: x.clamp(-1 + 1e-6, 1 - 1e-6).acos()",
    "Atanh": "keep the input inside of -1 .. 1: x.clamp(-1 + 1e-6, 1 - 1e-6).atanh()",
    "Norm": "add a small number under the root: (x.pow(2).sum() + 1e-12).sqrt()",
    "Log2": "keep the input of log2 off 0: x.clamp(min=1e-12).log2()",
    "Log10": "keep the input of log10 off 0: x.clamp(min=1e-12).log10()",
    "Exp": "scale the input down, or clamp it: x.clamp(max=80).exp()",
}


def backward_reason(node_name: str, what: str, elements: Sequence[Element], sender: Any) -> Reason:
    """Why a derivative gave NaN or infinity from a gradient that was finite."""
    bare = node_name.rstrip("0123456789").removesuffix("Backward")
    g = elements[0].value
    chooser = "" if sender is None else sender.type_name.rstrip("0123456789")
    chooser = chooser.removesuffix("Backward")
    name, slope = SLOPES.get(bare, (bare, "slope"))
    value = next((e for e in elements[1:] if e.value is not None), None)
    at = "" if value is None else f" where {value.text} is {value.words}"
    if what == "NaN" and g == 0:
        reason = f"the slope of {name}, {slope}, is infinite{at}, and 0 * inf has no value"
        if chooser in CHOOSERS[:3]:
            word = {"Where": "where()", "MaskedFill": "masked_fill()"}.get(chooser, "the selection")
            reason = f"{word} gives the branch that it does not take gradient 0; {reason}"
            return reason, (
                "choose before, not after: give the risky operation an input that is safe where it "
                "is not used, such as where(condition, x, 1.0)"
            )
        return reason, CURES.get(bare)
    if what == "Inf":
        return f"the slope of {name}, {slope}, is infinite{at}", CURES.get(bare)
    if value is not None and value.value is not None and not isnan(value.value):
        return f"{slope} has no value{at}", CURES.get(bare)
    return f"the slope of {name} has no value there", CURES.get(bare)
