"""From outputs to statistics: the one place where the worker's results meet the references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from truekernel.model import Fill, LaunchPlan
from truekernel.numerics.expected import Expected
from truekernel.numerics.formats import TORCH_DTYPES
from truekernel.numerics.statistics import statistics


def judge(
    outputs: Sequence[torch.Tensor],
    expected: Sequence[Expected],
    fill: Fill,
    tolerances: Sequence[tuple[float, float]],
    rhos: Sequence[float],
) -> Mapping[str, float]:
    """Statistics of one execution, by name, as `numerics.statistics` defines them."""
    shaped = [output.view(want.shape) for output, want in zip(outputs, expected, strict=True)]
    return statistics(shaped, expected, fill, tolerances, rhos)


def output_tensors(data: Sequence[memoryview], plan: LaunchPlan) -> list[torch.Tensor]:
    """Outputs that a worker sent, one tensor for each output of the plan. Raises ValueError when their sizes are wrong."""
    tensors = []
    for raw, buffer in zip(data, plan.outputs, strict=True):
        spec = plan.buffers[buffer]
        dtype = TORCH_DTYPES[spec.dtype]
        if len(raw) != spec.nbytes:
            raise ValueError(f"output '{spec.name}' has {len(raw)} bytes, {spec.nbytes} expected")
        flat = torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(dtype) if spec.nbytes else torch.empty(0, dtype=dtype)
        tensors.append(flat.view(spec.shape))
    return tensors
