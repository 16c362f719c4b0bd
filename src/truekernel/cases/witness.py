"""Cases of the witness search: on seeds and shapes that no checker, ours included, may use.

Suites use, for each axis, its audit length, its `AxisSpec.odd` lengths, its length in `shapes.wide` and those of `suite_shapes`. Witnesses use none of these on any axis that lists odd lengths; an axis
without odd lengths is fixed by its problem and keeps the audit length. A problem whose axes are all fixed leaves the seeds alone apart.
"""

from __future__ import annotations

import math

from truekernel.cases.drawn import drawn
from truekernel.cases.grammar import parse_recipe
from truekernel.cases.seeds import witness_seed
from truekernel.cases.shapes import is_legal, largest, step_of, wide_length
from truekernel.cases.stretched import STRETCHED, TILED, Reach, stretched
from truekernel.cases.suite_shapes import suite_shapes
from truekernel.model import FAMILIES, AxisSpec, Case, Problem
from truekernel.numerics.formats import FORMATS

SHAPES = (
    "above",
    "below",
    "tiles",
    "small",
    "medium",
    "three",
    "eight",
    "past",
    "large",
    "powers",
    "one",
    "rest",
    "whole",
    "row",
    "sheet",
)
"""Names of the witness shapes, besides those of `stretched`: just above the audit lengths, just below, whole multiples of 32 (or 8) of long axes, two elements, about half; "three":
three elements, or another odd number where three is used, so that no vector divides a tensor; "eight": two vectors of four; "past": one more than a multiple of 64 (or 8) on reduction and
feature axes, nine where these are short and on spatial axes, so that the last tile holds one element; "large": spatial axes of twice the audit length, where an image no longer fits one block; "powers": powers of two; "one": five in each, and one in the last axis of a row, which is the only length of a suite that a witness has too; "rest": 17 rows of 241, all else one, which leaves one element beyond whole chunks of any power of two; "whole": few rows of 8192, all else one, which whole chunks of usual sizes share out exactly; "row": one row, longer than those of "lone", all else one, or for attention one head of more keys than a block has threads; "sheet": of a matrix product that programs split along its long reduction and finish in a second pass, very many outputs of one product each, where a pass that strides too little takes longer than any right one."""
TOGETHER = ("rest", "whole", "row", "sheet")
"""Those whose lengths are found for all axes together, where the problem has room for them."""
REST = (17, 241)
"""Their product is 4097."""
WHOLE = 8192
"""Elements of a row of "whole"."""
KEYS = 263
"""Keys of the one head of "row": more than a block of 256 threads takes at once."""
SHEET, SPLIT = 2202, 1 << 16
"""Rows and columns of "sheet"; the official length from which on a reduction is split."""
ROW = 330_000
"""Elements of one row: with 185,000, positions that a grid of blocks of 128 threads multiplies by a share overflow 32 bits."""
UNEQUAL = ("above", "below", "medium", "large")
"""Shapes in which no two axes that may vary have the same length."""
REACH = Reach()

PLAN: tuple[tuple[str, str], ...] = (
    ("normal&parameters", "above"),
    ("normal*4+3&parameters", "below"),
    ("ramp&parameters", "tiles"),
    ("normal&parameters", "three"),
    ("heavy&parameters", "medium"),
    ("special", "above"),
    ("integers", "tiles"),
    ("normal&parameters", "small"),
    ("normal*0.003", "below"),
    ("normal+300", "medium"),
    ("ramp*-1", "above"),
    ("sparse&parameters", "medium"),
    ("constant", "medium"),
    ("ties", "medium"),
    ("normal*20", "three"),
    ("subnormal", "medium"),
    ("subnormal", "three"),
    ("normal*300", "three"),
    ("normal*300", "medium"),
    ("normal*10000", "tiles"),
    ("normal*1000000&parameters", "past"),
    ("normal*1e-12", "three"),
    ("normal*1e-12", "eight"),
    ("signed+-88", "three"),
    ("normal&parameters", "large"),
    ("normal*300", "tiles"),
    ("ramp*1000", "eight"),
    ("ramp*-1000", "eight"),
    ("normal&parameters", "past"),
    ("normal&parameters", "broad"),
    ("normal&parameters", "long"),
    ("uniform", "deep"),
    ("normal*300", "many"),
    ("subnormal@0", "medium"),
    ("subnormal@1", "medium"),
    ("subnormal@2", "medium"),
    ("subnormal@0", "three"),
    ("subnormal@1", "three"),
    ("subnormal@2", "three"),
    ("normal&parameters", "crowd"),
    ("near", "medium"),
    ("near", "above"),
    ("decades", "three"),
    ("decades&parameters", "medium"),
    ("decades", "eight"),
    ("sparse*18", "medium"),
    ("sparse*20", "three"),
    ("normal+300", "long"),
    ("subnormal@2", "past"),
    ("subnormal@2", "eight"),
    ("special", "three"),
    ("special", "crowd"),
    ("uniform&parameters", "lone"),
    ("normal*300", "plane"),
    ("normal&parameters", "tower"),
    ("near", "eight"),
    ("near", "three"),
    ("normal*1e-19", "three"),
    ("normal*1e-19", "medium"),
    ("normal*1e-20", "three"),
    ("normal*0.003", "three"),
    ("normal+3000", "eight"),
    ("sparse*1e-40", "medium"),
    ("normal&parameters", "one"),
    ("integers", "one"),
    ("uniform&parameters", "rest"),
    ("normal&parameters", "row"),
    ("normal&parameters", "whole"),
    ("ramp*-1", "whole"),
    ("ties*0.125+1001.75", "rest"),
    ("normal", "sheet"),
    ("subnormal", "one"),
    ("subnormal@0", "past"),
    ("subnormal@1", "past"),
    ("subnormal@0", "eight"),
    ("decades", "past"),
    ("decades", "crowd"),
    ("uniform", "past"),
    ("subnormal*0.001@1", "three"),
    ("dust", "medium"),
    ("dust", "eight"),
    ("dust", "tiles"),
    ("dust", "above"),
    ("dust&parameters", "three"),
    ("short", "eight"),
    ("short", "tiles"),
    ("short&parameters", "three"),
    ("short&parameters", "small"),
    ("short&parameters", "medium"),
    ("normal&parameters", "vast"),
    ("normal+300", "lone"),
    ("normal*0.003", "broadest"),
    ("ramp", "deep"),
)
"""Recipes and shapes, what kills most first."""
_SUMS = ("reduction", "normalisation", "loss")
ONLY: dict[tuple[str, str], tuple[str, ...]] = {
    ("ramp", "deep"): ("attention",),  # scores that rise from tile to tile
    ("decades", "crowd"): ("normalisation", "loss"),
    ("normal+300", "long"): _SUMS,  # what a large mean cancels in
    ("normal+300", "lone"): _SUMS,
    ("ties*0.125+1001.75", "rest"): _SUMS,  # few digits, at an offset that bfloat16 has not
    ("normal&parameters", "tower"): ("arg_reduction", "scan", "softmax", "loss", "matmul"),
    ("normal*300", "plane"): ("scan", "softmax", "matmul"),
    ("normal*0.003", "broadest"): tuple(family for family in FAMILIES if family != "pooling"),
    ("uniform&parameters", "rest"): tuple(family for family in FAMILIES if family != "attention"),
}
"""Families that a pair is for, where it is not for all: what it shows is theirs alone, or it is costly and in each of the others no mutant of a full audit fell to it."""
DRAWN: tuple[str, ...] = (
    "normal&parameters",
    "ties",
    "normal*20",
    "heavy&parameters",
    "normal&parameters",
    "normal+300",
    "signed+-88",
    "normal&parameters",
    "ramp&parameters",
    "sparse&parameters",
    "normal*10000",
)
"""Recipes of drawn shapes, in turn."""
DRAWN_COUNT = 16
_DRAWN_SEEDS = 1000
"""Numbers of seeds from which on they belong to drawn shapes."""


def witness_cases(problem: Problem) -> list[Case]:
    """Cases on which a mutant may be proved wrong, in the order in which they are worth trying."""
    shapes = witness_shapes(problem)
    special = any(spec.domain.nonfinite for spec in problem.inputs)
    floating = sum(spec.dtype in FORMATS for spec in problem.tensors)
    found: list[Case] = []
    for number, (recipe, shape) in enumerate(PLAN):
        if recipe == "special" and not special:
            continue
        if shape in (*STRETCHED, "powers", "one", *TOGETHER) and shape not in shapes:
            continue
        if not _is_for(problem, recipe, shape):
            continue
        if (
            (recipe, shape) == ("normal&parameters", "crowd")
            and "tower" in shapes
            and _is_for(problem, recipe, "tower")
        ):
            continue  # "tower" has more rows, and longer ones
        place = parse_recipe(recipe).place
        if place is not None and (floating < 2 or place >= floating):
            continue
        axes = shapes.get(shape, shapes["above"])
        if any(case.recipe == recipe and case.lengths == axes for case in found):
            continue
        found.append(Case.of(problem.name, axes, recipe, witness_seed(problem.name, number)))
    return found + _drawn(problem)


def _is_for(problem: Problem, recipe: str, shape: str) -> bool:
    return problem.family in ONLY.get((recipe, shape), (problem.family,))


def _drawn(problem: Problem) -> list[Case]:
    """Cases of drawn shapes."""
    used = _used(problem)
    seed = witness_seed(problem.name, _DRAWN_SEEDS)
    shapes = drawn(problem, seed, DRAWN_COUNT, lambda name, wanted: _unused(problem, used, name, wanted))
    return [
        Case.of(
            problem.name,
            axes,
            DRAWN[number % len(DRAWN)],
            witness_seed(problem.name, _DRAWN_SEEDS + 1 + number),
        )
        for number, axes in enumerate(shapes)
    ]


def witness_shapes(problem: Problem) -> dict[str, dict[str, int]]:
    """The witness shapes that are legal, by name; "above" is always there (the audit lengths where nothing else is legal)."""
    used = _used(problem)
    by_axis = [shape for shape in SHAPES if shape not in TOGETHER]
    found = {
        shape: {name: _length(axis, used[name], shape) for name, axis in problem.axes.items()} for shape in by_axis
    }
    if single := _single(problem):
        found["one"] |= single
    else:
        del found["one"]
    if rest := _rest(problem, used):
        found["rest"] = rest
    if whole := _whole(problem, used):
        found["whole"] = whole
    if sheet := _sheet(problem, used):
        found["sheet"] = sheet
    found |= stretched(problem, found["small"], REACH, lambda name, wanted: _unused(problem, used, name, wanted))
    if row := _row(problem, used, found.get("lone", {})):
        found["row"] = row
    found |= {shape: _apart(problem, used, found[shape]) for shape in UNEQUAL}
    if problem.family in TILED:
        del found["powers"]  # tiles are powers of two themselves, and so many operations cost seconds
    legal = {shape: axes for shape, axes in found.items() if is_legal(problem, axes)}
    return {"above": problem.audit_axes()} | legal


def _single(problem: Problem) -> dict[str, int]:
    """The last axis of a row that may have one element, with it."""
    rows = [name for name, axis in problem.axes.items() if axis.kind != "batch" and 1 in axis.odd]
    return dict.fromkeys(rows[-1:], 1)


def _rest(problem: Problem, used: dict[str, set[int]]) -> dict[str, int]:
    """Lengths of "rest"; none where an axis has no room for them."""
    free = [name for name in problem.axes if step_of(problem.axes[name])]
    if len(free) < 2:
        return {}
    longest = max(reversed(free), key=lambda name: problem.axes[name].official)
    rows = next(name for name in free if name != longest)
    pair = dict(zip((rows, longest), REST, strict=True))
    fits = all(step_of(problem.axes[name]) == 1 and length not in used[name] for name, length in pair.items())
    room = all(1 in problem.axes[name].odd for name in free if name not in pair)
    return problem.audit_axes() | dict.fromkeys(free, 1) | pair if fits and room else {}


def _whole(problem: Problem, used: dict[str, set[int]]) -> dict[str, int]:
    """Lengths of "whole"; none where an axis has no room for them, or a tensor has the axis twice."""
    free = [name for name in problem.axes if step_of(problem.axes[name])]
    rows = [name for name in free if problem.axes[name].kind != "batch"]
    if problem.family in TILED or not rows:
        return {}
    longest = max(reversed(rows), key=lambda name: problem.axes[name].official)
    found = problem.audit_axes() | {
        name: 1 if 1 in problem.axes[name].odd else _unused(problem, used, name, 2) for name in free
    }
    fits = step_of(problem.axes[longest]) == 1 and WHOLE not in used[longest]
    return found | {longest: WHOLE} if fits and largest(problem, found | {longest: WHOLE}) < ROW else {}


def _sheet(problem: Problem, used: dict[str, set[int]]) -> dict[str, int]:
    """Lengths of "sheet"; none where no reduction is long enough to be split, or may not be one."""
    split = [name for name, axis in problem.axes.items() if axis.kind == "reduction" and axis.official >= SPLIT]
    sides = [name for name, axis in problem.axes.items() if axis.kind == "feature" and step_of(axis)]
    if problem.family != "matmul" or len(sides) != 2 or not split or any(1 not in problem.axes[k].odd for k in split):
        return {}
    lengths = {name: _unused(problem, used, name, SHEET) for name in sides}
    return problem.audit_axes() | dict.fromkeys(split, 1) | lengths


def _row(problem: Problem, used: dict[str, set[int]], lone: dict[str, int]) -> dict[str, int]:
    """Lengths of "row"; none where rows of "lone" are nearly as long, where an axis can't be one, or a tensor has the axis twice."""
    free = [name for name in problem.axes if step_of(problem.axes[name])]
    if problem.family == "attention":
        return _head(problem, used, free)
    if not lone or max(lone.values()) > ROW // 2:
        return {}
    longest = max(lone, key=lambda name: lone[name])
    found = problem.audit_axes() | dict.fromkeys(free, 1) | {longest: _unused(problem, used, longest, ROW)}
    room = all(1 in problem.axes[name].odd for name in free if name != longest)
    return found if room and largest(problem, found) < 2 * ROW else {}


def _head(problem: Problem, used: dict[str, set[int]], free: list[str]) -> dict[str, int]:
    """One head of `KEYS` keys, all else about as long as in audits; none without keys."""
    axes = problem.axes
    keys = [name for name in free if axes[name].kind == "reduction"][:1]
    wanted = {name: KEYS if name in keys else axes[name].audit for name in free}
    found = {name: _unused(problem, used, name, length) for name, length in wanted.items()}
    heads = {name: 1 for name in free if axes[name].kind == "batch" and 1 in axes[name].odd}
    return problem.audit_axes() | found | heads if keys else {}


def _used(problem: Problem) -> dict[str, set[int]]:
    """Lengths that suites use, by axis."""
    suites = suite_shapes(problem).values()
    return {
        name: {axis.audit, *axis.odd, wide_length(axis), *(axes[name] for axes in suites)}
        for name, axis in problem.axes.items()
    }


def _apart(problem: Problem, used: dict[str, set[int]], axes: dict[str, int]) -> dict[str, int]:
    """The lengths, with those that are equal to an earlier axis' moved on, where both axes may vary: a square hides which axis is which."""
    found: dict[str, int] = {}
    for name, length in axes.items():
        step = step_of(problem.axes[name])
        others = {other for o, other in found.items() if step_of(problem.axes[o])}
        while step and length > 8 * step and length in others:
            length = _unused(problem, used, name, length + step)  # noqa: PLW2901
        found[name] = length
    return found


def _length(axis: AxisSpec, used: set[int], shape: str) -> int:
    """A length of one axis that no suite uses, near what the shape's name says."""
    step = step_of(axis)
    if not step:
        return axis.audit
    tile = math.lcm(step, 32 if axis.audit >= 64 else 8) if axis.audit >= 16 else step  # short axes have no tiles
    inner = axis.kind in ("reduction", "feature")
    tiled = inner and axis.audit >= 16
    short = 2 if axis.kind == "batch" else 9  # a window of three at the edge of eight reaches padding only
    wanted = {
        "above": axis.audit + step,
        "below": axis.audit - step,
        "tiles": max(axis.audit // tile, 1) * tile,
        "small": 2 * step,
        "medium": (axis.audit // 2 // step) * step + step,
        "three": 3 * step,
        "eight": 8 * step,
        "past": max(axis.audit // (64 * step), 1) * 64 * step + step if tiled else short * step,
        "large": (2 * axis.audit if axis.kind == "spatial" else axis.audit) + 2 * step,
        "one": 5 * step,
        "powers": step << max(axis.audit // step, 1).bit_length(),
    }[shape]
    if shape == "powers":
        while wanted in used:
            wanted *= 2
        return wanted
    strides = {"tiles": tile, "past": 64 * step if tiled else step, "three": 2 * step}
    return _from(axis, used, wanted, strides.get(shape, step))


def _unused(problem: Problem, used: dict[str, set[int]], name: str, wanted: int) -> int:
    return _from(problem.axes[name], used[name], wanted, step_of(problem.axes[name]))


def _from(axis: AxisSpec, used: set[int], wanted: int, stride: int) -> int:
    """The first length from `wanted` on that no suite uses."""
    least = max(1, min(length for length in axis.odd if length > 0))
    while wanted in used or wanted < least:
        wanted += stride
    return wanted
