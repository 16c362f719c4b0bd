"""Cases as requests to the native server: checked tensors, roles of buffers, contents that an allocator would have left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from truekernel.errors import BadInputError
from truekernel.execution.simt import wire
from truekernel.model import LaunchPlan
from truekernel.numerics.expected import Expected
from truekernel.numerics.formats import DTYPE_NAMES


def definition(
    number: int,
    plan: LaunchPlan,
    inputs: Mapping[str, torch.Tensor],
    expected: Sequence[Expected] | None,
    stale: Sequence[torch.Tensor] | None,
    mutates: Sequence[str],
) -> list[bytes | memoryview]:
    """The request that defines case `number`. Raises BadInputError when tensors do not fit the plan."""
    tensors = [
        _checked_input(spec.name, inputs, spec.dtype, spec.elements) for spec in plan.buffers if spec.init == "input"
    ]
    if expected is not None:
        _check_expected(plan, expected)
    roles = [_role(plan, k, mutates) for k in range(len(plan.buffers))]
    data = [wire.tensor_bytes(t) for t in tensors]
    return wire.definition(number, plan, data, roles, expected, _stale_bytes(plan, stale))


def _role(plan: LaunchPlan, k: int, mutates: Sequence[str]) -> int:
    spec = plan.buffers[k]
    if spec.init == "input":
        return wire.ROLE_INPUT | (wire.ROLE_MUTABLE if k in plan.outputs or spec.name in mutates else 0)
    return wire.ROLE_ZEROED if spec.init == "zeros" else wire.ROLE_SCRATCH


def _checked_input(name: str, inputs: Mapping[str, torch.Tensor], dtype: str, elements: int) -> torch.Tensor:
    tensor = inputs.get(name)
    if tensor is None:
        raise BadInputError(f"no input '{name}': given are {', '.join(inputs) or 'none'}")
    if DTYPE_NAMES.get(tensor.dtype) != dtype or tensor.numel() != elements:
        raise BadInputError(
            f"input '{name}' has {tensor.numel()} elements of {tensor.dtype}, wanted {elements} of {dtype}"
        )
    return tensor


def _check_expected(plan: LaunchPlan, expected: Sequence[Expected]) -> None:
    if len(expected) != len(plan.outputs):
        raise BadInputError(f"{len(expected)} expected outputs for a plan with {len(plan.outputs)}")
    for buffer, want in zip(plan.outputs, expected, strict=True):
        spec = plan.buffers[buffer]
        if want.elements != spec.elements or want.dtype != spec.dtype:
            raise BadInputError(
                f"expected '{want.name}' has {want.elements} elements of {want.dtype}, the plan {spec.elements} of {spec.dtype}"
            )


def _stale_bytes(plan: LaunchPlan, stale: Sequence[torch.Tensor] | None) -> list[tuple[int, memoryview | bytes]]:
    if stale is None:
        return []
    if len(stale) != len(plan.outputs):
        raise BadInputError(f"{len(stale)} stale tensors for a plan with {len(plan.outputs)} outputs")
    leftovers = b"".join(bytes(wire.tensor_bytes(t)) for t in stale)
    own = {buffer: wire.tensor_bytes(t) for buffer, t in zip(plan.outputs, stale, strict=True)}
    result: list[tuple[int, memoryview | bytes]] = []
    for k, spec in enumerate(plan.buffers):
        if spec.init != "empty" or not spec.nbytes:
            continue
        data = own.get(k, b"")
        if len(data) < spec.nbytes and leftovers:
            data = (leftovers * (spec.nbytes // len(leftovers) + 1))[: spec.nbytes]
        if data:
            result.append((k, data[: spec.nbytes]))
    return result
