"""Faults of memory fences, of barriers of the whole grid, of votes at barriers, and of counters of finished blocks."""

from __future__ import annotations

from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.rule import Example, rule
from truekernel.mutation.statements import base_name, calls, group_kind, is_atomic, is_element, is_zero
from truekernel.source.edits import remove_statement, replace
from truekernel.source.query import arguments, bare, callee, operands, operator
from truekernel.source.tree import Node, Tree


@rule(
    "fence-removed",
    "sync",
    source="operator catalogue S15; CUDA sample threadFenceReduction",
    examples=(
        Example("y[0] = 1; __threadfence(); n = 0;", "y[0] = 1; ; n = 0;"),
        Example("__syncthreads();", None),
    ),
)
def fence_removed(tree: Tree) -> Iterator[Edit]:
    """A memory fence is missing."""
    for call in calls(tree, "__threadfence", "__threadfence_block", "__threadfence_system"):
        if call.parent is not None and call.parent.kind == "expression_statement":
            yield remove_statement(call.parent)


@rule(
    "fence-for-block-only",
    "sync",
    source="operator catalogue S16",
    examples=(
        Example("__threadfence();", "__threadfence_block();"),
        Example("__threadfence_block();", None),
    ),
)
def fence_for_block_only(tree: Tree) -> Iterator[Edit]:
    """A fence for the whole device orders writes for the own block only."""
    for call in calls(tree, "__threadfence", "__threadfence_system"):
        yield replace(call, "__threadfence_block()")


_VOTES = {
    "__syncthreads_or": "__syncthreads_and",
    "__syncthreads_and": "__syncthreads_or",
    "__syncthreads_count": "__syncthreads_or",
}


@rule(
    "barrier-vote-swapped",
    "sync",
    source="operator catalogue S08",
    examples=(
        Example("n = __syncthreads_count(m > 0);", "n = __syncthreads_or(m > 0);"),
        Example("n = __syncthreads_or(m > 0);", "n = __syncthreads_and(m > 0);"),
        Example("__syncthreads();", None),
    ),
)
def barrier_vote_swapped(tree: Tree) -> Iterator[Edit]:
    """A vote at a barrier counts, joins or meets where it should do another of the three."""
    for call in calls(tree, *_VOTES):
        name = call.field("function")
        if name is not None:
            yield replace(name, _VOTES[callee(call)])


@rule(
    "barrier-vote-dropped",
    "sync",
    source="operator catalogue S08",
    examples=(
        Example("n = __syncthreads_or(m > 0);", "n = (int)(m > 0);"),
        Example("n = (int)(m > 0);", None),
    ),
)
def barrier_vote_dropped(tree: Tree) -> Iterator[Edit]:
    """Each thread goes by its own answer instead of the block's."""
    for call in calls(tree, *_VOTES):
        given = arguments(call)
        if len(given) == 1:
            yield replace(call, f"(int)({given[0].text})")


@rule(
    "grid-barrier-to-block-barrier",
    "sync",
    source="operator catalogue S09",
    examples=(
        Example("auto grid = cg::this_grid(); grid.sync();", "auto grid = cg::this_grid(); __syncthreads();"),
        Example("auto block = cg::this_thread_block(); block.sync();", None),
    ),
)
def grid_barrier_to_block_barrier(tree: Tree) -> Iterator[Edit]:
    """The barrier of the whole grid joins only the own block."""
    for call in calls(tree, "sync"):
        if group_kind(call) == "grid":
            yield replace(call, "__syncthreads()")


@rule(
    "grid-barrier-removed",
    "sync",
    source="operator catalogue S10",
    examples=(
        Example("auto grid = cg::this_grid(); grid.sync();", "auto grid = cg::this_grid(); ;"),
        Example("auto block = cg::this_thread_block(); block.sync();", None),
    ),
)
def grid_barrier_removed(tree: Tree) -> Iterator[Edit]:
    """A barrier of the whole grid is missing."""
    for call in calls(tree, "sync"):
        if group_kind(call) == "grid" and call.parent is not None and call.parent.kind == "expression_statement":
            yield remove_statement(call.parent)


@rule(
    "last-block-count-off-by-one",
    "sync",
    source="operator catalogue S13; CUDA sample threadFenceReduction",
    examples=(
        Example(
            "if (atomicAdd(c, 1) == gridDim.x - 1) y[0] = 1;",
            ("if (atomicAdd(c, 1) == gridDim.x) y[0] = 1;", "if (atomicAdd(c, 1) == gridDim.x - 2) y[0] = 1;"),
        ),
        Example("if (n == gridDim.x - 1) y[0] = 1;", None),
    ),
)
def last_block_count_off_by_one(tree: Tree) -> Iterator[Edit]:
    """The block that thinks it is the last one is the last but one, or none."""
    for node in tree.device("binary_expression"):
        if (
            operator(node) != "=="
            or node.function is None
            or not any(map(is_atomic, node.function.find("call_expression")))
        ):
            continue
        total = bare(operands(node)[1])
        if (
            total.kind != "binary_expression"
            or operator(total) != "-"
            or operands(total)[1].text not in ("1", "1u", "1U")
        ):
            continue
        yield replace(total, operands(total)[0].text)
        yield replace(operands(total)[1], operands(total)[1].text.replace("1", "2"))


@rule(
    "counter-not-reset",
    "sync",
    source="operator catalogue S14: the second launch is wrong",
    examples=(
        Example("int t = atomicAdd(c, 1); if (t == n) *c = 0;", "int t = atomicAdd(c, 1); if (t == n) ;"),
        Example("s[0] = 0; atomicAdd(s, 1);", None),
    ),
)
def counter_not_reset(tree: Tree) -> Iterator[Edit]:
    """A counter that blocks advance is not set back for the next launch."""
    for statement in tree.device("expression_statement"):
        target = _zeroed(statement)
        function = statement.function
        if not target or function is None:
            continue
        counted = [call for call in function.find("call_expression") if is_atomic(call) and call.end < statement.start]
        if any(base_name(arguments(call)[0]) == target for call in counted if arguments(call)):
            yield remove_statement(statement)


def _zeroed(statement: Node) -> str:
    """Name of the thing that a statement sets to zero, or ""."""
    inside = statement.named_children
    if len(inside) != 1:
        return ""
    if inside[0].kind == "assignment_expression" and operator(inside[0]) == "=":
        left, right = operands(inside[0])
        return base_name(left) if is_zero(right) and (is_element(left) or left.kind == "identifier") else ""
    if callee(inside[0]) == "atomicExch" and len(arguments(inside[0])) == 2 and is_zero(arguments(inside[0])[1]):
        return base_name(arguments(inside[0])[0])
    return ""
