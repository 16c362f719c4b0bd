"""Judge torch tensors on their device, with references that exist as a whole or only part by part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from truekernel.errors import BadInputError
from truekernel.model import Axes, Problem, Tensors
from truekernel.model.lengths import lengths
from truekernel.numerics.device import DeviceExecution, DeviceJudge, DeviceOutput
from truekernel.numerics.error_scale import RUNS
from truekernel.numerics.expected import Expected
from truekernel.numerics.names import RHO_LADDER, Tolerance
from truekernel.numerics.reference import expect, published

ROWS = 16
"""Parts are whole multiples of this many rows: they then start where the digest starts a vector."""


def device_output(output: torch.Tensor, want: Expected, *, full: bool = True, first: int = 0) -> DeviceOutput:
    """Addresses of an output and its references, all contiguous and on one device. `full` = False leaves the error out. `first`: see `DeviceOutput`.

    The tensors must outlive what the judge launches.
    """
    return DeviceOutput(
        _address(output),
        _address(want.published),
        want.elements,
        want.dtype,
        want.kind,
        truth=_address(want.truth) if full else 0,
        scale=_address(want.scale) if full else 0,
        spread=_address(want.spread) if full else 0,
        ties=_address(want.ties) if full else 0,
        ties_length=want.ties.shape[-1] if want.ties is not None else 0,
        first=first,
    )


def _address(tensor: torch.Tensor | None) -> int:
    if tensor is None:
        return 0
    if not tensor.is_contiguous():
        raise ValueError(f"a contiguous tensor is needed, got strides {tensor.stride()}")
    return tensor.data_ptr()


def judge_tensors(
    judge: DeviceJudge,
    outputs: Sequence[torch.Tensor],
    expected: Sequence[Expected],
    fill: str,
    tolerances: Sequence[Tolerance] = (),
    rhos: Sequence[float] = RHO_LADDER,
) -> tuple[dict[str, float], str]:
    """`statistics.statistics` and `digest.digest` of tensors on the judge's device."""
    parts = [device_output(output, want) for output, want in zip(outputs, expected, strict=True)]
    return judge.statistics(parts, fill, tolerances, rhos)


def judge_in_parts(
    judge: DeviceJudge,
    problem: Problem,
    inputs: Tensors,
    axes: Axes,
    outputs: Sequence[torch.Tensor],
    fill: str,
    tolerances: Sequence[Tolerance] = (),
    rhos: Sequence[float] = RHO_LADDER,
    *,
    axis: str,
    rows: int,
    full: bool = True,
) -> tuple[list[float | None], str]:
    """Statistics (in the order of their names) and digest of outputs whose references are computed `rows` rows of `axis` at a time.

    `axis` is one of `gates.independent_axes` and leads every output. `full` = False compares with the published value alone. What the default error scale perturbs depends on
    where parts begin; the scale is an estimate either way.
    Raises BadInputError when the axis does not lead every output, or `rows` is not a multiple of 16.
    """
    execution = judge.start(fill, tolerances, rhos)
    start = 0
    for wants in expect_in_parts(problem, inputs, axes, axis=axis, rows=rows, full=full):
        stop = start + wants[0].shape[0]
        for number, (output, want) in enumerate(zip(outputs, wants, strict=True)):
            _add_rows(execution, number, output[start:stop], want, full, start * (output[:1].numel()))
        start = stop
    return execution.values()


def _add_rows(
    execution: DeviceExecution, number: int, output: torch.Tensor, want: Expected, full: bool, first: int
) -> None:
    execution.add(number, device_output(output, want, full=full, first=first))


def expect_in_parts(
    problem: Problem, inputs: Tensors, axes: Axes, *, axis: str, rows: int, full: bool = True, runs: int = RUNS
) -> Iterator[list[Expected]]:
    """What `reference.expect` gives, for `rows` rows of `axis` at a time; without `full` only
    the published values are computed, truth and scale are expanded zeros."""
    if any(spec.shape[:1] != (axis,) or axis in map(str, spec.shape[1:]) for spec in problem.outputs):
        raise BadInputError(f"axis '{axis}' of '{problem.name}' does not lead every output")
    if rows < ROWS or rows % ROWS:
        raise BadInputError(f"{rows} rows at a time: a multiple of {ROWS} is needed")
    for start in range(0, axes[axis], rows):
        length = min(rows, axes[axis] - start)
        part = {spec.name: _rows_of(inputs[spec.name], spec.shape, axis, start, length) for spec in problem.tensors}
        lengths_now = {**axes, axis: length}
        if full:
            yield expect(problem, part, lengths_now, runs=runs)
        else:
            yield _published_alone(problem, part, lengths_now)


def _published_alone(problem: Problem, inputs: Tensors, axes: Axes) -> list[Expected]:
    found = []
    for spec, output in zip(problem.outputs, published(problem, inputs, axes), strict=True):
        nothing = torch.zeros((), dtype=torch.float64, device=output.device).expand(lengths(spec.shape, axes))
        found.append(Expected(spec.name, spec.dtype, spec.kind, output, nothing, nothing))
    return found


def _rows_of(tensor: torch.Tensor, shape: tuple[str | int, ...], axis: str, start: int, length: int) -> torch.Tensor:
    for dim, entry in enumerate(shape):
        if entry == axis:
            tensor = tensor.narrow(dim, start, length)
    return tensor.contiguous()
