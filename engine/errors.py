"""Error classes of the engine: fields first, the sentence derived from them.

Every class derives from the built-in exception that PyTorch raises in the same place, so that
``except RuntimeError`` means what it means there. They know nothing of source text.
"""

from __future__ import annotations

_PUBLIC = (
    NotImplementedError,
    ZeroDivisionError,
    OverflowError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    NameError,
    AssertionError,
    RuntimeError,
)


class EngineError(Exception):
    """Base of the engine's own errors; never raised itself.

    ``code`` names the kind of mistake for programs that read errors as data.
    """

    code = "error"

    def __repr__(self) -> str:
        return f"{public_type(self)}({str(self)!r})"


class TensorRuntimeError(EngineError, RuntimeError):
    """PyTorch raises RuntimeError here."""


class TensorTypeError(EngineError, TypeError):
    """PyTorch raises TypeError here."""

    code = "type"


class TensorValueError(EngineError, ValueError):
    """PyTorch raises ValueError here."""

    code = "value"


class TensorIndexError(EngineError, IndexError):
    """PyTorch raises IndexError here."""

    code = "index"


class TensorOverflowError(EngineError, OverflowError):
    """PyTorch raises OverflowError here."""

    code = "overflow"


class TensorNotImplementedError(EngineError, NotImplementedError):
    """PyTorch raises NotImplementedError here."""

    code = "not-implemented"


class NoDataError(TensorNotImplementedError):
    """An operation whose result depends on values, asked of a meta tensor, which has none.

    ``operation`` is PyTorch's name for its kernel.
    """

    code = "meta"

    def __init__(self, operation: str):
        self.operation = operation
        super().__init__(
            f"aten::{operation}: attempted to run this operator with Meta tensors, but there was "
            "no fake impl or Meta kernel registered."
        )


class NonzeroOnMetaError(TensorNotImplementedError):
    """The number of elements that are not zero, asked of a meta tensor."""

    code = "meta"

    def __init__(self) -> None:
        super().__init__(
            "The register_meta function for torch.nonzero() raises unimplemented by default, as a "
            "correct data-independent implementation does not exist. This implementation returns "
            "a fake value, assuming all elements of the tensor are non-zero. To enable this "
            "registration, please set "
            "'torch.fx.experimental._config.meta_nonzero_assume_all_nonzero' to True."
        )


class BroadcastError(TensorRuntimeError):
    """Two shapes that do not broadcast; ``dim`` counts in the broadcast result."""

    code = "broadcast"

    def __init__(self, a: tuple[int, ...], b: tuple[int, ...], dim: int, sizes: tuple[int, int]):
        self.shapes = (a, b)
        self.dim = dim
        self.sizes = sizes
        super().__init__(
            f"The size of tensor a ({sizes[0]}) must match the size of tensor b ({sizes[1]}) "
            f"at non-singleton dimension {dim}"
        )


class DimError(TensorIndexError):
    """A dimension number out of range for a tensor of ``ndim`` dimensions."""

    code = "dim"

    def __init__(self, dim: int, ndim: int):
        self.dim = dim
        self.ndim = ndim
        span = max(ndim, 1)
        super().__init__(
            f"Dimension out of range (expected to be in range of [{-span}, {span - 1}], "
            f"but got {dim})"
        )


class IndexRangeError(TensorIndexError):
    """An element number out of range in one dimension."""

    code = "index"

    def __init__(self, index: int, dim: int, size: int):
        self.index = index
        self.dim = dim
        self.size = size
        super().__init__(f"index {index} is out of bounds for dimension {dim} with size {size}")


class ShapeError(TensorRuntimeError):
    """A shape that does not fit the number of elements."""

    code = "reshape"

    def __init__(self, shape: tuple[int, ...], numel: int):
        self.shape = shape
        self.numel = numel
        super().__init__(f"shape '{list(shape)}' is invalid for input of size {numel}")


class ViewError(TensorRuntimeError):
    """A view whose dimensions span memory that is not one run; fields hold the geometry."""

    code = "view"

    def __init__(self, shape: tuple[int, ...], old: tuple[int, ...], strides: tuple[int, ...]):
        self.shape = shape
        self.old_shape = old
        self.old_strides = strides
        super().__init__(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        )


class MatmulError(TensorRuntimeError):
    """Inner sizes of a matrix product that differ."""

    code = "matmul"

    def __init__(self, a: tuple[int, ...], b: tuple[int, ...], message: str = ""):
        self.shapes = (a, b)
        super().__init__(
            message
            or "mat1 and mat2 shapes cannot be multiplied "
            f"({'x'.join(map(str, a))} and {'x'.join(map(str, b))})"
        )


class DtypeError(TensorRuntimeError):
    """Operands whose dtypes do not go together, or a dtype that an op does not take."""

    code = "dtype"


class DtypeNotImplementedError(TensorNotImplementedError):
    """A kernel that PyTorch does not have for a dtype."""

    code = "dtype"


class InplaceError(TensorRuntimeError):
    """An in-place operation that is refused before anything is written."""

    code = "in-place"


class OverlapError(InplaceError):
    """A destination whose elements share memory."""

    code = "overlap"


class AutogradError(TensorRuntimeError):
    """A refusal of the autograd graph."""

    code = "autograd"


class SavedTensorError(AutogradError):
    """A value kept for the backward pass was changed in place since.

    ``node`` is the node that kept it, ``site`` the place where that node was recorded.
    """

    code = "saved-modified"

    def __init__(self, message: str, node: object = None, tensor: object = None):
        self.node = node
        self.tensor = tensor
        super().__init__(message)


class FreedGraphError(AutogradError):
    """A second backward pass through values that the first one released."""

    code = "freed"

    def __init__(self, node: object = None):
        self.node = node
        super().__init__(
            "Trying to backward through the graph a second time (or directly access saved "
            "tensors after they have already been freed). Saved intermediate values of the graph "
            "are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if "
            "you need to backward through the graph a second time or if you need to access saved "
            "tensors after calling backward."
        )


class DeviceError(TensorRuntimeError):
    """A device that is not there, or operands on different devices."""

    code = "device"


class NoCudaError(EngineError, AssertionError):
    """PyTorch's CPU build raises AssertionError where a cuda device is named."""

    code = "device"

    def __init__(self) -> None:
        super().__init__("Torch not compiled with CUDA enabled")


class LinAlgError(TensorRuntimeError):
    """A matrix that a decomposition cannot take (singular, not positive definite)."""

    code = "linalg"


class GradcheckError(TensorRuntimeError):
    """Derivatives that finite differences do not confirm."""

    code = "gradcheck"


def public_type(error: BaseException) -> str:
    """The name of the exception class that PyTorch's user would see."""
    return public_class(error).__name__


def public_class(error: BaseException) -> type[BaseException]:
    """The exception class that PyTorch's user would see."""
    if isinstance(error, EngineError) and not isinstance(error, (LinAlgError, GradcheckError)):
        for base in _PUBLIC:
            if isinstance(error, base):
                return base
    return type(error)
