"""How far two honest results of one call may lie apart, element by element.

The truth is the call in float64 (complex128) on the same values. The scale is how far it strays when every operation is perturbed by the roundoff of the
precision under test (`numerics.error_scale`, Monte Carlo arithmetic at the level of operators), joined by how far it strays when its inputs are: some roundings of
each element, and for operators that mix many elements some roundings of the largest (backward stability is a statement about norms; N. Higham, "Accuracy and
Stability of Numerical Algorithms", 2nd ed., section 1.5 and chapter 9). Elements whose class (NaN, infinite, finite) or whole number changes under perturbation
are ill-posed: singular matrices, ties, jumps. Nothing is said of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch

from truekernel.fuzz.libraries.torch_values import TORCH_TYPES
from truekernel.fuzz.oracles.single import outputs, run
from truekernel.fuzz.records import Call, Operator, TensorValue
from truekernel.numerics.error_scale import deviations

SHAKE = 8.0
"""Roundoffs by which inputs are moved: more than one, so that jumps which an honest algorithm may miss by a few roundings are seen."""
FACTOR = 8.0
"""Allowed deviation in scales of inputs moved so."""
RUNS = 5
MIXING = frozenset(
    {
        "linear algebra",
        "fourier",
        "convolution",
        "attention",
        "recurrent",
        "normalisation",
        "loss",
        "scan and sort",
        "reduction",
        "resampling",
        "backward",
        "pooling",
    }
)
WIDE = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
    torch.float64: torch.float64,
    torch.complex128: torch.complex128,
}
UNITS = {
    torch.float32: 2.0**-24,
    torch.complex64: 2.0**-24,
    torch.float64: 2.0**-53,
    torch.complex128: 2.0**-53,
    torch.float16: 2.0**-11,
    torch.bfloat16: 2.0**-8,
}


@dataclass(frozen=True, slots=True)
class Bound:
    """`truth`: in float64, complex128 or whole numbers. `allowed`: largest honest deviation, float64, infinite where nothing is said."""

    truth: torch.Tensor
    allowed: torch.Tensor


def widened(leaf: object) -> object:
    """A tensor in its wide dtype; anything else as it is. A dtype argument widens too."""
    if isinstance(leaf, torch.Tensor):
        wide = WIDE.get(leaf.dtype)
        return leaf.detach() if wide is None else leaf.detach().to(wide)
    if isinstance(leaf, torch.dtype):
        return WIDE.get(leaf, leaf)
    return leaf


def unit_of(leaves: Sequence[object]) -> float:
    """The largest roundoff among floating tensors and dtypes, 0.0 where there are none."""
    dtypes = [
        leaf.dtype if isinstance(leaf, torch.Tensor) else leaf
        for leaf in leaves
        if isinstance(leaf, torch.Tensor | torch.dtype)
    ]
    return max((UNITS.get(dtype, 0.0) for dtype in dtypes), default=0.0)


def bounds(call: Call, operator: Operator, unit: float, dtypes: Sequence[torch.dtype]) -> list[Bound]:
    """One for each output. `unit`: roundoff of the precision under test, at least that of the outputs, since whole numbers may become floating ones; `dtypes`: of the outputs under test. Raises what the call
    in float64 raises."""
    unit = max(unit, unit_of(dtypes))
    truth = outputs(run(call, change=lambda leaves: [widened(leaf) for leaf in leaves]))
    squares = [torch.zeros(part.shape, dtype=torch.float64) for part in truth]
    stable = [torch.ones(part.shape, dtype=torch.bool) for part in truth]
    norms = [False, True] if operator.family in MIXING else [False]
    for norm in norms:
        for seed in range(RUNS):
            other = outputs(run(call, change=partial(_shaken, unit=SHAKE * unit, seed=seed, norm=norm)))
            _gather(truth, other, squares, stable)
    scales = [(square / RUNS).sqrt() for square in squares]
    for scale, within in zip(scales, _operations(call, truth, unit), strict=True):
        torch.maximum(scale, SHAKE * within, out=scale)
    # Whole numbers are not moved, so mixing them is measured by the largest result.
    unmoved = operator.family in MIXING and not any(
        TORCH_TYPES[leaf.dtype] in UNITS for leaf in call.leaves() if isinstance(leaf, TensorValue)
    )
    found = []
    for part, scale, steady, dtype in zip(truth, scales, stable, dtypes, strict=True):
        if part.dtype.is_floating_point or part.dtype.is_complex:
            info = torch.finfo(dtype) if dtype.is_floating_point or dtype.is_complex else torch.finfo(torch.float64)
            size = part.abs().double()
            size = torch.where(size.isfinite(), size, 0.0)
            if unmoved and size.numel():
                size = size.max().expand(size.shape)
            allowed = FACTOR * (scale + SHAKE * unit * size + info.smallest_normal)
        else:
            allowed = torch.zeros(part.shape, dtype=torch.float64)
        found.append(Bound(part, torch.where(steady & allowed.isfinite(), allowed, torch.inf)))
    return found


def _operations(call: Call, truth: list[torch.Tensor], unit: float) -> list[torch.Tensor]:
    """Deviations under perturbation of every operation; zeros where the perturbed call does not run."""
    try:
        flat = deviations(
            lambda: tuple(outputs(run(call, change=lambda leaves: [widened(leaf) for leaf in leaves]))),
            truth,
            accumulator=unit,
            runs=RUNS,
        )
    except Exception:
        return [torch.zeros(part.shape, dtype=torch.float64) for part in truth]
    return [scale.reshape(part.shape) for scale, part in zip(flat, truth, strict=True)]


def _shaken(leaves: list[object], unit: float, seed: int, norm: bool) -> list[object]:
    """Wide leaves, each element moved by one rounding: of itself, or of the largest."""
    generator = torch.Generator().manual_seed(seed)
    shaken: list[object] = []
    for leaf in leaves:
        wide = widened(leaf)
        if isinstance(wide, torch.Tensor) and (wide.is_floating_point() or wide.is_complex()) and wide.numel():
            signs = torch.randint(0, 2, wide.shape, generator=generator).double() * 2 - 1
            size = wide.abs()
            finite = torch.where(size.isfinite(), size, 0.0)
            step = finite.max() * torch.ones_like(finite) if norm else finite
            wide = wide + (unit * step * signs).to(wide.dtype)
        shaken.append(wide)
    return shaken


def _gather(
    truth: list[torch.Tensor], other: list[torch.Tensor], squares: list[torch.Tensor], stable: list[torch.Tensor]
) -> None:
    for part, varied, square, steady in zip(truth, other, squares, stable, strict=True):
        if part.shape != varied.shape:
            steady.fill_(False)
            continue
        if part.dtype.is_floating_point or part.dtype.is_complex:
            kept = part.isfinite() & varied.isfinite()
            steady.logical_and_(
                kept | ((part.isnan() == varied.isnan()) & (part.isinf() == varied.isinf()) & ~part.isfinite())
            )
            square.add_(torch.where(kept, (part - varied).abs().double(), 0.0).square())
        else:
            steady.logical_and_(part == varied)
