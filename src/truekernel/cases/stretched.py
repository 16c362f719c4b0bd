"""Shapes in which some axes are longer than a block, a grid or a thread's share covers, and all else is a few elements.

The witness search and suites both have them, of other lengths: `witness` lets no length meet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from truekernel.cases.shapes import is_legal, step_of
from truekernel.model import Problem
from truekernel.model.lengths import lengths
from truekernel.model.problem import AxisKind

STRETCHED: tuple[str, ...] = ("many", "broad", "long", "deep", "crowd", "plane", "tower", "lone", "vast")
LOOPING: tuple[str, ...] = ("elementwise", "activation")
"""Families in which each element costs next to nothing, and rows need no block each."""
TILED: dict[str, AxisKind] = {"matmul": "feature", "convolution": "spatial", "attention": "reduction"}
"""Families whose programs pad short axes to tiles, so that an axis as long as elsewhere would cost seconds, and which kind of axis is then "long"."""

EDGE = 8
"""By how much a side of an image may be longer than its output's."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How long. `block`: more than the 256 threads of a block; `many`: elements of the largest tensor of "many", where rows are as long, of "plane" and of "tower"; `row`: more than a block takes at four elements a thread; `rows`: more than 1024 blocks of eight warps have, a warp for each; `blocks`: more than a grid that is cut at 512, a block for each; `slack`: more floats than the 4 KiB of slack beside a buffer hold, so that one for each row shows; `channels`: so many that two filters of three taps reach beyond it; `elements`: of the largest tensor of "long";
    `looping`: the same for "long" in families of `LOOPING`, more than a grid of 1024 blocks takes at four elements a thread; `alone`: of "lone"; `outputs`: of "vast", more than a grid of 4096 blocks covers; `tiles`: more than 128 tiles of 32, and
    `operations` that tiled families may cost."""

    block: int = 264
    row: int = 1060
    many: int = 300_000
    rows: int = 8200
    blocks: int = 530
    slack: int = 1100
    channels: int = 200
    elements: int = 300_000
    looping: int = 1_150_000
    alone: int = 600_000
    outputs: int = 1_060_000
    tiles: int = 4200
    operations: float = 2e6


Length = Callable[[str, int], int]
"""The length that an axis really gets, by its name and the wanted length."""


def stretched(problem: Problem, few: Mapping[str, int], reach: Reach, length: Length) -> dict[str, dict[str, int]]:
    """Those of these shapes that a problem has, by name. `few`: lengths of the other axes. "many": batch axes longer than a block, and the longest row axis longer still where that is not too much; "broad": feature axes longer than a block, or the last spatial axis where there are none; "long": one axis within a row so long that a thread takes hundreds of elements, and a
    grid hundreds of blocks; "deep": the inner axis of matrix products, attention and convolutions of that kind; "lone": as few rows as may be, longer still, in families whose rows need a block each; "vast": more outputs than a grid takes, for pooling; "tower": more rows still, each longer than a block; "plane": more rows than a block has threads, each longer than a block takes in vectors of four; "crowd": as many rows of a few elements as `rows` in families of `LOOPING`, as `blocks` in others but tiled and pooling ones."""
    found = {
        "many": _many(problem, few, reach, length),
        "broad": _broad(problem, few, reach, length),
        "long": _long(problem, few, reach, length),
        "deep": _deep(problem, few, reach, length),
        "crowd": _crowd(problem, few, reach, length),
        "plane": _rectangle(problem, few, reach, length, rows=reach.block, row=reach.row),
        "lone": _lone(problem, few, reach, length),
        "vast": _vast(problem, few, reach, length),
    }
    if problem.family not in LOOPING:
        found["tower"] = _rectangle(problem, few, reach, length, rows=reach.slack, row=reach.block)
    return {name: axes for name, axes in found.items() if axes != few and is_legal(problem, axes)}


def _many(problem: Problem, few: Mapping[str, int], reach: Reach, length: Length) -> dict[str, int]:
    free = _free(problem)
    batches = [name for name in free if problem.axes[name].kind == "batch"]
    found = {**few, **{name: length(name, _whole(problem, name, reach.block)) for name in batches}}
    rows = [name for name in free if name not in batches]
    if not (batches and rows):
        return found
    name = _longest(problem, rows)
    longer = {**found, name: length(name, _whole(problem, name, reach.block + 1))}
    cheap = problem.family not in TILED or problem.flops(longer) <= reach.operations
    return longer if cheap and _largest(problem, longer) <= reach.many else found


def _broad(problem: Problem, few: Mapping[str, int], reach: Reach, length: Length) -> dict[str, int]:
    free = _free(problem)
    features = [name for name in free if problem.axes[name].kind == "feature"]
    names = features or [name for name in free if problem.axes[name].kind == "spatial"][-1:]
    found = dict(few)
    for name in names:
        found[name] = length(name, _whole(problem, name, reach.block))
        if found[name] in [found[other] for other in names if other != name]:  # a square hides which axis is which
            found[name] = length(name, found[name] + step_of(problem.axes[name]))
    return found


def _long(problem: Problem, few: Mapping[str, int], reach: Reach, length: Length) -> dict[str, int]:
    free = _free(problem)
    kind = TILED.get(problem.family)
    free = [name for name in free if problem.axes[name].kind == kind] or free
    free = [name for name in free if problem.axes[name].kind != "batch"] or free  # many rows cost a block each
    if not free:
        return dict(few)
    name = _longest(problem, free)
    if kind is not None:
        return _grown(problem, few, name, reach.tiles, length, lambda a: problem.flops(a) <= reach.operations)
    loops = problem.family in LOOPING and problem.inputs[0].shape[-1] == name
    most = reach.looping if loops else reach.elements
    return _grown(problem, few, name, most, length, lambda a: _largest(problem, a) <= most)


def _deep(problem: Problem, few: Mapping[str, int], reach: Reach, length: Length) -> dict[str, int]:
    inner = [name for name in _free(problem) if problem.axes[name].kind == "reduction"]
    if problem.family not in TILED or not inner:
        return dict(few)
    if problem.family == "convolution":  # programs keep a filter in shared memory
        return {**few, inner[0]: length(inner[0], _whole(problem, inner[0], reach.channels))}
    return _grown(problem, few, inner[0], 4 * reach.tiles, length, lambda a: problem.flops(a) <= reach.operations)


def _rectangle(
    problem: Problem, few: Mapping[str, int], reach: Reach, length: Length, *, rows: int, row: int
) -> dict[str, int]:
    """At least `rows` of a batch axis, and the longest row axis at least `row`."""
    free = _free(problem)
    batches = [name for name in free if problem.axes[name].kind == "batch"]
    others = [name for name in free if name not in batches]
    if problem.family in (*TILED, "pooling") or not (batches and others):
        return dict(few)
    wanted = {batches[0]: rows, _longest(problem, others): row}
    found = {**few, **{name: length(name, _whole(problem, name, least)) for name, least in wanted.items()}}
    return found if _largest(problem, found) <= reach.many else dict(few)


def _lone(problem: Problem, few: Mapping[str, int], reach: Reach, length: Length) -> dict[str, int]:
    free = _free(problem)
    rows = [name for name in free if problem.axes[name].kind != "batch"]
    if problem.family in (*TILED, *LOOPING, "pooling") or not rows:
        return dict(few)
    name = _longest(problem, rows)
    alone = {**few, **{other: length(other, step_of(problem.axes[other])) for other in free if other != name}}
    # What is summed over the whole tensor is split over a grid that is cut.
    most = reach.outputs if problem.family in ("reduction", "loss") else reach.alone
    step = step_of(problem.axes[name])
    wanted = most // max(1, _largest(problem, {**alone, name: step})) * step
    if _largest(problem, {**alone, name: wanted}) > 2 * most:  # both sides of a square
        side = math.isqrt(most * alone[name] ** 2 // _largest(problem, alone)) // step * step
        return {**alone, name: length(name, max(side, alone[name]))}
    return {**alone, name: length(name, max(wanted, alone[name]))}


def _vast(problem: Problem, few: Mapping[str, int], reach: Reach, length: Length) -> dict[str, int]:
    free = _free(problem)
    sides = [name for name in free if problem.axes[name].kind == "spatial"]
    if problem.family != "pooling" or not sides:
        return dict(few)
    alone = {**few, **{other: length(other, step_of(problem.axes[other])) for other in free if other not in sides}}
    images = math.prod(alone[name] for name in free if name not in sides)
    side = math.ceil((reach.outputs / images) ** (1.0 / len(sides))) + EDGE
    return {**alone, **{name: length(name, _whole(problem, name, side)) for name in sides}}


def _crowd(problem: Problem, few: Mapping[str, int], reach: Reach, length: Length) -> dict[str, int]:
    batches = [name for name in _free(problem) if problem.axes[name].kind == "batch"]
    if not batches or problem.family in (*TILED, "pooling"):
        return dict(few)
    rows = reach.rows if problem.family in LOOPING else reach.blocks
    return {**few, batches[0]: length(batches[0], _whole(problem, batches[0], rows))}


def _free(problem: Problem) -> list[str]:
    return [name for name, axis in problem.axes.items() if step_of(axis)]


def _whole(problem: Problem, name: str, least: int) -> int:
    """The first legal length from `least` on."""
    step = step_of(problem.axes[name])
    return -(-least // step) * step


def _longest(problem: Problem, names: list[str]) -> str:
    """The axis of the greatest official length, the last of several."""
    return max(reversed(names), key=lambda name: problem.axes[name].official)


def _grown(
    problem: Problem,
    axes: Mapping[str, int],
    name: str,
    most: int,
    length: Length,
    bearable: Callable[[dict[str, int]], bool],
) -> dict[str, int]:
    """`axes` with one of them as long as is bearable, and at most about `most`."""
    step = step_of(problem.axes[name])
    wanted = most // step * step
    while wanted > axes[name] and not bearable({**axes, name: wanted}):
        wanted = wanted // 2 // step * step
    return {**axes, name: length(name, max(wanted + step, axes[name]))}


def _largest(problem: Problem, axes: Mapping[str, int]) -> int:
    """Elements of the largest tensor."""
    shapes = [*(spec.shape for spec in problem.tensors), *(spec.shape for spec in problem.outputs)]
    return max(math.prod(lengths(shape, axes)) for shape in shapes)
