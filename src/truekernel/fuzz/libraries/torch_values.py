"""Tensors of torch from their descriptions: where elements lie (layout) and what they are (values)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from truekernel.fuzz.records import TensorValue

TORCH_TYPES: dict[str, torch.dtype] = {
    str(value).removeprefix("torch."): value for value in vars(torch).values() if isinstance(value, torch.dtype)
}
GUARD = 512
"""Bytes before and after the elements when neighbours are controlled."""
MOST_ELEMENTS = 1 << 24
HUGE = 1 << 33


def geometry(shape: tuple[int, ...], layout: str) -> tuple[tuple[int, ...], int, int]:
    """(strides, storage offset, elements of storage) of a layout, in elements. Raises ValueError for a storage of more than 2**24 elements."""
    empty = 0 in shape
    if layout == "strided" and shape:
        strides = _row_major((*shape[:-1], shape[-1] * 2))
        strides = (*strides[:-1], 2)
    elif layout == "transposed" and len(shape) > 1:
        strides = tuple(reversed(_row_major(tuple(reversed(shape)))))
    elif layout == "channels_last" and len(shape) in (4, 5):
        n, c, *rest = shape
        order = _row_major((n, *rest, c))
        strides = (order[0], order[-1], *order[1:-1])
    elif layout == "expanded" and any(size > 1 for size in shape):
        largest = shape.index(max(shape))
        strides = _row_major(tuple(1 if axis == largest else size for axis, size in enumerate(shape)))
        strides = tuple(0 if axis == largest else stride for axis, stride in enumerate(strides))
    elif layout == "overlapping" and len(shape) > 1:
        strides = tuple(1 for _ in shape)
    elif layout == "huge_stride":
        strides = tuple(
            HUGE if size <= 1 or empty else stride for size, stride in zip(shape, _row_major(shape), strict=True)
        )
    else:
        strides = _row_major(shape)
    offset = 5 if layout == "offset" else 0
    reach = 0 if empty else 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    if offset + reach > MOST_ELEMENTS:
        raise ValueError(
            f"a tensor of shape {shape} with layout {layout} takes {reach} elements: more than {MOST_ELEMENTS}"
        )
    return strides, offset, offset + reach


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    if step > 1 << 62:
        raise ValueError(f"strides of shape {shape} do not fit 63 bits")
    return tuple(reversed(strides))


def make(value: TensorValue, neighbours: int | None = None) -> torch.Tensor:
    """The tensor that `value` describes. `neighbours`: a byte that fills 512 bytes before and after its storage and the gaps between its elements, which
    the tensor then does not own alone. Raises ValueError for what can't be made."""
    dtype = TORCH_TYPES.get(value.dtype)
    if dtype is None:
        raise ValueError(f"torch has no dtype {value.dtype}")
    strides, offset, elements = geometry(value.shape, value.layout)
    unique = value.layout not in ("expanded", "overlapping")
    if unique and neighbours is None and value.layout == "contiguous":
        tensor = drawn(value, dtype, value.shape)
    else:
        around = 0 if neighbours is None else GUARD // dtype.itemsize
        if neighbours is None:
            storage = torch.zeros(elements, dtype=dtype)
        else:
            filled = torch.full(((elements + 2 * around) * dtype.itemsize,), neighbours, dtype=torch.uint8)
            storage = filled.view(dtype)
        if unique:
            tensor = storage.as_strided(value.shape, strides, offset + around)
            if tensor.numel():
                tensor.copy_(drawn(value, dtype, value.shape))
        else:
            storage[around : around + elements].copy_(drawn(value, dtype, (elements,)))
            tensor = storage.as_strided(value.shape, strides, offset + around)
    return tensor.requires_grad_() if value.gradient and (dtype.is_floating_point or dtype.is_complex) else tensor


def drawn(value: TensorValue, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """Values by recipe, contiguous. Literal data repeat when there are more elements than data."""
    count = math.prod(shape)
    if value.data is not None and value.data:
        numbers = [complex(part) if isinstance(part, str) else part for part in value.data]
        wanted = [numbers[place % len(numbers)] for place in range(count)]
        return (
            _as_dtype(torch.tensor(wanted, dtype=_carrier(numbers)), dtype).reshape(shape)
            if wanted
            else torch.empty(shape, dtype=dtype)
        )
    generator = torch.Generator().manual_seed(value.seed)
    if dtype is torch.bool:
        bits = torch.randint(0, 2, (count,), generator=generator, dtype=torch.uint8)
        constant = {"zeros": 0, "ones": 1}.get(value.values)
        return (bits if constant is None else bits.fill_(constant)).to(torch.bool).reshape(shape)
    if dtype.is_complex:
        part = torch.float64 if dtype is torch.complex128 else torch.float32
        both = torch.stack([_real(value, part, shape, generator), _real(value, part, shape, generator)], dim=-1)
        return torch.view_as_complex(both).to(dtype)
    if dtype.is_floating_point:
        return _real(value, dtype, shape, generator)
    return _whole(value, dtype, shape, generator)


def _carrier(numbers: list[Any]) -> torch.dtype:
    if any(isinstance(part, complex) for part in numbers):
        return torch.complex128
    if any(isinstance(part, float) for part in numbers):
        return torch.float64
    return torch.int64


def _as_dtype(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return tensor if tensor.dtype is dtype else tensor.to(dtype)


def _square(rows: torch.Tensor) -> torch.Tensor:
    """Symmetric positive definite matrices in the last two dimensions, where these are square."""
    if rows.dim() < 2 or rows.shape[-1] != rows.shape[-2]:
        return rows
    size = rows.shape[-1]
    return rows @ rows.mT / max(size, 1) + torch.eye(size, dtype=rows.dtype)


def _special(normal: torch.Tensor, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    info = torch.finfo(dtype)
    table = torch.tensor(
        [math.nan, math.inf, -math.inf, 0.0, -0.0, info.smallest_normal / 2, info.max, info.min, 1.0, info.eps],
        dtype=torch.float64,
    )
    places = torch.randint(0, 3 * len(table), normal.shape, generator=generator)
    return torch.where(places < len(table), table[places.clamp_max(len(table) - 1)], normal)


_RECIPES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "unit": lambda normal: torch.special.ndtr(normal).clamp(1e-6, 1 - 1e-6),
    "positive": lambda normal: normal.abs() + 0.0625,
    "small_integers": lambda normal: (normal * 3).round(),
    "zeros": torch.zeros_like,
    "ones": torch.ones_like,
    "ties": lambda normal: normal.sign(),
    "negative": lambda normal: -normal.abs() - 0.0625,
    "large": lambda normal: normal * 1000.0,
    "tiny": lambda normal: normal * 1e-4,
    "symmetric": _square,
    "triangular": lambda normal: (
        (normal.tril() + 2 * torch.eye(*normal.shape[-2:], dtype=normal.dtype)) if normal.dim() > 1 else normal
    ),
}


def _real(value: TensorValue, dtype: torch.dtype, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    wide = torch.float64 if dtype is torch.float64 else torch.float32
    normal = torch.randn(shape, generator=generator, dtype=wide)
    if value.values in ("normal", "same"):
        return _as_dtype(normal, dtype)
    if value.values in _RECIPES:
        return _as_dtype(_RECIPES[value.values](normal), dtype)
    if value.values == "index":
        return _as_dtype((normal.abs() * 1e6).remainder(max(value.bound, 1)).floor(), dtype)
    info = torch.finfo(dtype)
    if value.values == "subnormal":
        return (normal.double() * info.smallest_normal / 8).to(dtype)
    if value.values == "nan":
        return torch.where(normal > 0.5, math.nan, normal).to(dtype)
    if value.values == "infinite":
        return torch.where(normal > 0.5, math.inf, torch.where(normal < -0.5, -math.inf, normal)).to(dtype)
    if value.values == "mixed":
        return _special(normal.double(), dtype, generator).to(dtype)
    ends = torch.tensor([info.min, info.max], dtype=torch.float64)
    return ends[(normal > 0).long()].to(dtype)


def _whole(value: TensorValue, dtype: torch.dtype, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    info = torch.iinfo(dtype)
    least = 0 if info.min == 0 else -9
    ranges = {
        "positive": (1, 10), "unit": (0, 2), "zeros": (0, 1), "ones": (1, 2), "ties": (0, 2), "negative": (max(info.min, -9), min(0, info.max)), "large": (0, min(info.max, 1000)),
    }  # fmt: skip
    if value.values == "index":
        return torch.randint(0, max(value.bound, 1), shape, generator=generator).to(dtype)
    if value.values in ("extreme", "mixed", "infinite"):
        top = min(info.max, torch.iinfo(torch.int64).max)
        table = torch.tensor(
            [info.min, top] if value.values == "extreme" else [info.min, top, 0, 1, max(info.min, -1)],
            dtype=torch.int64,
        )
        return table[torch.randint(0, len(table), shape, generator=generator)].to(dtype)
    low, high = ranges.get(value.values, (least, 10))
    if low == high:  # an unsigned type has nothing negative
        low, high = 0, 10
    return torch.randint(low, high, shape, generator=generator).to(dtype)


def describe(tensor: torch.Tensor, most_data: int = 256) -> TensorValue | None:
    """A description whose tensor is alike: the same shape and dtype, integers literally, floats by the recipe that fits. None: no dense CPU tensor."""
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested or tensor.device.type != "cpu":
        return None
    name = str(tensor.dtype).removeprefix("torch.")
    shape = tuple(tensor.shape)
    tensor = tensor.detach()
    if tensor.dtype is torch.bool or not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        flat = tensor.reshape(-1)
        if flat.numel() <= most_data:
            bound = max([int(part) for part in flat.tolist()], default=0) + 1
            return TensorValue(shape, name, values="index", bound=max(bound, 1), data=tuple(flat.tolist()))
        least, most = int(flat.min()), int(flat.max())
        return TensorValue(shape, name, values="index" if least >= 0 else "small_integers", bound=most + 1)
    if tensor.dtype.is_complex or tensor.numel() == 0:
        return TensorValue(shape, name)
    return TensorValue(shape, name, values=_recipe(tensor.double()))


def _recipe(tensor: torch.Tensor) -> str:
    if not tensor.isfinite().all():
        return "normal"
    matrix = tensor.dim() > 1 and tensor.shape[-1] == tensor.shape[-2] and tensor.shape[-1] > 1
    if matrix and torch.allclose(tensor, tensor.mT) and not torch.linalg.cholesky_ex(tensor).info.any():
        return "symmetric"
    if matrix and (torch.equal(tensor, tensor.tril()) or torch.equal(tensor, tensor.triu())):
        return "triangular"
    if (tensor == 0).all():
        return "zeros"
    if (tensor == 1).all():
        return "ones"
    if tensor.numel() > 1 and (tensor == tensor.round()).all():
        return "small_integers"
    if tensor.numel() > 3 and (tensor > 0).all():
        return "unit" if (tensor < 1).all() else "positive"
    return "normal"
