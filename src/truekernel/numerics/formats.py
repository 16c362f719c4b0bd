"""Float formats: unit roundoffs, spacings, and tensors as raw bytes.

Sources: IEEE 754-2019 for binary64, binary32 and binary16; bfloat16 as in Intel's "BFLOAT16 - Hardware Numerics
Definition" (2018), with subnormals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from truekernel.model import ITEM_BYTES, DType

TORCH_DTYPES: dict[str, torch.dtype] = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float64": torch.float64,
    "int32": torch.int32,
    "int64": torch.int64,
    "uint8": torch.uint8,
}
DTYPE_NAMES: dict[torch.dtype, DType] = {value: key for key, value in TORCH_DTYPES.items()}  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary floating-point format. `precision`: bits of the significand with the hidden one; `least_exponent`: exponent of
    the smallest normal number 2**least_exponent; `largest`: largest finite value."""

    name: str
    precision: int
    least_exponent: int
    largest: float

    @property
    def unit_roundoff(self) -> float:
        """u: largest relative error of rounding to nearest in the normal range, 2**-precision."""
        return math.ldexp(1.0, -self.precision)

    @property
    def least_subnormal(self) -> float:
        """Smallest positive value."""
        return math.ldexp(1.0, self.least_exponent - self.precision + 1)


FORMATS: dict[str, FloatFormat] = {
    "float64": FloatFormat("float64", 53, -1022, math.ldexp(2.0 - math.ldexp(1.0, -52), 1023)),
    "float32": FloatFormat("float32", 24, -126, math.ldexp(2.0 - math.ldexp(1.0, -23), 127)),
    "float16": FloatFormat("float16", 11, -14, 65504.0),
    "bfloat16": FloatFormat("bfloat16", 8, -126, math.ldexp(2.0 - math.ldexp(1.0, -7), 127)),
}


def is_float(dtype: str) -> bool:
    """Whether `dtype` (a name of `model.DType`) is a floating-point format."""
    return dtype in FORMATS


def unit_roundoff(dtype: str) -> float:
    """u of a float format; 0 for integer types, which are exact."""
    return FORMATS[dtype].unit_roundoff if dtype in FORMATS else 0.0


def ulp(values: np.ndarray, dtype: str) -> np.ndarray:
    """Spacing of `dtype` at each float64 value: 2**(max(floor(log2|v|), least exponent) - precision + 1); 0 for integer types.

    Zero and subnormal values give the spacing of subnormals; what is returned for NaN and infinities is finite but means nothing.
    """
    if dtype not in FORMATS:
        return np.zeros(values.shape)
    form = FORMATS[dtype]
    exponents = np.frexp(np.where(np.isfinite(values), values, 1.0))[1] - 1
    exponents = np.where(values == 0, form.least_exponent, np.maximum(exponents, form.least_exponent))
    return np.ldexp(1.0, exponents - form.precision + 1)


def spacing(values: torch.Tensor, dtype: str) -> torch.Tensor:
    """`ulp` for a float64 tensor on any device; the same bits."""
    if dtype not in FORMATS:
        return torch.zeros_like(values)
    form = FORMATS[dtype]
    biased = (values.contiguous().view(torch.int64) >> 52) & 0x7FF
    exponents = torch.where(biased == 0x7FF, 0, biased - 1023).clamp_min(form.least_exponent)
    return power_of_two(exponents - (form.precision - 1))


def power_of_two(exponents: torch.Tensor) -> torch.Tensor:
    """2**exponents as float64, exactly, for int64 exponents from -1074 to 1023. (pow and ldexp of torch are not exact on every device.)"""
    normal = (exponents + 1023) << 52
    subnormal = torch.ones_like(exponents) << (exponents + 1074).clamp(0, 52)
    return torch.where(exponents >= -1022, normal, subnormal).view(torch.float64)


def raw(tensor: torch.Tensor) -> torch.Tensor:
    """Bytes of a tensor in row-major order, as a flat uint8 tensor on its device; shares its memory where it can."""
    if not tensor.numel():
        return torch.empty(0, dtype=torch.uint8, device=tensor.device)
    flat = tensor.detach().contiguous().view(-1)
    if flat.stride(0) != 1:  # one expanded element
        flat = flat.clone(memory_format=torch.contiguous_format)
    return flat.view(torch.uint8)


def to_bytes(tensor: torch.Tensor) -> bytes:
    """Raw little-endian bytes of a CPU tensor in row-major order."""
    return raw(tensor).numpy().tobytes()


def from_bytes(data: bytes, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
    """The tensor that `to_bytes` wrote. Raises ValueError when the number of bytes does not fit the shape."""
    wanted = math.prod(shape) * ITEM_BYTES[dtype]
    if len(data) != wanted:
        raise ValueError(f"{len(data)} bytes do not hold a {dtype} tensor of shape {shape}: {wanted} are needed")
    if not data:
        return torch.empty(shape, dtype=TORCH_DTYPES[dtype])
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).view(TORCH_DTYPES[dtype]).view(shape)


def to_float64(tensor: torch.Tensor) -> np.ndarray:
    """Values of a CPU tensor of any dtype as a flat float64 array (exact for all floats and for integers up to 2**53)."""
    return tensor.detach().contiguous().view(-1).to(torch.float64).numpy()


def poisoned(tensor: torch.Tensor) -> np.ndarray:
    """Flat boolean array: elements all of whose bytes are 0xFF, the poison of buffers that no kernel wrote."""
    if not tensor.numel():
        return np.zeros(0, dtype=bool)
    return (raw(tensor).numpy().reshape(tensor.numel(), -1) == 0xFF).all(axis=1)
