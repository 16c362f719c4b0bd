"""What a case's outputs are compared with: published value, float64 truth, error scale."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from truekernel.errors import BadInputError
from truekernel.model import Axes, OutputSpec, Problem, Tensors
from truekernel.numerics.error_scale import ACCUMULATOR, RUNS, deviations, record
from truekernel.numerics.expected import Expected
from truekernel.numerics.formats import FORMATS, TORCH_DTYPES, spacing, unit_roundoff


def widen(inputs: Tensors) -> dict[str, torch.Tensor]:
    """The inputs in float64, exactly; integers as they are."""
    return {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in inputs.items()}


def published(problem: Problem, inputs: Tensors, axes: Axes) -> tuple[torch.Tensor, ...]:
    """The reference run in the inputs' own dtypes with torch on the inputs' device, in the outputs' dtypes: what published checkers compare with."""
    with torch.no_grad():
        outputs = problem.reference(inputs, axes)
    _check(problem, outputs)
    return tuple(
        output.to(TORCH_DTYPES[spec.dtype]).contiguous() for output, spec in zip(outputs, problem.outputs, strict=True)
    )


def expect(problem: Problem, inputs: Tensors, axes: Axes, *, runs: int = RUNS) -> list[Expected]:
    """For each output what it is compared with, at these inputs, on their device (see `Expected`).

    `scale` is `problem.error_scale` or the default of `error_scale.deviations`, joined (root of the sum of squares) by the rounding of the output itself,
    ulp / sqrt(12), where the truth is not exactly representable or anything was rounded on the way.
    `runs`: perturbed runs behind the default scale.
    Raises BadInputError when the reference doesn't return one tensor for each output.
    """
    wide = widen(inputs)
    with torch.no_grad():
        truths = problem.reference(wide, axes)
    _check(problem, truths)
    shown = published(problem, inputs, axes)
    for output, truth, spec in zip(shown, truths, problem.outputs, strict=True):
        if output.shape != truth.shape:
            raise BadInputError(
                f"reference of '{problem.name}' gives '{spec.name}' the shape {tuple(output.shape)} in its own dtype and {tuple(truth.shape)} in float64"
            )
    scales = _scales(problem, inputs, wide, axes, truths, runs)
    result = []
    for spec, output, truth, errors in zip(problem.outputs, shown, truths, scales, strict=True):
        ties, scale = None, errors
        if spec.kind == "index" and problem.ties is not None:
            ties, scale = _ties(problem, wide, axes)
        real = _as_stored(truth.to(torch.float64), spec)
        result.append(
            Expected(
                name=spec.name,
                dtype=spec.dtype,
                kind=spec.kind,
                published=output,
                truth=real.contiguous(),
                scale=_with_rounding(scale, real.reshape(-1), spec).reshape(output.shape),
                ties=ties,
            )
        )
    return result


def _check(problem: Problem, outputs: Sequence[torch.Tensor]) -> None:
    if not isinstance(outputs, tuple) or len(outputs) != len(problem.outputs):
        raise BadInputError(
            f"reference of '{problem.name}' must return a tuple of {len(problem.outputs)} tensors, one for each output"
        )


def accumulator_of(problem: Problem) -> float:
    """Unit roundoff of the precision that a problem accumulates in: float64 where its tensors are, else float32."""
    return unit_roundoff("float64") if any(spec.dtype == "float64" for spec in problem.outputs) else ACCUMULATOR


def _scales(
    problem: Problem, inputs: Tensors, wide: Tensors, axes: Axes, truths: Sequence[torch.Tensor], runs: int
) -> list[torch.Tensor]:
    if problem.error_scale is not None:
        with torch.no_grad():
            given = problem.error_scale(wide, axes)
        return [part.to(torch.float64).reshape(-1).clone() for part in given]
    half = any(tensor.dtype in (torch.float16, torch.bfloat16) for tensor in inputs.values())
    steps = record(lambda: problem.reference(inputs, axes)) if half else ()
    return deviations(
        lambda: problem.reference(wide, axes),
        truths,
        steps=steps,
        accumulator=accumulator_of(problem),
        underflow=_underflow(problem, wide),
        runs=runs,
    )


def _underflow(problem: Problem, wide: Tensors) -> float:
    """Half of the smallest subnormal number of the accumulator where an input comes near it, else 0: in ordinary cases it is far below every other error, and costs time."""
    form = FORMATS["float64" if accumulator_of(problem) < ACCUMULATOR else "float32"]
    near = math.ldexp(1.0, form.least_exponent + form.precision)
    for tensor in wide.values():
        if tensor.is_floating_point() and bool(((tensor != 0) & (tensor.abs() < near)).any()):
            return form.least_subnormal / 2
    return 0.0


def _ties(problem: Problem, wide: Tensors, axes: Axes) -> tuple[torch.Tensor, torch.Tensor]:
    """The table that an index output chooses from, and the error scale of a difference between two of its values."""
    assert problem.ties is not None
    function = problem.ties
    with torch.no_grad():
        table = function(wide, axes).to(torch.float64).contiguous()
    (errors,) = deviations(lambda: (function(wide, axes),), (table,), accumulator=accumulator_of(problem))
    rows = errors.reshape(-1, table.shape[-1])
    return table, math.sqrt(2.0) * (rows.amax(1) if table.numel() else rows.sum(1))


def _as_stored(truth: torch.Tensor, spec: OutputSpec) -> torch.Tensor:
    """The truth, with infinities where the output's dtype rounds it to one."""
    if spec.dtype not in FORMATS or spec.dtype == "float64":
        return truth
    stored = truth.to(TORCH_DTYPES[spec.dtype]).to(torch.float64)
    return torch.where(stored.isinf(), stored, truth)


def _with_rounding(scale: torch.Tensor, truth: torch.Tensor, spec: OutputSpec) -> torch.Tensor:
    if spec.dtype not in FORMATS:
        return scale
    exact = truth.to(TORCH_DTYPES[spec.dtype]).to(torch.float64) == truth
    rounding = spacing(truth, spec.dtype) / math.sqrt(12.0)
    joined = torch.where((scale > 0) | ~exact, _hypot(scale, rounding), 0.0)
    return torch.where(truth.isfinite(), joined, 0.0)


def _hypot(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Root of the sum of squares; on a CPU numpy's, whose bits stored scales have."""
    return torch.from_numpy(np.hypot(a.numpy(), b.numpy())) if a.device.type == "cpu" else torch.hypot(a, b)
