"""A case with its extreme values made moderate: what decides a mismatch only by overflow, underflow, NaN or infinity is not there any more.

Sums of infinities of both signs, products beyond the format and powers that vanish on the way have no one honest answer: another order of the same operations gives another. So a mismatch of values counts where
it stays with moderate values. Operators that work element by element have no order to choose: one dtype's results for finite real arguments must agree at any size.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import torch

from truekernel.fuzz.forms import with_leaves
from truekernel.fuzz.libraries.torch_contracts import named
from truekernel.fuzz.libraries.torch_operators import base_name
from truekernel.fuzz.libraries.torch_values import TORCH_TYPES, make
from truekernel.fuzz.records import Call, Leaf, Operator, TensorValue

MOST_REAL = 32.0
LEAST_REAL = 1e-6
MOST_WHOLE = 1 << 30
EXPONENTS = frozenset({"decimals", "ord", "p", "exponent"})
"""Parameters that something is raised to, or that raise ten, though their type may be a whole number."""


def moderate(call: Call, operator: Operator) -> Call:
    """The call with moderate values; the same object where it has no others."""
    leaves, reals = call.leaves(), _real_slots(call, operator)
    changed: list[Leaf] = [
        _tensor(leaf) if isinstance(leaf, TensorValue) else _scalar(leaf, slot in reals)
        for slot, leaf in enumerate(leaves)
    ]
    same = all(a is b for a, b in zip(leaves, changed, strict=True))
    return call if same else with_leaves(call, changed)


def finite(call: Call) -> Call | None:
    """The call with all that is not finite replaced, and finite extremes kept; None for complex numbers, whose products are made of several."""
    leaves: list[Leaf] = []
    for leaf in call.leaves():
        if isinstance(leaf, TensorValue):
            if "complex" in leaf.dtype:
                return None
            tensor = make(replace(leaf, gradient=False, layout="contiguous")).detach()
            if _floating(leaf) and not bool(tensor.isfinite().all()):
                kept = torch.where(tensor.isfinite(), tensor, 1.5)
                leaf = replace(leaf, data=tuple(kept.reshape(-1).tolist()))  # noqa: PLW2901
        leaves.append(leaf)
    return with_leaves(call, leaves)


def below_limits(call: Call) -> bool:
    """Whether all finite elements of floating tensors are far from the limits of their formats, and no scalar is extreme."""
    for leaf in call.leaves():
        if isinstance(leaf, float) and not LEAST_REAL <= abs(leaf) <= MOST_REAL and leaf != 0:
            return False
        if isinstance(leaf, TensorValue) and _floating(leaf):
            tensor = make(leaf).detach()
            if bool((_extreme(tensor) & tensor.isfinite()).any()):
                return False
    return True


@cache
def pointwise(operator: Operator) -> bool:
    """Whether an operator works element by element, as its overloads are tagged; one without a schema goes by its family."""
    if not operator.schema:
        return operator.family == "elementwise"
    base = base_name(operator.name)
    packets = [getattr(torch.ops.aten, name, None) for name in (f"special_{base}", base)]
    return not operator.name.startswith(("torch.linalg.", "torch.fft.")) and any(
        torch.Tag.pointwise in getattr(packet, one).tags for packet in packets if packet for one in packet.overloads()
    )


def _real_slots(call: Call, operator: Operator) -> set[int]:
    """Leaves that are real numbers or exponents by their parameter, though the case gives whole ones."""
    real = {parameter.name for parameter in operator.parameters if parameter.kind == "real"} | EXPONENTS
    found, slot = set(), 0
    for name, value in named(call, operator):
        if not isinstance(value, tuple) and name in real:
            found.add(slot)
        slot += len(Call("", (value,)).leaves())
    return found


def _scalar(leaf: Leaf, real: bool) -> Leaf:
    if isinstance(leaf, bool) or not isinstance(leaf, int | float) or not (real or isinstance(leaf, float)):
        return leaf
    if leaf == 0 or LEAST_REAL <= abs(leaf) <= MOST_REAL:
        return leaf
    size = 3 if isinstance(leaf, int) else 2.5
    return -size if leaf < 0 else size


def _floating(value: TensorValue) -> bool:
    dtype = TORCH_TYPES[value.dtype]
    return dtype.is_floating_point or dtype.is_complex


def _extreme(tensor: torch.Tensor) -> torch.Tensor:
    """Elements that are no numbers, or whose squares leave the format."""
    parts = torch.view_as_real(tensor.resolve_conj()).unbind(-1) if tensor.is_complex() else (tensor,)
    info = torch.finfo(parts[0].dtype)
    most, least = math.sqrt(info.max), min(math.sqrt(info.smallest_normal), 2.0**-12)
    found = torch.zeros(tensor.shape, dtype=torch.bool)
    for part in parts:
        size = part.double().abs()
        found |= ~part.isfinite() | (size > most) | ((size < least) & (size > 0))
    return found


def _tensor(value: TensorValue) -> TensorValue:
    """The tensor with its extreme elements replaced; by ordinary draws where a recipe made them, so that other seeds still give other values."""
    tensor = make(replace(value, gradient=False, layout="contiguous")).detach()
    if not _floating(value):
        if tensor.dtype is torch.bool or not bool((tensor.double().abs() > MOST_WHOLE).any()):
            return value
    elif not bool(_extreme(tensor).any()):
        return value
    data = None if value.data is None else tuple(_part(part, value.dtype) for part in value.data)
    return replace(value, values="normal" if _floating(value) else "small_integers", data=data)


def _part(part: float | int | bool | str, dtype: str) -> float | int | bool | str:
    if isinstance(part, bool):
        return part
    if isinstance(part, str):
        number = complex(part)
        return repr(complex(_moderated(number.real, dtype), _moderated(number.imag, dtype)))
    if isinstance(part, int):
        return part if abs(part) <= MOST_WHOLE else int(math.copysign(abs(part) % 5 + 1, part))
    return _moderated(part, dtype)


def _moderated(number: float, dtype: str) -> float:
    """A number of the same sign and mantissa from 0.5 to 2; one that is moderate already stays."""
    if math.isnan(number):
        return 0.75
    if math.isinf(number):
        return math.copysign(2.0, number)
    kind = TORCH_TYPES[dtype]
    info = torch.finfo(kind if kind.is_floating_point else torch.float64 if dtype == "complex128" else torch.float32)
    most, least = math.sqrt(info.max), min(math.sqrt(info.smallest_normal), 2.0**-12)
    if number == 0 or least <= abs(number) <= most:
        return number
    return math.frexp(number)[0] * (2.0 if abs(number) > most else 1.0)
