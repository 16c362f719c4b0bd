"""Cases of the witness search: on seeds and shapes that no checker, ours included, may use.

Suites use, for each axis, its audit length, its `AxisSpec.odd` lengths and its length in `shapes.wide`. Witnesses use none of these on any axis that lists odd lengths; an axis without odd
lengths is fixed by its problem and keeps the audit length. A problem whose axes are all fixed leaves the seeds alone apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from truekernel.cases.grammar import parse_recipe
from truekernel.cases.seeds import witness_seed
from truekernel.cases.shapes import is_legal, wide_length
from truekernel.model import AxisSpec, Case, Problem
from truekernel.model.lengths import lengths
from truekernel.numerics.formats import FORMATS

SHAPES = ("above", "below", "tiles", "small", "medium", "three", "eight", "past", "large", "many", "broad", "long")
"""Names of the witness shapes: just above the audit lengths, just below, whole multiples of 32 (or 8) of long axes, a few elements, about half, three; "eight": two vectors of
four; "past": one more than a multiple of 64 on reduction and feature axes, so that the last tile holds one element; "large": spatial
axes of twice the audit length, where an image no longer fits one block; "many", "broad": batch or feature axes longer than a block, all else a few elements; "long": one
axis within a row so long that a thread takes hundreds of elements, and a grid hundreds of blocks, all else a few."""
UNEQUAL = ("above", "below", "medium", "large", "broad")
"""Shapes in which no two axes that may vary have the same length."""
MORE_THAN_A_BLOCK = 264
"""Blocks that share one axis have up to 256 threads. More rows cost a block each in most programs."""
LONG_ELEMENTS = 300_000
LOOPING_ELEMENTS = 1_150_000
"""Where each element costs next to nothing and the long axis lies in memory in order: so many that the grid of a grid-stride loop is at its limit (1024 blocks of 256 threads
that take four elements each), and threads go round a second time."""
LOOPING: tuple[str, ...] = ("elementwise", "activation")
TILED: tuple[str, ...] = ("matmul", "convolution", "attention")
"""Families whose programs pad short axes to tiles, so that "long" would cost seconds."""

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
    ("normal*300", "tiles"),
    ("ramp*1000", "eight"),
    ("ramp*-1000", "eight"),
    ("normal&parameters", "past"),
    ("normal&parameters", "broad"),
    ("normal&parameters", "long"),
    ("normal*300", "many"),
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
        if any(case.recipe == recipe and case.lengths == axes for case in found):
            continue
        found.append(Case.of(problem.name, axes, recipe, witness_seed(problem.name, number)))
    return found


def witness_shapes(problem: Problem) -> dict[str, dict[str, int]]:
    """The witness shapes that are legal, by name; "above" is always there (the audit lengths where nothing else is legal)."""
    found = {
        shape: {name: _length(axis, shape) for name, axis in problem.axes.items()}
        for shape in SHAPES
        if shape != "long"
    }
    if problem.family not in TILED:
        found["long"] = _long(problem, found["small"])
    found |= {shape: _apart(problem, found[shape]) for shape in UNEQUAL}
    legal = {shape: axes for shape, axes in found.items() if is_legal(problem, axes)}
    return {"above": problem.audit_axes()} | legal


def _apart(problem: Problem, axes: dict[str, int]) -> dict[str, int]:
    """The lengths, with those that are equal to an earlier axis' moved on, where both axes may vary: a square hides which axis is which."""
    found: dict[str, int] = {}
    for name, length in axes.items():
        axis = problem.axes[name]
        step = _step(axis)
        while (
            step and length > 8 * step and any(length == other and _step(problem.axes[o]) for o, other in found.items())
        ):
            length = _unused(axis, length + step, step)  # noqa: PLW2901
        found[name] = length
    return found


def _step(axis: AxisSpec) -> int:
    """What all lengths of an axis are multiples of; 0 for one that may not vary."""
    positive = [length for length in axis.odd if length > 0]
    return math.gcd(axis.audit, *positive) if positive else 0


def _length(axis: AxisSpec, shape: str) -> int:
    """A length of one axis that no suite uses, near what the shape's name says."""
    step = _step(axis)
    if not step:
        return axis.audit
    tile = math.lcm(step, 32 if axis.audit >= 64 else 8) if axis.audit >= 16 else step  # short axes have no tiles
    tiled = axis.kind in ("reduction", "feature") and axis.audit >= 16
    wanted = {
        "above": axis.audit + step,
        "below": axis.audit - step,
        "tiles": max(axis.audit // tile, 1) * tile,
        "small": 2 * step,
        "medium": (axis.audit // 2 // step) * step + step,
        "three": 3 * step,
        "eight": 8 * step,
        "past": max(axis.audit // (64 * step), 1) * 64 * step + step if tiled else 2 * step,
        "large": (2 * axis.audit if axis.kind == "spatial" else axis.audit) + 2 * step,
        "many": -(-MORE_THAN_A_BLOCK // step) * step if axis.kind == "batch" else 2 * step,
        "broad": -(-MORE_THAN_A_BLOCK // step) * step if axis.kind == "feature" else 2 * step,
    }[shape]
    return _unused(axis, wanted, {"tiles": tile, "past": 64 * step if tiled else step}.get(shape, step))


def _long(problem: Problem, small: Mapping[str, int]) -> dict[str, int]:
    """The small lengths, but for the axis of the greatest official length among those that may vary, batch axes last: many rows cost a block each."""
    free = [name for name, axis in problem.axes.items() if _step(axis)]
    if not free:
        return dict(small)
    free = [name for name in free if problem.axes[name].kind != "batch"] or free
    name = max(free, key=lambda name: problem.axes[name].official)
    axis = problem.axes[name]
    step = _step(axis)
    loops = problem.family in LOOPING and problem.inputs[0].shape[-1] == name
    most = LOOPING_ELEMENTS if loops else LONG_ELEMENTS
    length = most // step * step
    while length > small[name] and _largest(problem, {**small, name: length}) > most:
        length = length // 2 // step * step
    return {**small, name: _unused(axis, max(length + step, small[name]), step)}


def _largest(problem: Problem, axes: Mapping[str, int]) -> int:
    """Elements of the largest tensor."""
    shapes = [*(spec.shape for spec in problem.tensors), *(spec.shape for spec in problem.outputs)]
    return max(math.prod(lengths(shape, axes)) for shape in shapes)


def _unused(axis: AxisSpec, wanted: int, stride: int) -> int:
    """The first length from `wanted` on that no suite uses."""
    used = {axis.audit, *axis.odd, wide_length(axis)}
    least = max(1, min(length for length in axis.odd if length > 0))
    while wanted in used or wanted < least:
        wanted += stride
    return wanted
