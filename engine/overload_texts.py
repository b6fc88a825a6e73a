"""The signatures of operations as PyTorch's complaints list them.

Operations of one signature need no entry: what is wrong with their arguments is said plainly.
Read when a call has failed, and only then.
"""

from __future__ import annotations

_OPTIONS = (
    "torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, bool "
    "pin_memory = False, bool requires_grad = False"
)

_LISTED: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "add sub",
        ("(Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)",),
    ),
    (
        "addbmm",
        (
            "(Tensor input, Tensor batch1, Tensor batch2, *, Number beta = 1, Number alpha = 1, "
            "Tensor out = None)",
        ),
    ),
    (
        "addcdiv addcmul",
        ("(Tensor input, Tensor tensor1, Tensor tensor2, *, Number value = 1, Tensor out = None)",),
    ),
    (
        "addmm",
        (
            "(Tensor input, Tensor mat1, Tensor mat2, *, Number beta = 1, Number alpha = 1, "
            "Tensor out = None)",
            "(Tensor input, Tensor mat1, Tensor mat2, torch.dtype out_dtype, *, Number beta = "
            "1, Number alpha = 1, Tensor out = None)",
        ),
    ),
    (
        "addmv",
        (
            "(Tensor input, Tensor mat, Tensor vec, *, Number beta = 1, Number alpha = 1, "
            "Tensor out = None)",
        ),
    ),
    (
        "addr",
        (
            "(Tensor input, Tensor vec1, Tensor vec2, *, Number beta = 1, Number alpha = 1, "
            "Tensor out = None)",
        ),
    ),
    (
        "argsort",
        (
            "(Tensor input, *, bool stable, int dim = -1, bool descending = False, Tensor out = "
            "None)",
            "(Tensor input, int dim = -1, bool descending = False)",
        ),
    ),
    (
        "baddbmm",
        (
            "(Tensor input, Tensor batch1, Tensor batch2, *, Number beta = 1, Number alpha = 1, "
            "Tensor out = None)",
            "(Tensor input, Tensor batch1, Tensor batch2, torch.dtype out_dtype, *, Number beta "
            "= 1, Number alpha = 1, Tensor out = None)",
        ),
    ),
    (
        "bartlett_window blackman_window hann_window",
        (
            f"(int window_length, *, {_OPTIONS})",
            f"(int window_length, bool periodic, *, {_OPTIONS})",
        ),
    ),
    (
        "bernoulli",
        (
            "(Tensor input, *, torch.Generator generator = None, Tensor out = None)",
            "(Tensor input, float p, *, torch.Generator generator = None)",
        ),
    ),
    (
        "bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor remainder",
        (
            "(Tensor input, Tensor other, *, Tensor out = None)",
            "(Number self, Tensor other)",
            "(Tensor input, Number other, *, Tensor out = None)",
        ),
    ),
    (
        "bmm mm",
        (
            "(Tensor input, Tensor mat2, *, Tensor out = None)",
            "(Tensor input, Tensor mat2, torch.dtype out_dtype, *, Tensor out = None)",
        ),
    ),
    (
        "bucketize",
        (
            "(Tensor input, Tensor boundaries, *, bool out_int32 = False, bool right = False, "
            "Tensor out = None)",
            "(Number self, Tensor boundaries, *, bool out_int32 = False, bool right = False)",
        ),
    ),
    (
        "clamp clip",
        (
            "(Tensor input, Tensor min = None, Tensor max = None, *, Tensor out = None)",
            "(Tensor input, Number min = None, Number max = None, *, Tensor out = None)",
        ),
    ),
    (
        "clamp_max",
        (
            "(Tensor input, Tensor max, *, Tensor out = None)",
            "(Tensor input, Number max, *, Tensor out = None)",
        ),
    ),
    (
        "clamp_min",
        (
            "(Tensor input, Tensor min, *, Tensor out = None)",
            "(Tensor input, Number min, *, Tensor out = None)",
        ),
    ),
    (
        "copy_",
        ("(Tensor input, Tensor other, bool non_blocking = False)",),
    ),
    (
        "copysign eq fmod ge greater greater_equal gt le less less_equal lt ne not_equal",
        (
            "(Tensor input, Tensor other, *, Tensor out = None)",
            "(Tensor input, Number other, *, Tensor out = None)",
        ),
    ),
    (
        "count_nonzero",
        (
            "(Tensor input, int dim = None)",
            "(Tensor input, tuple of ints dim)",
        ),
    ),
    (
        "div",
        (
            "(Tensor input, Tensor other, *, Tensor out = None)",
            "(Tensor input, Tensor other, *, str rounding_mode, Tensor out = None)",
            "(Tensor input, Number other, *, str rounding_mode)",
        ),
    ),
    (
        "divide",
        (
            "(Tensor input, Tensor other, *, Tensor out = None)",
            "(Tensor input, Tensor other, *, str rounding_mode, Tensor out = None)",
            "(Tensor input, Number other)",
            "(Tensor input, Number other, *, str rounding_mode)",
        ),
    ),
    (
        "dsplit hsplit vsplit",
        (
            "(Tensor input, int sections)",
            "(Tensor input, tuple of ints indices)",
        ),
    ),
    (
        "float_power pow",
        (
            "(Tensor input, Tensor exponent, *, Tensor out = None)",
            "(Number self, Tensor exponent, *, Tensor out = None)",
            "(Tensor input, Number exponent, *, Tensor out = None)",
        ),
    ),
    (
        "floor_divide multiply true_divide",
        (
            "(Tensor input, Tensor other, *, Tensor out = None)",
            "(Tensor input, Number other)",
        ),
    ),
    (
        "hamming_window",
        (
            f"(int window_length, *, {_OPTIONS})",
            f"(int window_length, bool periodic, *, {_OPTIONS})",
            f"(int window_length, bool periodic, float alpha, *, {_OPTIONS})",
            f"(int window_length, bool periodic, float alpha, float beta, *, {_OPTIONS})",
        ),
    ),
    (
        "index_fill",
        (
            "(Tensor input, int dim, Tensor index, Tensor value)",
            "(Tensor input, int dim, Tensor index, Number value)",
        ),
    ),
    (
        "isin",
        (
            "(Tensor elements, Tensor test_elements, *, bool assume_unique = False, bool invert "
            "= False, Tensor out = None)",
            "(Number element, Tensor test_elements, *, bool assume_unique = False, bool invert "
            "= False, Tensor out = None)",
            "(Tensor elements, Number test_element, *, bool assume_unique = False, bool invert "
            "= False, Tensor out = None)",
        ),
    ),
    (
        "kaiser_window",
        (
            f"(int window_length, *, {_OPTIONS})",
            f"(int window_length, bool periodic, *, {_OPTIONS})",
            f"(int window_length, bool periodic, float beta, *, {_OPTIONS})",
        ),
    ),
    (
        "lerp",
        (
            "(Tensor input, Tensor end, Tensor weight, *, Tensor out = None)",
            "(Tensor input, Tensor end, Number weight, *, Tensor out = None)",
        ),
    ),
    (
        "masked_fill",
        (
            "(Tensor input, Tensor mask, Tensor value)",
            "(Tensor input, Tensor mask, Number value)",
        ),
    ),
    (
        "moveaxis movedim",
        (
            "(Tensor input, int source, int destination)",
            "(Tensor input, tuple of ints source, tuple of ints destination)",
        ),
    ),
    (
        "nanquantile quantile",
        (
            "(Tensor input, Tensor q, int dim = None, bool keepdim = False, *, str "
            'interpolation = "linear", Tensor out = None)',
            "(Tensor input, float q, int dim = None, bool keepdim = False, *, str interpolation "
            '= "linear", Tensor out = None)',
        ),
    ),
    (
        "narrow",
        (
            "(Tensor input, int dim, Tensor start, int length)",
            "(Tensor input, int dim, int start, int length)",
        ),
    ),
    (
        "rand randn",
        (
            f"(tuple of ints size, *, torch.Generator generator, Tensor out = None, {_OPTIONS})",
            f"(tuple of ints size, *, Tensor out = None, {_OPTIONS})",
        ),
    ),
    (
        "rand_like randn_like",
        (
            "(Tensor input, *, torch.Generator generator, torch.memory_format memory_format = "
            f"None, {_OPTIONS})",
            f"(Tensor input, *, torch.memory_format memory_format = None, {_OPTIONS})",
        ),
    ),
    (
        "randperm",
        (
            f"(int n, *, torch.Generator generator, Tensor out = None, {_OPTIONS})",
            f"(int n, *, Tensor out = None, {_OPTIONS})",
        ),
    ),
    (
        "repeat_interleave",
        (
            "(Tensor input, Tensor repeats, int dim = None, *, int output_size = None)",
            "(Tensor repeats, *, int output_size = None)",
            "(Tensor input, int repeats, int dim = None, *, int output_size = None)",
        ),
    ),
    (
        "round",
        (
            "(Tensor input, *, Tensor out = None)",
            "(Tensor input, *, int decimals, Tensor out = None)",
        ),
    ),
    (
        "nonzero",
        (
            "(Tensor input)",
            "(Tensor input, *, bool as_tuple)",
        ),
    ),
    (
        "rsub",
        (
            "(Tensor input, Tensor other, *, Number alpha = 1)",
            "(Tensor input, Number other, Number alpha = 1)",
        ),
    ),
    (
        "searchsorted",
        (
            "(Tensor sorted_sequence, Tensor input, *, bool out_int32 = False, bool right = "
            "False, str side = None, Tensor sorter = None, Tensor out = None)",
            "(Tensor sorted_sequence, Number self, *, bool out_int32 = False, bool right = "
            "False, str side = None, Tensor sorter = None, Tensor out = None)",
        ),
    ),
    (
        "squeeze",
        (
            "(Tensor input)",
            "(Tensor input, int dim)",
            "(Tensor input, tuple of ints dim)",
        ),
    ),
    (
        "std var",
        (
            "(Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False, *, "
            "Tensor out = None)",
            "(Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim "
            "= False, Tensor out = None)",
            "(Tensor input, bool unbiased = True)",
        ),
    ),
    (
        "std_mean var_mean",
        (
            "(Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False)",
            "(Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim "
            "= False)",
            "(Tensor input, bool unbiased = True)",
        ),
    ),
    (
        "subtract",
        (
            "(Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)",
            "(Tensor input, Number other, Number alpha = 1)",
        ),
    ),
    (
        "tensor_split",
        (
            "(Tensor input, tuple of ints indices, int dim = 0)",
            "(Tensor input, Tensor tensor_indices_or_sections, int dim = 0)",
            "(Tensor input, int sections, int dim = 0)",
        ),
    ),
    (
        "view",
        (
            "(Tensor input, torch.dtype dtype)",
            "(Tensor input, tuple of ints size)",
        ),
    ),
    (
        "where",
        (
            "(Tensor condition)",
            "(Tensor condition, Tensor input, Tensor other, *, Tensor out = None)",
            "(Tensor condition, Number self, Tensor other)",
            "(Tensor condition, Tensor input, Number other)",
            "(Tensor condition, Number self, Number other)",
        ),
    ),
    (
        "xlogy",
        (
            "(Tensor input, Tensor other, *, Tensor out = None)",
            "(Number self, Tensor other, *, Tensor out = None)",
            "(Tensor input, Number other, *, Tensor out = None)",
        ),
    ),
    (
        "special_zeta special_xlog1py",
        (
            "(Tensor input, Tensor other, *, Tensor out = None)",
            "(Number self, Tensor other, *, Tensor out = None)",
            "(Tensor input, Number other, *, Tensor out = None)",
        ),
    ),
    (
        "special_chebyshev_polynomial_t special_chebyshev_polynomial_u "
        "special_chebyshev_polynomial_v special_chebyshev_polynomial_w "
        "special_hermite_polynomial_h special_hermite_polynomial_he "
        "special_laguerre_polynomial_l special_legendre_polynomial_p "
        "special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u "
        "special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w",
        (
            "(Tensor x, Tensor n, *, Tensor out = None)",
            "(Number x, Tensor n, *, Tensor out = None)",
            "(Tensor x, Number n, *, Tensor out = None)",
        ),
    ),
)

SIGNATURES: dict[str, tuple[str, ...]] = {
    name: texts for names, texts in _LISTED for name in names.split()
}
