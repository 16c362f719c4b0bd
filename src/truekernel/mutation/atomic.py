"""Faults of atomics: plain accesses, lost guards, compare-and-swap loops, keys, and what must happen before."""

from __future__ import annotations

import re
from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.rule import Example, rule
from truekernel.mutation.statements import base_name, calls, is_atomic, is_zero
from truekernel.source.edits import remove_statement, replace
from truekernel.source.query import arguments, bare, callee, operands, operator
from truekernel.source.tree import Node, Tree
from truekernel.source.types import declared_type

_PLAIN = {"Add": "+=", "Sub": "-=", "And": "&=", "Or": "|=", "Xor": "^="}
_TOP_BIT = re.compile(r"0[xX]80000000[uUlL]*|1[uU]\s*<<\s*31")


def atomics(tree: Tree) -> list[Node]:
    """All calls of CUDA's atomic functions in device code."""
    return [call for call in tree.device("call_expression") if is_atomic(call)]


def _operation(call: Node) -> str:
    """ "Add" for `atomicAdd` and `atomicAdd_block`."""
    return callee(call).removeprefix("atomic").split("_")[0]


def place(pointer: Node) -> str:
    """The object that a pointer argument names: `h[i]` for `&h[i]`, `*p` for `p`."""
    pointer = bare(pointer)
    target = pointer.field("argument")
    if pointer.kind == "pointer_expression" and pointer.text.startswith("&") and target is not None:
        return bare(target).text
    return f"*{pointer.text}" if pointer.kind == "identifier" else f"*({pointer.text})"


def _is_statement(call: Node) -> bool:
    return call.parent is not None and call.parent.kind == "expression_statement"


@rule(
    "atomic-to-plain-update",
    "atomic",
    source="operator catalogue T01; atom_removal of MUTGPU, ICST 2020",
    examples=(
        Example("atomicAdd(&y[n], 2.0f);", "y[n] += 2.0f;"),
        Example("int old = atomicAdd(c, m);", "int old = ((*c += (m)) - (m));"),
        Example("y[n] += 2.0f;", None),
    ),
)
def atomic_to_plain_update(tree: Tree) -> Iterator[Edit]:
    """An atomic update becomes a read and a write between which other threads may come."""
    for call in atomics(tree):
        given, sign = arguments(call), _PLAIN.get(_operation(call))
        if sign is None or len(given) != 2:
            continue
        if _is_statement(call):
            yield replace(call, f"{place(given[0])} {sign} {given[1].text}")
        elif sign == "+=":
            yield replace(call, f"(({place(given[0])} += ({given[1].text})) - ({given[1].text}))")


@rule(
    "atomic-to-plain-comparison",
    "atomic",
    source="operator catalogue T01",
    examples=(
        Example("atomicMax(&c[n], m);", "c[n] = (c[n] < (m)) ? (m) : c[n];"),
        Example("int old = atomicMax(c, m);", None),
    ),
)
def atomic_to_plain_comparison(tree: Tree) -> Iterator[Edit]:
    """An atomic minimum or maximum becomes a comparison and a write between which other threads may come."""
    for call in atomics(tree):
        given, sign = arguments(call), {"Max": "<", "Min": ">"}.get(_operation(call))
        if sign is not None and len(given) == 2 and _is_statement(call):
            kept, new = place(given[0]), given[1].text
            yield replace(call, f"{kept} = ({kept} {sign} ({new})) ? ({new}) : {kept}")


@rule(
    "atomic-to-store",
    "atomic",
    source="operator catalogue T02",
    examples=(
        Example("atomicAdd(&y[n], 2.0f);", "y[n] = 2.0f;"),
        Example("int old = atomicAdd(c, 1);", None),
    ),
)
def atomic_to_store(tree: Tree) -> Iterator[Edit]:
    """An atomic update becomes a store: the last thread wins."""
    for call in atomics(tree):
        given = arguments(call)
        if _is_statement(call) and len(given) == 2 and _operation(call) != "Exch":
            yield replace(call, f"{place(given[0])} = {given[1].text}")


_SWAPPED = {"Add": "Max", "Sub": "Add", "Max": "Min", "Min": "Max", "And": "Or", "Or": "And", "Xor": "Or"}


@rule(
    "atomic-operation-swapped",
    "atomic",
    source="operator catalogue T14, A13 for atomics",
    examples=(
        Example("atomicMax(c, m);", "atomicMin(c, m);"),
        Example("unsigned* c; atomicOr(c, 1u);", "unsigned* c; atomicAnd(c, 1u);"),
        Example("atomicExch(c, m);", None),
    ),
)
def atomic_operation_swapped(tree: Tree) -> Iterator[Edit]:
    """An atomic minimum is a maximum, or one bit operation another (a sum of integers a maximum)."""
    for call in atomics(tree):
        name, other = call.field("function"), _SWAPPED.get(_operation(call))
        if name is None or other is None or not arguments(call):
            continue
        if _operation(call) == "Add" and not _counts_integers(arguments(call)[0]):
            continue
        yield replace(name, name.text.replace(_operation(call), other, 1))


def _counts_integers(pointer: Node) -> bool:
    names = pointer.find("identifier")
    found = declared_type(names[0]) if names else None
    return found is not None and found.base in ("int", "unsigned int", "unsigned long long")


@rule(
    "atomic-exchange-for-compare",
    "atomic",
    source="operator catalogue T07",
    examples=(
        Example("old = atomicCAS(c, assumed, n);", "old = atomicExch(c, n);"),
        Example("old = atomicExch(c, n);", None),
    ),
)
def atomic_exchange_for_compare(tree: Tree) -> Iterator[Edit]:
    """A compare-and-swap writes without the comparison."""
    for call in atomics(tree):
        given = arguments(call)
        if _operation(call) == "CAS" and len(given) == 3:
            yield replace(call, f"atomicExch({given[0].text}, {given[2].text})")


def _swap_loops(tree: Tree) -> list[Node]:
    """Loops around a compare-and-swap."""
    loops = tree.device("do_statement", "while_statement")
    return [loop for loop in loops if any(callee(c).startswith("atomicCAS") for c in loop.find("call_expression"))]


@rule(
    "swap-loop-without-retry",
    "atomic",
    source="operator catalogue T07",
    examples=(
        Example(
            "do { a = b; b = atomicCAS(c, a, n); } while (a != b);",
            "do { a = b; b = atomicCAS(c, a, n); } while (false);",
        ),
        Example("do { a = b; } while (a != b);", None),
    ),
)
def swap_loop_without_retry(tree: Tree) -> Iterator[Edit]:
    """A compare-and-swap that another thread has beaten is not tried again."""
    for loop in _swap_loops(tree):
        condition = loop.field("condition")
        if condition is not None and loop.kind == "do_statement":
            yield replace(condition, "(false)")


@rule(
    "swap-loop-keeps-old-value",
    "atomic",
    source="operator catalogue T08: hangs, or loses the other thread's update",
    examples=(
        Example(
            "do { a = b; b = atomicCAS(c, a, n); } while (a != b);", "do { ; b = atomicCAS(c, a, n); } while (a != b);"
        ),
        Example("do { a = b; b = f(c, a, n); } while (a != b);", None),
    ),
)
def swap_loop_keeps_old_value(tree: Tree) -> Iterator[Edit]:
    """The value that a compare-and-swap expects is not refreshed before the next try."""
    for loop in _swap_loops(tree):
        for assignment in loop.find("assignment_expression"):
            left, right = operands(assignment)
            statement = assignment.parent
            plain = left.kind == right.kind == "identifier" and operator(assignment) == "="
            if plain and statement is not None and statement.kind == "expression_statement":
                yield remove_statement(statement)


def _guards(tree: Tree) -> list[Node]:
    """Comparisons of a thread's number with a constant that let one thread of many reach an atomic."""
    found = []
    for choice in tree.device("if_statement"):
        condition, branch = choice.field("condition"), choice.field("consequence")
        if condition is None or branch is None or not any(map(is_atomic, branch.find("call_expression"))):
            continue
        for test in condition.find("binary_expression"):
            left = operands(test)[0] if operator(test) == "==" else None
            if left is not None and operands(test)[1].text in ("0", "0u") and _numbers_threads(left):
                found.append(test)
    return found


def _numbers_threads(node: Node) -> bool:
    text = node.text.lower()
    return "threadidx" in text or "lane" in text or "rank" in text or re.search(r"\b(?:tid|tx|t)\b", text) is not None


@rule(
    "atomic-guard-dropped",
    "atomic",
    source="operator catalogue T03",
    examples=(
        Example("if (threadIdx.x == 0) atomicAdd(y, 1.0f);", "if (true) atomicAdd(y, 1.0f);"),
        Example("if (threadIdx.x == 0) y[0] = 1.0f;", None),
    ),
)
def atomic_guard_dropped(tree: Tree) -> Iterator[Edit]:
    """Every thread does an atomic update that one of them should do."""
    for test in _guards(tree):
        yield replace(test, "true")


@rule(
    "atomic-guard-of-other-thread",
    "atomic",
    source="operator catalogue T04",
    examples=(
        Example("if (threadIdx.x == 0) atomicAdd(y, 1.0f);", "if (threadIdx.x == 1) atomicAdd(y, 1.0f);"),
        Example("if (threadIdx.x == 0) y[0] = 1.0f;", None),
    ),
)
def atomic_guard_of_other_thread(tree: Tree) -> Iterator[Edit]:
    """A thread that does not have the result does the atomic update."""
    for test in _guards(tree):
        yield replace(operands(test)[1], "1")


@rule(
    "atomic-of-block-scope",
    "atomic",
    source="operator catalogue T05",
    examples=(
        Example("atomicAdd(y, 1.0f);", "atomicAdd_block(y, 1.0f);"),
        Example("atomicAdd_block(y, 1.0f);", None),
    ),
)
def atomic_of_block_scope(tree: Tree) -> Iterator[Edit]:
    """An atomic is atomic for the own block only."""
    for call in atomics(tree):
        name = call.field("function")
        if name is not None and "_" not in name.text:
            yield replace(name, f"{name.text}_block")


@rule(
    "atomic-result-is-new-value",
    "atomic",
    source="the result of an atomic taken for the new value; CUDA sample threadFenceReduction",
    examples=(
        Example("int t = atomicAdd(c, 1);", "int t = (atomicAdd(c, 1) + (1));"),
        Example("atomicAdd(c, 1);", None),
    ),
)
def atomic_result_is_new_value(tree: Tree) -> Iterator[Edit]:
    """What an atomic returns is taken for the value after the update."""
    for call in atomics(tree):
        given = arguments(call)
        if not _is_statement(call) and len(given) == 2 and _operation(call) in ("Add", "Inc"):
            step = given[1].text if _operation(call) == "Add" else "1"
            yield replace(call, f"({call.text} + ({step}))")


@rule(
    "atomic-increment-wraps-late",
    "atomic",
    source="operator catalogue S13: atomicInc wraps after its bound, not before",
    examples=(
        Example("unsigned t = atomicInc(c, gridDim.x - 1);", "unsigned t = atomicInc(c, gridDim.x);"),
        Example("unsigned t = atomicInc(c, gridDim.x);", None),
    ),
)
def atomic_increment_wraps_late(tree: Tree) -> Iterator[Edit]:
    """A counter that wraps by itself wraps one step too late."""
    for call in calls(tree, "atomicInc"):
        bound = bare(arguments(call)[1])
        if bound.kind == "binary_expression" and operator(bound) == "-" and operands(bound)[1].text in ("1", "1u"):
            yield replace(bound, operands(bound)[0].text)


@rule(
    "aggregated-count-of-one",
    "atomic",
    source="warp-aggregated atomics: one lane adds for all of its peers",
    examples=(
        Example("atomicAdd(c, __popc(peers));", "atomicAdd(c, 1);"),
        Example("atomicAdd(c, n);", None),
    ),
)
def aggregated_count_of_one(tree: Tree) -> Iterator[Edit]:
    """A leader that adds for its peers counts itself alone."""
    for call in atomics(tree):
        for inner in arguments(call)[1:]:
            if callee(bare(inner)) in ("__popc", "__popcll"):
                yield replace(inner, "1")


@rule(
    "atomic-index-dropped",
    "atomic",
    source="operator catalogue I09 for atomics: all updates meet in one place",
    examples=(
        Example("atomicAdd(&y[n], 2.0f);", "atomicAdd(&y[0], 2.0f);"),
        Example("atomicAdd(&y[0], 2.0f);", None),
    ),
)
def atomic_index_dropped(tree: Tree) -> Iterator[Edit]:
    """All atomic updates go to the first element."""
    for call in atomics(tree):
        target = bare(arguments(call)[0]).field("argument") if arguments(call) else None
        index = target.field("indices") if target is not None and target.kind == "subscript_expression" else None
        if index is not None and index.text != "[0]":
            yield replace(index, "[0]")


@rule(
    "shared-accumulator-not-zeroed",
    "atomic",
    source="operator catalogue T15 for shared memory; uninitialised shared memory found by initcheck and racecheck",
    examples=(
        Example(
            "__shared__ int s[8]; s[threadIdx.x] = 0; atomicAdd(&s[1], 1);",
            "__shared__ int s[8]; ; atomicAdd(&s[1], 1);",
        ),
        Example("__shared__ int s[8]; s[threadIdx.x] = 0; y[0] = s[1];", None),
    ),
)
def shared_accumulator_not_zeroed(tree: Tree) -> Iterator[Edit]:
    """Shared memory that is accumulated into is not set to zero first."""
    for statement in tree.device("expression_statement"):
        inside = statement.named_children
        if len(inside) != 1 or inside[0].kind != "assignment_expression" or not is_zero(operands(inside[0])[1]):
            continue
        names = operands(inside[0])[0].find("identifier")
        found = declared_type(names[0]) if names else None
        if (
            found is not None
            and found.shared
            and statement.function is not None
            and _accumulated(statement, names[0].text)
        ):
            yield remove_statement(statement)


def _accumulated(statement: Node, name: str) -> bool:
    assert statement.function is not None
    for node in statement.function.find("call_expression", "assignment_expression"):
        if node.start < statement.end:
            continue
        if is_atomic(node) and arguments(node) and base_name(arguments(node)[0]) == name:
            return True
        if node.kind == "assignment_expression" and operator(node) == "+=" and base_name(operands(node)[0]) == name:
            return True
    return False


@rule(
    "float-order-key-dropped",
    "atomic",
    source="operator catalogue T14: bits of negative floats order the other way round",
    examples=(
        Example("unsigned k = (b & 0x80000000u) ? ~b : b | 0x80000000u;", "unsigned k = b | 0x80000000u;"),
        Example("unsigned k = (b & 1u) ? ~b : b;", None),
    ),
)
def float_order_key_dropped(tree: Tree) -> Iterator[Edit]:
    """Negative floats are compared by their bits as if they were positive."""
    for choice in tree.device("conditional_expression"):
        condition, other = choice.field("condition"), choice.field("alternative")
        if condition is not None and other is not None and _TOP_BIT.search(condition.text) and "~" in choice.text:
            yield replace(choice, other.text)
    for choice in tree.device("conditional_expression"):
        branches = [choice.field("consequence"), choice.field("alternative")]
        named = [callee(bare(branch)) if branch is not None else "" for branch in branches]
        if set(named) == {"atomicMax", "atomicMin"} and branches[0] is not None:
            yield replace(choice, branches[0].text)


@rule(
    "float-order-branch-dropped",
    "atomic",
    source="operator catalogue T14",
    examples=(
        Example(
            "if (v >= 0) atomicMax((int*)y, a); else atomicMin((unsigned*)y, b);",
            "if (true) atomicMax((int*)y, a); else atomicMin((unsigned*)y, b);",
        ),
        Example("if (v >= 0) atomicMax((int*)y, a);", None),
    ),
)
def float_order_branch_dropped(tree: Tree) -> Iterator[Edit]:
    """The atomic maximum of floats by way of integers lacks its branch for negative numbers."""
    for choice in tree.device("if_statement"):
        condition, branch, other = (choice.field(name) for name in ("condition", "consequence", "alternative"))
        if condition is None or branch is None or other is None:
            continue
        names = [
            {_operation(call) for call in part.find("call_expression") if is_atomic(call)} for part in (branch, other)
        ]
        if names in ([{"Max"}, {"Min"}], [{"Min"}, {"Max"}]):
            yield replace(condition, "(true)")
