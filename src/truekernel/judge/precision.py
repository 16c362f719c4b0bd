"""In which precision does a candidate compute? Its errors are compared with those of twins: the reference on inputs rounded to a narrower format, the rest exact.

A twin rounds as hardware rounds (to nearest); where a candidate takes the same inputs through the same format, its errors are the twin's, up to honest arithmetic. So two
things are measured over elements: the size of the errors, and how much of them is explained by the twin's.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from truekernel.judge.steps import Step
from truekernel.model import Problem
from truekernel.numerics import Expected
from truekernel.numerics.formats import TORCH_DTYPES
from truekernel.numerics.gates import round_significand
from truekernel.numerics.reference import widen

TF32_BITS, HALF_BITS, BFLOAT16_BITS, FP8_BITS = 11, 11, 8, 4


@dataclass(frozen=True, slots=True)
class Precision:
    """`name` on the command line; `bits` of the significand to which inputs are rounded; `outputs`: outputs are rounded too, as where results are stored in that format."""

    name: str
    bits: int
    outputs: bool


BELOW: dict[str, tuple[Precision, ...]] = {
    "float64": (Precision("float32", 24, outputs=True),),
    "float32": (
        Precision("tf32", TF32_BITS, outputs=False),
        Precision("float16", HALF_BITS, outputs=True),
        Precision("bfloat16", BFLOAT16_BITS, outputs=True),
    ),
    "float16": (Precision("bfloat16", BFLOAT16_BITS, outputs=True), Precision("float8", FP8_BITS, outputs=False)),
    "bfloat16": (Precision("float8", FP8_BITS, outputs=False),),
}
"""Narrower precisions that a problem of a dtype may be computed in without saying so."""
NAMES = tuple(dict.fromkeys(p.name for below in BELOW.values() for p in below))
EXPLAINED = 0.7
"""Cosine between a candidate's errors and a twin's from which on the twin explains them; of independent errors over n elements it is about 1/sqrt(n)."""
LARGER = 4.0
"""... and they must be so many times larger than the error scale of the declared precision."""
LEAST_ELEMENTS = 64
MOST_STEPS = 6
"""Cases that are looked at."""
TRIALS = 8
"""Twins behind the allowance of a declared lower precision, each rounded at random."""
UNCERTAIN = 2.0
"""A deviation from so few trials comes out three times too small in one of 5,000 elements: this factor, and the bound's own margin, make up for it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`found`: the precision in which a candidate computes, "" where nothing could be told; `why`: the numbers behind it."""

    declared: str
    found: str
    why: str


def native(problem: Problem) -> str:
    """The narrowest floating-point dtype of a problem's outputs; "" where all are integers."""
    order = ("bfloat16", "float16", "float32", "float64")
    present = {spec.dtype for spec in problem.outputs}
    return next((name for name in order if name in present), "")


def twin(
    problem: Problem, step: Step, precision: Precision, generator: torch.Generator | None = None
) -> list[torch.Tensor]:
    """Float64 outputs of the reference on a step's inputs in a narrower precision. `generator`: round up or down at random instead of to nearest."""
    wide = {
        name: _rounded(tensor, precision.bits, generator) if tensor.is_floating_point() else tensor
        for name, tensor in widen(step.inputs).items()
    }
    with torch.no_grad():
        outputs = problem.reference(wide, step.case.lengths)
    return [
        _rounded(output.double(), precision.bits, generator)
        if precision.outputs and output.is_floating_point()
        else output.double()
        for output in outputs
    ]


def _rounded(values: torch.Tensor, bits: int, generator: torch.Generator | None) -> torch.Tensor:
    if generator is None:
        return round_significand(values, bits)
    noise = (torch.rand(values.shape, generator=generator, dtype=torch.float64) - 0.5) * 2.0 ** (1 - bits)
    return round_significand(values * (1.0 + noise), bits)


def determine(problem: Problem, declared: str, seen: Sequence[tuple[Step, Sequence[torch.Tensor]]]) -> Finding:
    """What precision the outputs of a candidate show. `seen`: steps and its outputs there, those of random values and moderate size tell."""
    base = native(problem)
    if not base:
        return Finding(declared, "", "the outputs are whole numbers")
    best: tuple[float, float, str] | None = None
    size, count = 0.0, 0
    telling = [(step, outputs) for step, outputs in seen if _tells(step, outputs)][:MOST_STEPS]
    for step, outputs in telling:
        error, scale = _errors(outputs, step.expected)
        ratio = float((error / scale).square().mean().sqrt()) if error.numel() else 0.0
        size, count = max(size, ratio), count + error.numel()
        # Errors as small as the declared precision's own need no other explanation.
        for precision in BELOW[base] if ratio >= LARGER else ():
            narrow, _ = _errors([o.to(torch.float64) for o in twin(problem, step, precision)], step.expected)
            if narrow.shape != error.shape or not bool((narrow != 0).any()):
                continue
            explained = float(torch.nn.functional.cosine_similarity(error / scale, narrow / scale, dim=0))
            if explained >= EXPLAINED and (best is None or explained > best[0]):
                best = (explained, ratio, precision.name)
    if count < LEAST_ELEMENTS:
        return Finding(declared, "", f"{count} elements of random values tell nothing")
    if best is not None:
        return Finding(
            declared, best[2], f"errors of {best[1]:.3g} error scales, {best[0]:.0%} alike those of {best[2]}"
        )
    quantised = _stored_narrow(problem, telling)
    if quantised:
        return Finding(declared, quantised, f"all outputs are numbers of {quantised}")
    if size >= LARGER * LARGER:
        return Finding(declared, "", f"errors of {size:.3g} error scales, like those of no known precision")
    return Finding(declared, base, f"errors of {size:.3g} error scales at most")


def _tells(step: Step, outputs: Sequence[torch.Tensor]) -> bool:
    recipe = step.case.recipe
    return (
        recipe.startswith(("normal", "signed"))
        and "+" not in recipe
        and "@" not in recipe
        and len(outputs) == len(step.expected)
    )


def _errors(outputs: Sequence[torch.Tensor], expected: Sequence[Expected]) -> tuple[torch.Tensor, torch.Tensor]:
    """Errors and error scales of all value outputs, where both are finite and the scale is not zero; flat float64."""
    errors, scales = [], []
    for output, want in zip(outputs, expected, strict=True):
        if want.kind != "value":
            continue
        error = (output.double() - want.truth).reshape(-1)
        good = error.isfinite() & (want.scale.reshape(-1) > 0)
        errors.append(error[good])
        scales.append(want.scale.reshape(-1)[good])
    if not errors:
        return torch.zeros(0, dtype=torch.float64), torch.zeros(0, dtype=torch.float64)
    return torch.cat(errors), torch.cat(scales)


def _stored_narrow(problem: Problem, seen: Sequence[tuple[Step, Sequence[torch.Tensor]]]) -> str:
    """A narrower format that holds every output exactly, where it does not hold the true values' nearest ones."""
    for precision in BELOW[native(problem)]:
        counted, all_fit = 0, True
        for step, outputs in seen:
            for output, want in zip(outputs, step.expected, strict=True):
                if want.kind != "value" or not output.is_floating_point():
                    continue
                truth = want.truth.to(output.dtype).double()
                inexact = truth.isfinite() & (round_significand(truth, precision.bits) != truth)
                values = output.double()[inexact]
                counted += values.numel()
                all_fit &= bool((round_significand(values, precision.bits) == values).all())
        if all_fit and counted >= LEAST_ELEMENTS:
            return precision.name
    return ""


def allowing(problem: Problem, steps: Sequence[Step], declared: str) -> list[Step]:
    """The steps with error scales that a declared lower precision may show: root of the sum of squares of the scale, of the root mean square error of twins rounded at random, and of the
    error of the twin rounded to nearest. The last matters where neighbours round alike, as along a ramp: their errors add up, those of random roundings do not.
    """
    base = native(problem)
    chosen = next((p for p in BELOW.get(base, ()) if p.name == declared), None)
    if chosen is None:
        return list(steps)
    generator = torch.Generator().manual_seed(1)
    found = []
    for step in steps:
        squares = [torch.zeros(want.shape, dtype=torch.float64) for want in step.expected]
        for _ in range(TRIALS):
            for total, error in zip(squares, _strays(step, twin(problem, step, chosen, generator)), strict=True):
                total.add_(error.square())
        unrounded = dataclasses.replace(chosen, outputs=False)
        nearest = _strays(step, twin(problem, step, unrounded))
        widened = [
            dataclasses.replace(
                want, scale=want.scale.hypot(UNCERTAIN * _pooled(total / TRIALS, want)).hypot(error.abs())
            )
            for want, total, error in zip(step.expected, squares, nearest, strict=True)
        ]
        found.append(dataclasses.replace(step, expected=widened))
    return found


def _strays(step: Step, outputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Float64 errors of outputs as they would be stored; 0 where one is not finite."""
    errors = [
        output.to(TORCH_DTYPES[want.dtype]).double() - want.truth
        for output, want in zip(outputs, step.expected, strict=True)
    ]
    return [torch.where(error.isfinite(), error, 0.0) for error in errors]


def _pooled(variance: torch.Tensor, want: Expected) -> torch.Tensor:
    """A few trials may all be near the truth by chance: an element's allowance is at least a third of the typical one for its size."""
    deviation = variance.sqrt()
    size = want.truth.abs().nan_to_num(0.0, 0.0, 0.0)
    typical = float(deviation.mean() / size.mean().clamp_min(math.ulp(0.0))) if size.numel() else 0.0
    return torch.maximum(deviation, size * typical / 3.0)
