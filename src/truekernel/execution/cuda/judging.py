"""From outputs to statistics: the one place where a worker's results meet the references. Usually on the device, else here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import torch

from truekernel.errors import MachineError
from truekernel.execution.cuda.compile import compile_single
from truekernel.execution.cuda.library import Library
from truekernel.execution.cuda.options import Options
from truekernel.model import Fill, LaunchPlan
from truekernel.numerics import device
from truekernel.numerics.expected import Expected
from truekernel.numerics.formats import TORCH_DTYPES
from truekernel.numerics.names import statistic_names
from truekernel.numerics.statistics import statistics

Tolerances = Sequence[tuple[float, float]]


def judge(
    values: Sequence[float] | None,
    outputs: Sequence[torch.Tensor] | None,
    expected: Sequence[Expected],
    fill: Fill,
    tolerances: Tolerances,
    rhos: Sequence[float],
) -> Mapping[str, float]:
    """Statistics of one execution by name, as `numerics.statistics` defines them: from the `values` that a worker found on the device, else from
    `outputs`, which are needed then."""
    if values is not None:
        return dict(zip(statistic_names(tolerances, rhos), values, strict=True))
    assert outputs is not None
    shaped = [output.view(want.shape) for output, want in zip(outputs, expected, strict=True)]
    return statistics(shaped, expected, fill, tolerances, rhos)


def judge_kernels(expected: Iterable[Expected], tolerances: Tolerances, rhos: Sequence[float]) -> tuple[str, ...]:
    """Name expressions of the kernels that judge such outputs; a worker's buffers are aligned."""
    found = {
        device.judge_kernel(e.dtype, True, True, len(tolerances), len(rhos), spread=e.spread is not None)
        for e in expected
    }
    return (*sorted(found), device.COMBINE)


@lru_cache(maxsize=64)
def judge_library(kernels: tuple[str, ...], arch: str) -> Library:
    """Machine code of judging kernels. Raises NvrtcMissingError, or MachineError when the compiler refuses them."""
    library = compile_single(device.source(), kernels, Options(arch=arch, fma=False))
    if not isinstance(library, Library):
        raise MachineError(f"the judging kernels do not compile for {arch}: {library}")
    return library


def output_tensors(data: Sequence[memoryview], plan: LaunchPlan) -> list[torch.Tensor]:
    """Outputs that a worker sent, one tensor for each output of the plan. Raises ValueError when their sizes are wrong."""
    tensors = []
    for raw, buffer in zip(data, plan.outputs, strict=True):
        spec = plan.buffers[buffer]
        dtype = TORCH_DTYPES[spec.dtype]
        if len(raw) != spec.nbytes:
            raise ValueError(f"output '{spec.name}' has {len(raw)} bytes, {spec.nbytes} expected")
        if spec.nbytes:
            flat = torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(dtype)
        else:
            flat = torch.empty(0, dtype=dtype)
        tensors.append(flat.view(spec.shape))
    return tensors
