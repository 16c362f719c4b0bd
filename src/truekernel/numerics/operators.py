"""What the error scale needs to know about torch operators: which are exact, which gather many terms, how exact the others are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

_EXACT_NAMES = """
    abs neg relu sign positive clamp clamp_min clamp_max clip maximum minimum fmax fmin max min amax amin aminmax argmax argmin topk sort
    kthvalue median mode where masked_fill masked_select gather scatter index index_put index_select take take_along_dim embedding
    cat stack flip roll triu tril constant_pad_nd pad reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d clone copy
    _to_copy convert_element_type broadcast_in_dim lift_fresh lift_fresh_copy detach detach_ alias contiguous repeat repeat_interleave
    fill zero zeros ones full empty arange scalar_tensor eye zeros_like ones_like full_like empty_like new_zeros new_ones new_full
    new_empty new_empty_strided empty_strided floor ceil round trunc eq ne lt le gt ge isnan isinf isfinite logical_and logical_or
    logical_not bitwise_and bitwise_or bitwise_not any all hardtanh threshold max_pool1d max_pool2d max_pool3d max_pool2d_with_indices
    max_pool3d_with_indices adaptive_max_pool1d adaptive_max_pool2d upsample_nearest1d upsample_nearest2d signbit copysign nan_to_num
    unsafe_view _reshape_alias _unsafe_view one_hot searchsorted bucketize pixel_shuffle im2col _local_scalar_dense item nonzero cummax
    cummin remainder fmod
"""
EXACT = frozenset(_EXACT_NAMES.split())
"""Operators whose result needs no rounding."""

TRANSCENDENTAL: dict[str, float] = {
    "sqrt": 3.0,
    "exp": 2.0,
    "exp2": 2.0,
    "expm1": 2.0,
    "log": 2.0,
    "log2": 2.0,
    "log10": 2.0,
    "log1p": 2.0,
    "erf": 4.0,
    "erfc": 4.0,
    "tanh": 2.0,
    "sin": 2.0,
    "cos": 2.0,
    "tan": 4.0,
    "sinh": 3.0,
    "cosh": 2.0,
    "asin": 4.0,
    "acos": 3.0,
    "atan": 2.0,
    "rsqrt": 3.0,
    "sigmoid": 3.0,
    "pow": 4.0,
    "atan2": 3.0,
    "lgamma": 6.0,
    "logaddexp": 3.0,
}
"""Largest error in ulp that a GPU's own functions are documented with (CUDA C++ Programming Guide, "Mathematical Functions", single precision), at
least 2 and for combined functions a sum of their parts; in units of u here. erf and erfc count double: just below 1, where one minus erf cancels, an ulp
is u, and vectorised library versions are off by as much. sqrt counts as rsqrt does, since kernels use one for the other. Everything else rounds once."""

SUMS = frozenset(
    (
        "sum",
        "mean",
        "nansum",
        "prod",
        "avg_pool1d",
        "avg_pool2d",
        "avg_pool3d",
        "_adaptive_avg_pool2d",
        "adaptive_avg_pool1d",
    )
)
"""Results that gather several elements of their first argument."""

SCANS = frozenset(("cumsum", "cumprod", "logcumsumexp"))
"""Result k gathers elements 0..k along a dimension."""

PRODUCTS: dict[str, tuple[int, int]] = {
    "mm": (0, 1),
    "bmm": (0, 1),
    "mv": (0, 1),
    "dot": (0, 1),
    "addmm": (1, 2),
    "baddbmm": (1, 2),
    "addmv": (1, 2),
}
"""Positions of the two factors; the inner dimension is the last one of the first."""


def base_name(func: torch._ops.OpOverload) -> str:
    """Name of an operator without overload and without the underscore of its in-place form."""
    name: str = func.overloadpacket.__name__
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def terms(name: str, args: Sequence[Any], result: torch.Tensor | None = None) -> tuple[int, int] | None:
    """(position of the argument whose elements are the terms, number of terms that a result gathers), or None for other operators.

    `result`: needed for sums, whose number of terms is the ratio of sizes.
    """
    if name in PRODUCTS:
        position = PRODUCTS[name][0]
        return position, max(args[position].shape[-1], 1)
    if name == "convolution":
        weight, transposed = args[1], args[6]
        return 0, max(weight.numel() // max(weight.shape[1 if transposed else 0], 1), 1)
    if name.startswith("avg_pool"):
        kernel = args[1] if isinstance(args[1], list | tuple) else [args[1]]
        return 0, max(math.prod(kernel), 1)
    if name in SUMS and result is not None:
        return 0, max(args[0].numel() // max(result.numel(), 1), 1)
    return None
