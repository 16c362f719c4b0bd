"""Faults of shuffles: mask, width, distance, direction, and the loops around them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.rule import Example, rule
from truekernel.mutation.statements import (
    SHUFFLES,
    ForLoop,
    before_loop,
    body_statements,
    calls,
    for_loops,
    in_block,
    initial_value,
)
from truekernel.source.edits import insert_after, replace
from truekernel.source.query import arguments, bare, callee, operands, operator, receiver
from truekernel.source.tree import Node, Tree

_FULL = re.compile(r"0[xX][fF]{8}[uUlL]*|~0[uUlL]*|-1|\(unsigned(?: int)?\)\s*-1")
_POWERS = {str(2**k): k for k in range(1, 6)}
_REDUCTION = "for (int d = 16; d > 0; d >>= 1) n += __shfl_down_sync(0xffffffffu, n, d);"


def is_full_mask(node: Node) -> bool:
    """Whether an expression names all 32 lanes: a literal, or a constant whose name says so (FULL_MASK, kAllLanes)."""
    value = initial_value(node) if node.kind == "identifier" else node
    if value is not None and _FULL.fullmatch(value.text):
        return True
    name = node.text.lower()
    return node.kind == "identifier" and ("full" in name or "all" in name) and ("mask" in name or "lane" in name)


def full_masks(tree: Tree) -> list[Node]:
    """The mask arguments of warp functions that name all lanes."""
    named = [
        call
        for call in tree.device("call_expression")
        if callee(call).startswith("__") and callee(call).endswith("_sync")
    ]
    return [arguments(call)[0] for call in named if arguments(call) and is_full_mask(arguments(call)[0])]


def shuffled_value(call: Node) -> Node | None:
    """The value that a shuffle hands over: second argument of `__shfl_*_sync`, first of a tile's method."""
    given = arguments(call)
    place = 0 if receiver(call) is not None else 1
    return given[place] if callee(call) in SHUFFLES and len(given) > place else None


def shuffle_distance(call: Node) -> Node | None:
    """Source lane, distance or lane mask of a shuffle: the argument after the value."""
    given = arguments(call)
    place = 1 if receiver(call) is not None else 2
    return given[place] if callee(call) in SHUFFLES and len(given) > place else None


def shuffle_loops(tree: Tree) -> list[ForLoop]:
    """Loops whose variable is the distance of a shuffle in their body."""
    return [
        loop
        for loop in for_loops(tree)
        if any(
            (distance := shuffle_distance(call)) is not None
            and loop.variable in {n.text for n in distance.find("identifier")}
            for call in loop.body.find("call_expression")
        )
    ]


@rule(
    "shuffle-mask-of-half-a-warp",
    "warp",
    source="operator catalogue W01",
    examples=(
        Example("n = __shfl_sync(0xffffffff, n, 0);", "n = __shfl_sync(0x0000ffffu, n, 0);"),
        Example("n = __shfl_sync(m, n, 0);", None),
    ),
)
def shuffle_mask_of_half_a_warp(tree: Tree) -> Iterator[Edit]:
    """A warp function names the lower half of the warp where all lanes take part."""
    for mask in full_masks(tree):
        yield replace(mask, "0x0000ffffu")


@rule(
    "active-mask-for-full-mask",
    "warp",
    source="operator catalogue W02; CUDA C++ programming guide on warp functions: __activemask() does not make lanes meet",
    examples=(
        Example("if (n > m) n = __shfl_sync(0xffffffff, n, 0);", "if (n > m) n = __shfl_sync(__activemask(), n, 0);"),
        Example("n = __shfl_sync(0xffffffff, n, 0);", None),
    ),
)
def active_mask_for_full_mask(tree: Tree) -> Iterator[Edit]:
    """In a branch, a warp function names the lanes that happen to be there."""
    for mask in full_masks(tree):
        if mask.enclosing("if_statement", "while_statement") is not None:
            yield replace(mask, "__activemask()")


@rule(
    "shuffle-width-halved",
    "warp",
    source="operator catalogue W03",
    examples=(
        Example("n = __shfl_down_sync(m, n, 8);", "n = __shfl_down_sync(m, n, 8, 16);"),
        Example("n = __shfl_down_sync(m, n, 8, 32);", "n = __shfl_down_sync(m, n, 8, 16);"),
        Example("n = warp.shfl_down(n, 8);", None),
    ),
)
def shuffle_width_halved(tree: Tree) -> Iterator[Edit]:
    """A shuffle stays within half a warp."""
    for call in calls(tree, *(name for name in SHUFFLES if name.startswith("__"))):
        given = arguments(call)
        if len(given) == 3:
            yield insert_after(given[2], ", 16")
        elif len(given) == 4 and given[3].text in ("32", "warpSize"):
            yield replace(given[3], "16")


@rule(
    "shuffle-loop-starts-late",
    "warp",
    source="operator catalogue W04",
    examples=(
        Example(_REDUCTION, _REDUCTION.replace("d = 16", "d = 8")),
        Example(
            "for (int d = warpSize / 2; d > 0; d /= 2) n += warp.shfl_down(n, d);",
            "for (int d = warpSize / 4; d > 0; d /= 2) n += warp.shfl_down(n, d);",
        ),
        Example(
            "for (int d = 1; d < 32; d *= 2) n += warp.shfl_up(n, d);",
            "for (int d = 2; d < 32; d *= 2) n += warp.shfl_up(n, d);",
        ),
        Example("for (int d = 16; d > 0; d >>= 1) n += d;", None),
    ),
)
def shuffle_loop_starts_late(tree: Tree) -> Iterator[Edit]:
    """The first step of a warp's reduction or scan is left out."""
    for loop in shuffle_loops(tree):
        start = bare(loop.start)
        growing = operator(loop.update) in ("<<=", "*=")
        if start.text in _POWERS and not growing:
            yield replace(start, str(int(start.text) // 2))
        elif start.text == "1" and growing:
            yield replace(start, "2")
        elif start.kind == "binary_expression" and not growing:
            step = operands(start)[1]
            if (operator(start), step.text) in (("/", "2"), (">>", "1")):
                yield replace(step, "4" if operator(start) == "/" else "2")


@rule(
    "shuffle-loop-ends-early",
    "warp",
    source="operator catalogue W05",
    examples=(
        Example(_REDUCTION, _REDUCTION.replace("d > 0", "d > 1")),
        Example(
            "for (int d = 1; d < 32; d *= 2) n += warp.shfl_up(n, d);",
            "for (int d = 1; d < 16; d *= 2) n += warp.shfl_up(n, d);",
        ),
        Example("for (int d = 16; d > 1; d >>= 1) n += warp.shfl_down(n, d);", None),
    ),
)
def shuffle_loop_ends_early(tree: Tree) -> Iterator[Edit]:
    """The last step of a warp's reduction or scan is left out."""
    for loop in shuffle_loops(tree):
        condition = bare(loop.condition)
        if condition.kind == "identifier":
            yield replace(condition, f"{condition.text} > 1")
        elif condition.kind == "binary_expression":
            _, limit = operands(condition)
            token = condition.field("operator")
            if token is not None and (token.text, limit.text) in ((">", "0"), (">=", "1")):
                yield Edit(token.start, limit.end, "> 1")
            elif operator(condition) == "<" and limit.text in ("32", "warpSize", "WARP_SIZE"):
                yield replace(limit, "16")


@rule(
    "shuffle-loop-skips-steps",
    "warp",
    source="operator catalogue W05",
    examples=(
        Example(_REDUCTION, _REDUCTION.replace(">>= 1", ">>= 2")),
        Example(
            "for (int d = 16; d > 0; d /= 2) n += warp.shfl_xor(n, d);",
            "for (int d = 16; d > 0; d /= 4) n += warp.shfl_xor(n, d);",
        ),
        Example("for (int d = 16; d > 0; d >>= 1) n += d;", None),
    ),
)
def shuffle_loop_skips_steps(tree: Tree) -> Iterator[Edit]:
    """Every second step of a warp's reduction or scan is left out."""
    for loop in shuffle_loops(tree):
        if loop.update.kind != "assignment_expression":
            continue
        step = operands(loop.update)[1]
        if (operator(loop.update), step.text) in ((">>=", "1"), ("<<=", "1"), ("/=", "2"), ("*=", "2")):
            yield replace(step, "2" if step.text == "1" else "4")


_OTHER_WAY = {"down": "up", "up": "down"}


@rule(
    "shuffle-other-direction",
    "warp",
    source="operator catalogue W06",
    examples=(
        Example("n += __shfl_down_sync(m, n, 8);", "n += __shfl_up_sync(m, n, 8);"),
        Example("n += warp.shfl_up(n, 8);", "n += warp.shfl_down(n, 8);"),
        Example("n += __shfl_xor_sync(m, n, 8);", None),
    ),
)
def shuffle_other_direction(tree: Tree) -> Iterator[Edit]:
    """A shuffle takes values from lower lanes instead of higher ones, or the reverse."""
    for call in calls(tree, *SHUFFLES):
        for way, other in _OTHER_WAY.items():
            if f"shfl_{way}" in callee(call):
                yield _renamed(call, f"shfl_{way}", f"shfl_{other}")


def _renamed(call: Node, old: str, new: str) -> Edit:
    function = call.field("function")
    assert function is not None
    name = function.field("field") or function
    return replace(name, name.text.replace(old, new))


@rule(
    "shuffle-xor-to-down",
    "warp",
    source="operator catalogue W07: all lanes need the result, only the first has it",
    examples=(
        Example("n += __shfl_xor_sync(m, n, 8);", "n += __shfl_down_sync(m, n, 8);"),
        Example("n += warp.shfl_xor(n, 8);", "n += warp.shfl_down(n, 8);"),
        Example("n += __shfl_down_sync(m, n, 8);", None),
    ),
)
def shuffle_xor_to_down(tree: Tree) -> Iterator[Edit]:
    """A butterfly becomes a reduction towards the first lane."""
    for call in calls(tree, "__shfl_xor_sync", "shfl_xor"):
        yield _renamed(call, "shfl_xor", "shfl_down")


@rule(
    "shuffle-from-wrong-lane",
    "warp",
    source="operator catalogue W08",
    examples=(
        Example("n = __shfl_sync(m, n, 0);", "n = __shfl_sync(m, n, 1);"),
        Example("n = warp.shfl(n, m);", "n = warp.shfl(n, (m) ^ 1);"),
        Example("n = __shfl_down_sync(m, n, 1);", None),
    ),
)
def shuffle_from_wrong_lane(tree: Tree) -> Iterator[Edit]:
    """A broadcast comes from the neighbour of the lane that has the value."""
    for call in calls(tree, "__shfl_sync", "shfl"):
        lane = shuffle_distance(call)
        if lane is not None:
            yield replace(lane, "1" if lane.text == "0" else f"({lane.text}) ^ 1")


@rule(
    "shuffle-dropped",
    "warp",
    source="operator catalogue W09",
    examples=(
        Example("n = __shfl_sync(m, n, 0);", "n = (n);"),
        Example("n += warp.shfl_down(n + 1, 8);", "n += (n + 1);"),
        Example("n = __any_sync(m, n);", None),
    ),
)
def shuffle_dropped(tree: Tree) -> Iterator[Edit]:
    """A lane uses its own value where it needs another lane's."""
    for call in calls(tree, *SHUFFLES):
        value = shuffled_value(call)
        if value is not None:
            yield replace(call, f"({value.text})")


@rule(
    "shuffle-distance-fixed",
    "warp",
    source="operator catalogue W04, W05: the loop's variable is not used",
    examples=(
        Example(_REDUCTION, _REDUCTION.replace("n, d)", "n, 1)")),
        Example("n += __shfl_down_sync(m, n, 4);", None),
    ),
)
def shuffle_distance_fixed(tree: Tree) -> Iterator[Edit]:
    """Each step of a reduction or scan shuffles by one lane."""
    for call in calls(tree, *SHUFFLES):
        distance = shuffle_distance(call)
        if distance is not None and distance.kind == "identifier" and callee(call) not in ("__shfl_sync", "shfl"):
            yield replace(distance, "1")


@rule(
    "shuffle-in-divergent-branch",
    "warp",
    source="a hang in __shfl_down_sync on hidden inputs, KernelBench-Verified, github.com/facebookresearch/kernel_bench_verified",
    examples=(
        Example("{ " + _REDUCTION + " }", "{ if ((threadIdx.x & 31) != 31) " + _REDUCTION + " }"),
        Example("{ for (int d = 16; d > 0; d >>= 1) n += d; }", None),
    ),
)
def shuffle_in_divergent_branch(tree: Tree) -> Iterator[Edit]:
    """One lane of each warp does not reach the shuffles that name it."""
    for loop in shuffle_loops(tree):
        if in_block(loop.node):
            yield before_loop(loop.node, "if ((threadIdx.x & 31) != 31)")


@rule(
    "tile-width-halved",
    "warp",
    source="operator catalogue W03 for cooperative groups",
    examples=(
        Example("auto warp = cg::tiled_partition<32>(block);", "auto warp = cg::tiled_partition<16>(block);"),
        Example("auto warp = cg::tiled_partition<8>(block);", None),
    ),
)
def tile_width_halved(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Tiles of 32 threads become tiles of 16, in the whole file."""
    spans = [match.span(1) for match in re.finditer(rb"(?:thread_block_tile|tiled_partition)\s*<\s*(32)\b", tree.data)]
    if spans:
        yield tuple(Edit(start, end, "16") for start, end in spans)


@rule(
    "scan-guard-dropped",
    "warp",
    source="operator catalogue W13 for scans: lanes below the distance keep their own value",
    examples=(
        Example(
            "for (int d = 1; d < 32; d *= 2) { int t = warp.shfl_up(n, d); if (lane >= d) n += t; }",
            "for (int d = 1; d < 32; d *= 2) { int t = warp.shfl_up(n, d); if (true) n += t; }",
        ),
        Example(_REDUCTION, None),
    ),
)
def scan_guard_dropped(tree: Tree) -> Iterator[Edit]:
    """All lanes add in a scan, those without a partner too."""
    for loop in shuffle_loops(tree):
        for comparison in loop.body.find("binary_expression"):
            relates = operator(comparison) in (">=", ">", "<", "<=")
            if relates and loop.variable in {name.text for name in comparison.find("identifier")}:
                yield replace(comparison, "true")


def reduction_loops(tree: Tree) -> list[tuple[ForLoop, Node]]:
    """Whole reductions by shuffles, each with its shuffle: the distance halves from a start down to one, and the body is nothing but
    `v += shuffle(v)` or `v = fmaxf(v, shuffle(v))` (also fminf, max, min), towards lower lanes or as a butterfly."""
    found = []
    for loop in shuffle_loops(tree):
        statements = [s for s in body_statements(loop.body) if not s.kind.startswith("preproc")]
        inside = statements[0].named_children if len(statements) == 1 else []
        halves = (
            (operator(loop.update), operands(loop.update)[1].text)
            if loop.update.kind == "assignment_expression"
            else None
        )
        condition = "".join(loop.condition.text.split())
        if halves not in ((">>=", "1"), ("/=", "2")) or condition not in (f"{loop.variable}>0", f"{loop.variable}>=1"):
            continue
        if len(inside) == 1 and loop.declared and (call := _folded(inside[0])) is not None:
            distance = shuffle_distance(call)
            if (
                distance is not None
                and distance.text == loop.variable
                and ("down" in callee(call) or "xor" in callee(call))
            ):
                found.append((loop, call))
    return found


def _folded(node: Node) -> Node | None:
    """The shuffle in `v += shuffle(v)` or `v = fmaxf(v, shuffle(v))`, or None."""
    if node.kind != "assignment_expression":
        return None
    target, right = operands(node)
    call = right
    if operator(node) == "=":
        given = arguments(right)
        if callee(right) not in ("fmaxf", "fminf", "max", "min") or len(given) != 2 or given[0].text != target.text:
            return None
        call = given[1]
    elif operator(node) != "+=":
        return None
    value = shuffled_value(call) if call.kind == "call_expression" else None
    return call if value is not None and value.text == target.text else None
