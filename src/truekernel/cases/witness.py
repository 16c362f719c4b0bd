"""Cases of the witness search: on seeds and shapes that no checker, ours included, may use.

Suites use, for each axis, its audit length, its `AxisSpec.odd` lengths and its length in `shapes.wide`. Witnesses use none of these on any axis that lists odd lengths; an axis without odd
lengths is fixed by its problem and keeps the audit length. A problem whose axes are all fixed leaves the seeds alone apart.
"""

from __future__ import annotations

import math

from truekernel.cases.grammar import parse_recipe
from truekernel.cases.seeds import witness_seed
from truekernel.cases.shapes import is_legal, wide_length
from truekernel.model import AxisSpec, Case, Problem
from truekernel.numerics.formats import FORMATS

SHAPES = ("above", "below", "tiles", "small", "medium", "three", "large")
"""Names of the witness shapes: just above the audit lengths, just below, whole multiples of 32 (or 8) of long axes, a few elements, about half, three, and spatial
axes of twice the audit length, where an image no longer fits one block."""

PLAN: tuple[tuple[str, str], ...] = (
    ("normal&parameters", "above"),
    ("normal*4+3&parameters", "below"),
    ("ramp&parameters", "tiles"),
    ("heavy&parameters", "medium"),
    ("special", "above"),
    ("integers", "tiles"),
    ("normal&parameters", "small"),
    ("normal*0.003", "below"),
    ("normal+300", "medium"),
    ("ramp*-1", "above"),
    ("official", "below"),
    ("sparse&parameters", "tiles"),
    ("constant", "medium"),
    ("ties", "small"),
    ("normal*20", "three"),
    ("subnormal", "medium"),
    ("normal*300", "three"),
    ("normal*300", "medium"),
    ("normal&parameters", "large"),
    ("subnormal@0", "medium"),
    ("subnormal@1", "medium"),
    ("subnormal@2", "medium"),
)
"""Recipes and shapes, what kills most first."""


def witness_cases(problem: Problem) -> list[Case]:
    """Cases on which a mutant may be proved wrong, in the order in which they are worth trying."""
    shapes = witness_shapes(problem)
    special = any(spec.domain.nonfinite for spec in problem.inputs)
    floating = sum(spec.dtype in FORMATS for spec in problem.tensors)
    found: list[Case] = []
    for number, (recipe, shape) in enumerate(PLAN):
        if recipe == "special" and not special:
            continue
        place = parse_recipe(recipe).place
        if place is not None and (floating < 2 or place >= floating):
            continue
        axes = shapes.get(shape, shapes["above"])
        found.append(Case.of(problem.name, axes, recipe, witness_seed(problem.name, number)))
    return found


def witness_shapes(problem: Problem) -> dict[str, dict[str, int]]:
    """The witness shapes that are legal, by name; "above" is always there (the audit lengths where nothing else is legal)."""
    found = {shape: {name: _length(axis, shape) for name, axis in problem.axes.items()} for shape in SHAPES}
    legal = {shape: axes for shape, axes in found.items() if is_legal(problem, axes)}
    return {"above": problem.audit_axes()} | legal


def _length(axis: AxisSpec, shape: str) -> int:
    """A length of one axis that no suite uses, near what the shape's name says."""
    used = {axis.audit, *axis.odd, wide_length(axis)}
    positive = [length for length in axis.odd if length > 0]
    if not positive:
        return axis.audit
    step = math.gcd(axis.audit, *positive)
    tile = math.lcm(step, 32 if axis.audit >= 64 else 8) if axis.audit >= 16 else step  # short axes have no tiles
    wanted = {
        "above": axis.audit + step,
        "below": axis.audit - step,
        "tiles": max(axis.audit // tile, 1) * tile,
        "small": 2 * step,
        "medium": (axis.audit // 2 // step) * step + step,
        "three": 3 * step,
        "large": (2 * axis.audit if axis.kind == "spatial" else axis.audit) + 2 * step,
    }[shape]
    stride = tile if shape == "tiles" else step
    least = max(1, min(positive))
    while wanted in used or wanted < least:
        wanted += stride
    return wanted
