"""Faults of warps apart from shuffles: lane and warp numbers, leaders, votes, and the second stage of block reductions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.rule import Example, rule
from truekernel.mutation.statements import call_statements, calls, group_kind, writes_memory
from truekernel.source.edits import remove_statement, replace
from truekernel.source.query import arguments, bare, callee, operands, operator, receiver
from truekernel.source.tree import Node, Tree

_WIDTHS = ("32", "32u", "32U", "warpSize", "WARP_SIZE", "WARP", "kWarpSize", "kWarp")
_COUNT = re.compile(r"(?:n|num_?|k)?_?warps(?:_per_block)?|warp_count|warps?_?in_?block", re.IGNORECASE)


def is_lane(node: Node) -> bool:
    """Whether an expression is the number of a lane: `threadIdx.x & 31`, `tid % 32`, `warp.thread_rank()`, or a name that says so."""
    node = bare(node)
    if node.kind == "identifier":
        return "lane" in node.text.lower()
    if node.kind == "call_expression":
        return callee(node) == "thread_rank" and receiver(node) is not None and group_kind(node) == ""
    return _is_lane_of_thread(node)


def _is_lane_of_thread(node: Node) -> bool:
    if node.kind != "binary_expression":
        return False
    right = operands(node)[1].text
    return (operator(node) == "&" and right.rstrip("uU") == "31") or (operator(node) == "%" and right in _WIDTHS)


def _leader_tests(tree: Tree) -> list[tuple[Node, Node]]:
    """Comparisons `lane == 0` that decide about an `if`, each with that `if`."""
    found = []
    for choice in tree.device("if_statement"):
        condition = choice.field("condition")
        for test in condition.find("binary_expression") if condition is not None else []:
            if operator(test) == "==" and operands(test)[1].text in ("0", "0u") and is_lane(operands(test)[0]):
                found.append((test, choice))
    return found


@rule(
    "leader-is-last-lane",
    "warp",
    source="operator catalogue W08",
    examples=(
        Example(
            "int lane = threadIdx.x & 31; if (lane == 0) y[0] = 1;",
            "int lane = threadIdx.x & 31; if (lane == 31) y[0] = 1;",
        ),
        Example("if (threadIdx.x % 32 == 0) y[0] = 1;", "if (threadIdx.x % 32 == 31) y[0] = 1;"),
        Example("if (threadIdx.x == 0) y[0] = 1;", None),
    ),
)
def leader_is_last_lane(tree: Tree) -> Iterator[Edit]:
    """The last lane writes a warp's result, which only the first one has."""
    for test, _ in _leader_tests(tree):
        yield replace(operands(test)[1], "31")


@rule(
    "leader-guard-dropped",
    "warp",
    source="operator catalogue T03, W13",
    examples=(
        Example("if (lane == 0) y[0] = 1;", "if (true) y[0] = 1;"),
        Example("if (lane == 0) n = 1;", None),
    ),
)
def leader_guard_dropped(tree: Tree) -> Iterator[Edit]:
    """All lanes write a warp's result, the last to come wins."""
    for test, choice in _leader_tests(tree):
        branch = choice.field("consequence")
        if branch is not None and writes_memory(branch):
            yield replace(test, "true")


def _warp_counts(tree: Tree) -> list[Node]:
    """Right sides of `lane < number of warps`: a quotient by 32, or a name that says so."""
    found = []
    for test in tree.device("binary_expression"):
        if operator(test) != "<":
            continue
        count = bare(operands(test)[1])
        divided = count.kind == "binary_expression" and operator(count) in ("/", ">>")
        if (divided and operands(count)[1].text in (*_WIDTHS, "5")) or (
            count.kind == "identifier" and _COUNT.fullmatch(count.text)
        ):
            found.append(test)
    return found


@rule(
    "warp-count-fixed-at-32",
    "warp",
    source="operator catalogue W12",
    examples=(
        Example("if (lane < blockDim.x / 32) n = 1;", "if (lane < 32) n = 1;"),
        Example("float v = lane < kWarps ? s[lane] : 0.0f;", "float v = lane < 32 ? s[lane] : 0.0f;"),
        Example("if (lane < n) n = 1;", None),
    ),
)
def warp_count_fixed_at_32(tree: Tree) -> Iterator[Edit]:
    """The second stage of a reduction takes 32 partial results, however many warps there are."""
    for test in _warp_counts(tree):
        yield replace(operands(test)[1], "32")


@rule(
    "warp-count-one-short",
    "warp",
    source="operator catalogue W12",
    examples=(
        Example("if (lane < blockDim.x / 32) n = 1;", "if (lane < (blockDim.x / 32) - 1) n = 1;"),
        Example("if (lane < n) n = 1;", None),
    ),
)
def warp_count_one_short(tree: Tree) -> Iterator[Edit]:
    """The second stage of a reduction leaves out the last warp."""
    for test in _warp_counts(tree):
        count = operands(test)[1]
        yield replace(count, f"({bare(count).text}) - 1")


@rule(
    "second-stage-guard-dropped",
    "warp",
    source="operator catalogue W13",
    examples=(
        Example("float v = lane < blockDim.x / 32 ? s[lane] : 0.0f;", "float v = true ? s[lane] : 0.0f;"),
        Example("float v = lane < n ? s[lane] : 0.0f;", None),
    ),
)
def second_stage_guard_dropped(tree: Tree) -> Iterator[Edit]:
    """The second stage of a reduction reads partial results of warps that do not exist."""
    for test in _warp_counts(tree):
        choice = test.parent
        while choice is not None and choice.kind == "parenthesized_expression":
            choice = choice.parent
        if choice is not None and choice.kind == "conditional_expression":
            yield replace(test, "true")


@rule(
    "lane-number-not-reduced",
    "warp",
    source="known issue of tritllm-kernel: a lane taken from threadIdx.x holds for blocks of 32 threads only",
    examples=(
        Example("int lane = threadIdx.x & 31;", "int lane = threadIdx.x;"),
        Example("int lane = n % warpSize;", "int lane = n;"),
        Example("int lane = n & 15;", None),
    ),
)
def lane_number_not_reduced(tree: Tree) -> Iterator[Edit]:
    """The thread's number in the block stands where its number in the warp should."""
    for node in tree.device("binary_expression"):
        if _is_lane_of_thread(node):
            yield replace(node, operands(node)[0].text)


@rule(
    "lane-number-of-half-warp",
    "warp",
    source="operator catalogue W03, I24",
    examples=(
        Example("int lane = threadIdx.x & 31;", "int lane = threadIdx.x & 15;"),
        Example("int lane = n % 32;", "int lane = n % 16;"),
        Example("int lane = n % m;", None),
    ),
)
def lane_number_of_half_warp(tree: Tree) -> Iterator[Edit]:
    """Lanes are counted as if a warp had 16."""
    for node in tree.device("binary_expression"):
        if _is_lane_of_thread(node):
            yield replace(operands(node)[1], "15" if operator(node) == "&" else "16")


@rule(
    "warp-number-of-half-warp",
    "warp",
    source="operator catalogue I24",
    examples=(
        Example("int warp = threadIdx.x >> 5;", "int warp = threadIdx.x >> 4;"),
        Example("int warp = threadIdx.x / 32;", "int warp = threadIdx.x / 16;"),
        Example("int half = n / 2;", None),
    ),
)
def warp_number_of_half_warp(tree: Tree) -> Iterator[Edit]:
    """Warps are counted as if they had 16 lanes."""
    for node in tree.device("binary_expression"):
        if operator(node) == ">>" and operands(node)[1].text == "5":
            yield replace(operands(node)[1], "4")
        elif operator(node) == "/" and operands(node)[1].text in _WIDTHS:
            yield replace(operands(node)[1], "16")


_VOTES = {"__any_sync": "__all_sync", "__all_sync": "__any_sync", "any": "all", "all": "any"}


@rule(
    "vote-any-all-swapped",
    "warp",
    source="operator catalogue W10",
    examples=(
        Example("if (__any_sync(m, n)) y[0] = 1;", "if (__all_sync(m, n)) y[0] = 1;"),
        Example("if (warp.all(n)) y[0] = 1;", "if (warp.any(n)) y[0] = 1;"),
        Example("if (any(n)) y[0] = 1;", None),
    ),
)
def vote_any_all_swapped(tree: Tree) -> Iterator[Edit]:
    """A vote asks whether all lanes agree where one is enough, or the reverse."""
    for call in calls(tree, *_VOTES):
        function = call.field("function")
        if function is None or (not callee(call).startswith("__") and receiver(call) is None):
            continue
        yield replace(function.field("field") or function, _VOTES[callee(call)])


@rule(
    "ballot-ignores-predicate",
    "warp",
    source="operator catalogue W10",
    examples=(
        Example("unsigned b = __ballot_sync(m, n > 0);", "unsigned b = __activemask();"),
        Example("unsigned b = __activemask();", None),
    ),
)
def ballot_ignores_predicate(tree: Tree) -> Iterator[Edit]:
    """A ballot counts the lanes that are there instead of those for which a predicate holds."""
    for call in calls(tree, "__ballot_sync", "ballot"):
        yield replace(call, "__activemask()")


@rule(
    "popcount-without-lane-mask",
    "warp",
    source="operator catalogue W11",
    examples=(
        Example("n = __popc(b & below);", "n = __popc(b);"),
        Example("n = __popc(b);", None),
    ),
)
def popcount_without_lane_mask(tree: Tree) -> Iterator[Edit]:
    """A count of the lanes before the own one counts all lanes."""
    for call in calls(tree, "__popc", "__popcll"):
        counted = bare(arguments(call)[0]) if arguments(call) else call
        if counted.kind == "binary_expression" and operator(counted) == "&":
            yield replace(counted, operands(counted)[0].text)


@rule(
    "match-mask-of-whole-warp",
    "warp",
    source="operator catalogue W14",
    examples=(
        Example("unsigned peers = __match_any_sync(m, n);", "unsigned peers = (m);"),
        Example("unsigned peers = __ballot_sync(m, n);", None),
    ),
)
def match_mask_of_whole_warp(tree: Tree) -> Iterator[Edit]:
    """All lanes count as peers, those with another value too."""
    for call in calls(tree, "__match_any_sync"):
        yield replace(call, f"({arguments(call)[0].text})")


_REDUCTIONS = {"add": "max", "max": "min", "min": "max", "and": "or", "or": "and", "xor": "or"}
_FUNCTORS = {"plus": "greater", "greater": "less", "less": "greater"}


@rule(
    "warp-reduction-swapped",
    "warp",
    source="operator catalogue W15",
    examples=(
        Example("n = __reduce_add_sync(m, n);", "n = __reduce_max_sync(m, n);"),
        Example("n = cg::reduce(warp, n, cg::plus<int>());", "n = cg::reduce(warp, n, cg::greater<int>());"),
        Example("n = atomicMax(&m, n);", None),
    ),
)
def warp_reduction_swapped(tree: Tree) -> Iterator[Edit]:
    """The hardware's reduction of a warp adds, joins or compares where it should do another of these."""
    for call in calls(tree, *(f"__reduce_{kind}_sync" for kind in _REDUCTIONS)):
        function = call.field("function")
        if function is not None:
            yield replace(function, f"__reduce_{_REDUCTIONS[callee(call).split('_')[3]]}_sync")
    for call in calls(tree, "reduce"):
        for operation in call.find("identifier", "type_identifier"):
            if operation.text in _FUNCTORS:
                yield replace(operation, _FUNCTORS[operation.text])


@rule(
    "first-set-lane-off-by-one",
    "warp",
    source="operator catalogue W16: __ffs counts from one, __clz from the top",
    examples=(
        Example("int leader = __ffs(b) - 1;", "int leader = __ffs(b);"),
        Example("int last = 31 - __clz(b);", "int last = 32 - __clz(b);"),
        Example("int leader = __popc(b) - 1;", None),
    ),
)
def first_set_lane_off_by_one(tree: Tree) -> Iterator[Edit]:
    """The lane that a bit mask names is off by one."""
    for node in tree.device("binary_expression"):
        if operator(node) != "-":
            continue
        left, right = operands(node)
        if callee(left) in ("__ffs", "__ffsll") and right.text == "1":
            yield replace(node, left.text)
        elif callee(right) == "__clz" and left.text == "31":
            yield replace(left, "32")


@rule(
    "warp-barrier-removed",
    "warp",
    source="operator catalogue S06",
    examples=(
        Example("__syncwarp();", ";"),
        Example("warp.sync();", ";"),
        Example("__syncthreads();", None),
    ),
)
def warp_barrier_removed(tree: Tree) -> Iterator[Edit]:
    """A barrier of a warp is missing."""
    for statement in call_statements(tree, "__syncwarp"):
        yield remove_statement(statement)
    for statement in call_statements(tree, "sync"):
        call = statement.named_children[0]
        if receiver(call) is not None and group_kind(call) == "":
            yield remove_statement(statement)


@rule(
    "warp-barrier-of-half-a-warp",
    "warp",
    source="operator catalogue S07",
    examples=(
        Example("__syncwarp();", "__syncwarp(0x0000ffffu);"),
        Example("__syncwarp(m);", None),
    ),
)
def warp_barrier_of_half_a_warp(tree: Tree) -> Iterator[Edit]:
    """A barrier of a warp names half of its lanes."""
    for call in calls(tree, "__syncwarp"):
        if not arguments(call):
            yield replace(call, "__syncwarp(0x0000ffffu)")
