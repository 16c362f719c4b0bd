"""Shapes in which some axes are longer than a block, a grid or a thread's share covers, and all else is a few elements.

The witness search and suites both have them, of other lengths: `witness` lets no length meet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from truekernel.cases.shapes import is_legal, largest, step_of
from truekernel.model import Problem
from truekernel.model.problem import AxisKind

STRETCHED: tuple[str, ...] = ("many", "broad", "long", "deep", "crowd", "plane", "tower", "lone", "vast", "broadest")
LOOPING: tuple[str, ...] = ("elementwise", "activation")
"""Families in which each element costs next to nothing, and rows need no block each."""
TILED: dict[str, AxisKind] = {"matmul": "feature", "convolution": "spatial", "attention": "reduction"}
"""Families whose programs pad short axes to tiles, so that an axis as long as elsewhere would cost seconds, and which kind of axis is then "long"."""

COSTLY_ROWS = 500
COSTLY_ELEMENTS = 60_000
COSTLY_OPERATIONS = 5e5
SHORT_ROW = 7
"""Elements of the last axis in "crowd": a vector and a tail."""
EDGE = 8
"""By how much a side of an image may be longer than its output's."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How long axes of the shapes are."""

    block: int = 264
    """More than the 256 threads of a block."""
    row: int = 1100
    """More than a block takes at four elements a thread, and than the slack holds."""
    many: int = 300_000
    """Elements of the largest tensor of "many", where rows are long too, of "plane" and of "tower"."""
    rows: int = 8200
    """More than 1024 blocks of eight warps have, a warp for each."""
    blocks: int = 530
    """More than a grid that is cut at 512, a block for each."""
    heads: int = 60
    """Of "crowd" for attention."""
    slack: int = 1100
    """More floats than the 4 KiB of slack beside a buffer hold, so that one for each row shows."""
    head: int = 600
    """The same for a head's elements, of which programs keep several rows in shared memory."""
    channels: int = 200
    """So many that two filters of three taps reach beyond the slack."""
    elements: int = 300_000
    """Of the largest tensor of "long"."""
    looping: int = 1_400_000
    """The same in families of `LOOPING`: more than a grid of 1280 blocks takes at four elements a thread."""
    outputs: int = 1_060_000
    """Of "lone" and "vast": more than a grid of 4096 blocks covers."""
    pixels: int = 70_000
    """Outputs of an image of a convolution."""
    tile: int = 10
    """Rows of a matrix product whose other side is long."""
    tiles: int = 8300
    """More than 256 tiles of 32."""
    operations: float = 2e6
    """That tiled families may cost."""


Length = Callable[[str, int], int]
"""The length that an axis really gets, by its name and the wanted length."""


def stretched(problem: Problem, few: Mapping[str, int], reach: Reach, length: Length) -> dict[str, dict[str, int]]:
    """Those of these shapes that a problem has, by name. `few`: lengths of all axes that are not stretched."""
    found = {
        "many": _many(problem, few, reach, length),
        "broad": _broad(problem, few, reach, length),
        "long": _long(problem, few, reach, length),
        "deep": _deep(problem, few, reach, length),
        "crowd": _crowd(problem, few, reach, length),
        "plane": _rectangle(problem, few, reach, length, rows=reach.block + 1, row=reach.row),
        "lone": _lone(problem, few, reach, length),
        "vast": _vast(problem, few, reach, length),
        "broadest": _broadest(problem, few, reach, length),
    }
    if problem.family not in LOOPING:
        found["tower"] = _rectangle(problem, few, reach, length, rows=reach.slack + 1, row=reach.block + 1)
    return {name: axes for name, axes in found.items() if axes != few and is_legal(problem, axes)}


def is_costly(problem: Problem, axes: Mapping[str, int]) -> bool:
    """Whether an execution takes some hundredths of a second on a CPU rather than a thousandth."""
    work = problem.flops(dict(axes)) > COSTLY_OPERATIONS if problem.family in TILED else False
    rows = max((axes[name] for name, axis in problem.axes.items() if axis.kind == "batch"), default=0)  # a block each
    return work or rows > COSTLY_ROWS or largest(problem, axes) > COSTLY_ELEMENTS


def _many(problem: Problem, few: Mapping[str, int], reach: Reach, length: Length) -> dict[str, int]:
    """Batch axes longer than a block, and the longest row axis longer still where that is not too much."""
    free = _free(problem)
    batches = [name for name in free if problem.axes[name].kind == "batch"]
    found = {**few, **{name: length(name, _whole(problem, name, reach.block)) for name in batches}}
    rows = [name for name in free if name not in batches]
    if not (batches and rows):
        return found
    name = _longest(problem, rows)
    longer = {**found, name: length(name, _whole(problem, name, reach.block + 4))}
    cheap = problem.family not in TILED or problem.flops(longer) <= reach.operations
    return longer if cheap and largest(problem, longer) <= reach.many else found


def _broad(problem: Problem, few: Mapping[str, int], reach: Reach, length: Length) -> dict[str, int]:
    """Feature axes longer than a block, or the last spatial axis where there are none."""
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
    """One axis within a row so long that a thread takes hundreds of elements, and a grid hundreds of blocks."""
    free = _free(problem)
    kind = TILED.get(problem.family)
    free = [name for name in free if problem.axes[name].kind == kind] or free
    free = [name for name in free if problem.axes[name].kind != "batch"] or free  # many rows cost a block each
    if not free:
        return dict(few)
    name = _longest(problem, free)
    if kind is not None:
        some = _with_rows(problem, few, name, reach, length)
        return _grown(problem, some, name, reach.tiles, length, lambda a: problem.flops(a) <= reach.operations)
    loops = problem.family in LOOPING and problem.inputs[0].shape[-1] == name
    most = reach.looping if loops else reach.elements
    return _grown(problem, few, name, most, length, lambda a: largest(problem, a) <= most)


def _deep(problem: Problem, few: Mapping[str, int], reach: Reach, length: Length) -> dict[str, int]:
    """The inner axis of matrix products, attention and convolutions long in the same way."""
    inner = [name for name in _free(problem) if problem.axes[name].kind == "reduction"]
    if problem.family not in TILED or not inner:
        return dict(few)
    if problem.family == "convolution":  # programs keep a filter in shared memory
        return {**few, inner[0]: length(inner[0], _whole(problem, inner[0], reach.channels))}
    some = _with_rows(problem, few, inner[0], reach, length)
    return _grown(problem, some, inner[0], 2 * reach.tiles, length, lambda a: problem.flops(a) <= reach.operations)


def _with_rows(problem: Problem, few: Mapping[str, int], longest: str, reach: Reach, length: Length) -> dict[str, int]:
    """For matrix products, more rows than half a tile; the first feature or else batch axis, unless that is the longest."""
    free = [name for name in _free(problem) if name != longest and problem.axes[name].kind in ("feature", "batch")]
    rows = [name for name in free if problem.axes[name].kind == "feature"] or free
    if problem.family != "matmul" or not rows:
        return dict(few)
    return {**few, rows[0]: length(rows[0], _whole(problem, rows[0], reach.tile))}


def _rectangle(
    problem: Problem, few: Mapping[str, int], reach: Reach, length: Length, *, rows: int, row: int
) -> dict[str, int]:
    """At least `rows` of a batch axis, and the longest row axis at least `row`: "plane" has rows of whole vectors, "tower" more of them."""
    free = _free(problem)
    batches = [name for name in free if problem.axes[name].kind == "batch"]
    others = [name for name in free if name not in batches]
    if problem.family == "matmul":  # rows of the first matrix
        batches = [name for name in free if problem.axes[name].kind == "feature"] or batches
        others = [name for name in free if problem.axes[name].kind == "reduction"]
    if problem.family in ("convolution", "attention", "pooling") or not (batches and others):
        return dict(few)
    wanted = {batches[0]: rows, _longest(problem, others): row}
    found = {**few, **{name: length(name, _whole(problem, name, least)) for name, least in wanted.items()}}
    return found if largest(problem, found) <= reach.many else dict(few)


def _lone(problem: Problem, few: Mapping[str, int], reach: Reach, length: Length) -> dict[str, int]:
    """As few rows as may be, longer than in "long", in families whose rows need a block each."""
    free = _free(problem)
    rows = [name for name in free if problem.axes[name].kind != "batch"]
    if problem.family in (*TILED, *LOOPING, "pooling") or not rows:
        return dict(few)
    name = _longest(problem, rows)
    alone = {**few, **{other: length(other, step_of(problem.axes[other])) for other in free if other != name}}
    most = reach.outputs
    step = step_of(problem.axes[name])
    wanted = most // max(1, largest(problem, {**alone, name: step})) * step
    if largest(problem, {**alone, name: wanted}) > 2 * most:  # both sides of a square
        alone |= {other: length(other, 7 * step_of(problem.axes[other])) for other in free if other != name}
        side = math.isqrt(most * alone[name] ** 2 // largest(problem, alone)) // step * step
        while side % 4 != 3:  # one row more than a block of four warps takes, a warp for each
            side += step
        return {**alone, name: length(name, max(side, alone[name]))}
    return {**alone, name: length(name, max(wanted, alone[name]))}


def _vast(problem: Problem, few: Mapping[str, int], reach: Reach, length: Length) -> dict[str, int]:
    """Images of more outputs than a grid takes."""
    free = _free(problem)
    sides = [name for name in free if problem.axes[name].kind == "spatial"]
    if problem.family not in ("pooling", "convolution") or len(sides) < 2:
        return dict(few)
    alone = {**few, **{other: length(other, step_of(problem.axes[other])) for other in free if other not in sides}}
    images = math.prod(alone[name] for name in free if name not in sides)
    each = reach.outputs / images if problem.family == "pooling" else reach.pixels
    side = math.ceil(each ** (1.0 / len(sides))) + EDGE
    return {**alone, **{name: length(name, _whole(problem, name, side)) for name in sides}}


def _broadest(problem: Problem, few: Mapping[str, int], reach: Reach, length: Length) -> dict[str, int]:
    """The last feature axis, or spatial one, so long that one element for each is more than the slack; of attention without features, the elements of a head."""
    free = _free(problem)
    features = [name for name in free if problem.axes[name].kind == "feature"]
    if problem.family == "attention" and not features:
        heads = [name for name in free if problem.axes[name].kind == "reduction"][1:]
        return {**few, **{name: length(name, _whole(problem, name, reach.head)) for name in heads}}
    names = features or [name for name in free if problem.axes[name].kind == "spatial"]
    return {**few, **{name: length(name, _whole(problem, name, reach.slack)) for name in names[-1:]}}


def _crowd(problem: Problem, few: Mapping[str, int], reach: Reach, length: Length) -> dict[str, int]:
    """Many rows of a few elements; for attention more heads at the audit lengths. Not for other tiled families, nor pooling."""
    free = _free(problem)
    batches = [name for name in free if problem.axes[name].kind == "batch"]
    if batches and problem.family == "attention":
        usual = {name: length(name, problem.axes[name].audit + step_of(problem.axes[name])) for name in free}
        return {**few, **usual, batches[0]: length(batches[0], _whole(problem, batches[0], reach.heads))}
    if not batches or problem.family in (*TILED, "pooling"):
        return dict(few)
    rows = reach.rows if problem.family in LOOPING else reach.blocks
    found = {**few, batches[0]: length(batches[0], _whole(problem, batches[0], rows))}
    inner = [name for name in free if name not in batches][-1:]
    return {**found, **{name: length(name, _whole(problem, name, SHORT_ROW)) for name in inner}}


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
