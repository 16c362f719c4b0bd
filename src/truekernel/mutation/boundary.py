"""Boundary faults of guards: which threads and elements are let in."""

from __future__ import annotations

from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.patterns import (
    compares_values,
    comparisons,
    in_condition,
    index_binaries,
    is_index,
    is_infinite,
    loads,
    number,
    token,
)
from truekernel.mutation.rule import Example, rule
from truekernel.source.edits import drop_after, drop_before, insert_after, insert_before, replace
from truekernel.source.query import arguments, bare, callee, mentions, operands, operator
from truekernel.source.tree import Node, Tree

_LEAVING = ("return_statement", "break_statement", "continue_statement")


def _conditions(tree: Tree) -> Iterator[tuple[Node, Node]]:
    """`if` statements whose condition compares integers: statement, condition."""
    for node in tree.device("if_statement"):
        clause = node.field("condition")
        inside = [n for n in clause.named_children if n.kind != "comment"] if clause is not None else []
        if len(inside) != 1:
            continue
        compared = [n for n in inside[0].find("binary_expression") if operator(n) in ("<", "<=", ">", ">=")]
        if compared and not any(compares_values(n) for n in compared):
            yield node, inside[0]


def _leaves(statement: Node) -> bool:
    """Whether the body of an `if` only leaves the function or loop."""
    body = statement.field("consequence")
    while body is not None and body.kind == "compound_statement" and len(body.named_children) == 1:
        body = body.named_children[0]
    return body is not None and body.kind in _LEAVING


@rule(
    "guard-lets-one-more-in",
    "boundary",
    source="conditional boundary operator of MUTGPU, ICST 2020; operator catalogue B01, B21",
    examples=(
        Example("if (n < m) y[n] = x[n];", "if (n <= m) y[n] = x[n];"),
        Example("if (n >= m) return; y[n] = x[n];", "if (n > m) return; y[n] = x[n];"),
        Example("for (int i = 0; i < n; ++i) y[i] = x[i];", None),
        Example("if (x[0] > 0.0f) y[0] = 1.0f;", None),
    ),
)
def guard_lets_one_more_in(tree: Tree) -> Iterator[Edit]:
    """A guard is off by one and lets in the first element that it should keep out."""
    for node in comparisons(tree, "<", ">", "<=", ">="):
        sign, leaves = operator(node), _guards_exit(node)
        if sign in ("<", ">") and not leaves:
            yield replace(token(node), f"{sign}=")
        elif sign in ("<=", ">=") and leaves:
            yield replace(token(node), sign[0])


@rule(
    "guard-keeps-one-more-out",
    "boundary",
    source="conditional boundary operator of MUTGPU, ICST 2020; operator catalogue B02, B21",
    examples=(
        Example("if (n <= m) y[n] = x[n];", "if (n < m) y[n] = x[n];"),
        Example("if (n < m) y[n] = x[n];", "if (n < m - 1) y[n] = x[n];"),
        Example("if (x[0] <= 0.0f) y[0] = 1.0f;", None),
    ),
)
def guard_keeps_one_more_out(tree: Tree) -> Iterator[Edit]:
    """A guard is off by one and keeps out the last element that it should let in."""
    for node in comparisons(tree, "<", ">", "<=", ">="):
        right, leaves = operands(node)[1], _guards_exit(node)
        if operator(node) in ("<=", ">=") and not leaves:
            yield replace(token(node), operator(node)[0])
        elif (operator(node) == "<" and not leaves) or (operator(node) == ">=" and leaves):
            yield insert_after(right, " - 1")


def _guards_exit(node: Node) -> bool:
    statement = node.enclosing("if_statement")
    clause = node.enclosing("condition_clause")
    return statement is not None and clause is not None and clause.parent is statement and _leaves(statement)


@rule(
    "drop-guard",
    "boundary",
    source="tail-mask bugs in tile programs, arXiv 2605.19652; operator catalogue B03",
    examples=(
        Example("if (n < m) y[n] = x[n];", "if (true) y[n] = x[n];"),
        Example("if (n >= m) return; y[n] = x[n];", "if (false) return; y[n] = x[n];"),
        Example("if (x[0] > 0.0f) y[0] = 1.0f;", None),
    ),
)
def drop_guard(tree: Tree) -> Iterator[Edit]:
    """A guard is missing: every thread goes on."""
    for statement, condition in _conditions(tree):
        yield replace(condition, "false" if _leaves(statement) else "true")


@rule(
    "drop-one-guard",
    "boundary",
    source="operator catalogue B04 (the y guard is forgotten)",
    examples=(
        Example("if (n < 8 && m < 8) y[n] = x[m];", ("if (n < 8) y[n] = x[m];", "if (m < 8) y[n] = x[m];")),
        Example("if (n < 8) y[n] = x[m];", None),
    ),
)
def drop_one_guard(tree: Tree) -> Iterator[Edit]:
    """One of two guards is missing."""
    for node in tree.device("binary_expression"):
        if operator(node) in ("&&", "||"):
            left, right = operands(node)
            yield drop_after(left, node)
            yield drop_before(right, node)


@rule(
    "confuse-and-or",
    "boundary",
    source="logical operator of MUTGPU, ICST 2020; operator catalogue B10",
    examples=(
        Example("if (n < 8 && m < 8) y[n] = x[m];", "if (n < 8 || m < 8) y[n] = x[m];"),
        Example("if (n < 8) y[n] = x[m];", None),
    ),
)
def confuse_and_or(tree: Tree) -> Iterator[Edit]:
    """Two guards are combined the wrong way."""
    for node in tree.device("binary_expression"):
        if operator(node) in ("&&", "||"):
            yield replace(token(node), "||" if operator(node) == "&&" else "&&")


@rule(
    "negate-guard",
    "boundary",
    source="negate conditional operator of MUTGPU, ICST 2020",
    examples=(
        Example("if (n < m) y[n] = x[n];", "if (!(n < m)) y[n] = x[n];"),
        Example("if (x[0] > 0.0f) y[0] = 1.0f;", None),
    ),
)
def negate_guard(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """A guard lets in what it should keep out, and keeps out the rest."""
    for _, condition in _conditions(tree):
        yield insert_before(condition, "!("), insert_after(condition, ")")


@rule(
    "swap-guard-bounds",
    "boundary",
    source="operator catalogue B04, I04; can't be seen when a matrix is square",
    examples=(
        Example("if (x[0] > w[0] && 3 < n && 4 < m) y[0] = 1.0f;", "if (x[0] > w[0] && 3 < m && 4 < n) y[0] = 1.0f;"),
        Example("if (3 < n) y[0] = 1.0f;", None),
    ),
)
def swap_guard_bounds(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """The bounds of two axes are exchanged in a guard."""
    for node in tree.device("binary_expression"):
        if operator(node) not in ("&&", "||"):
            continue
        left, right = operands(node)
        last = operands(left)[1] if left.kind == "binary_expression" and operator(left) == operator(node) else left
        if not all(side.kind == "binary_expression" and operator(side) in ("<", ">=") for side in (last, right)):
            continue
        first, second = operands(last)[1], operands(right)[1]
        if first.text != second.text and is_index(first) and is_index(second):
            yield replace(first, second.text), replace(second, first.text)


@rule(
    "guard-uses-padded-size",
    "boundary",
    source="operator catalogue B05 (the guard compares with the size rounded up to whole blocks)",
    examples=(
        Example("if (3 < n) y[3] = x[3];", "if (3 < ((n) + 31) / 32 * 32) y[3] = x[3];"),
        Example("if (n < 3) y[n] = x[n];", None),
    ),
)
def guard_uses_padded_size(tree: Tree) -> Iterator[Edit]:
    """A guard compares with a size that was rounded up to a multiple of 32."""
    for node in comparisons(tree, "<", ">="):
        right = operands(node)[1]
        if right.kind in ("identifier", "field_expression") and not right.text.isupper() and is_index(right):
            yield replace(right, f"(({right.text}) + 31) / 32 * 32")


@rule(
    "load-without-guard",
    "boundary",
    source="tail-mask bugs in tile programs, arXiv 2605.19652; operator catalogue B03",
    examples=(
        Example("float a = n < m ? x[n] : 0.0f;", "float a = x[n];"),
        Example("float a = x[0] > 0.0f ? 1.0f : 0.0f;", None),
    ),
)
def load_without_guard(tree: Tree) -> Iterator[Edit]:
    """A load that stands in for elements beyond the edge reads them."""
    for _, node, load, _ in guarded_loads(tree):
        yield replace(node, load.text)


def guarded_loads(tree: Tree) -> Iterator[tuple[Node, Node, Node, Node]]:
    """`condition ? load : filler` and its mirror image: condition, whole expression, load, filler."""
    reads = {id(node) for node, _, _ in loads(tree)}
    for node in tree.device("conditional_expression"):
        condition, yes, no = (node.field(name) for name in ("condition", "consequence", "alternative"))
        if condition is None or yes is None or no is None:
            continue
        compared = [n for n in condition.find("binary_expression") if operator(n) in ("<", "<=", ">", ">=", "==", "!=")]
        if any(compares_values(n) for n in compared):
            continue
        for load, filler in ((yes, no), (no, yes)):
            holds = any(id(n) in reads for n in load.find("subscript_expression"))
            if holds and not filler.find("subscript_expression"):
                yield condition, node, load, filler
                break


@rule(
    "tail-filled-with-wrong-value",
    "boundary",
    source="Sarkar, The Correctness Illusion, arXiv 2606.20128: softmax with a masked load of 0 for -inf; operator catalogue B11, B12",
    examples=(
        Example("float a = n < m ? x[n] : -INFINITY;", "float a = n < m ? x[n] : 0.0f;"),
        Example("float a = n < m ? x[n] : 0.0f;", "float a = n < m ? x[n] : 1.0f;"),
        Example("float a = n < m ? 1.0f : 0.0f;", None),
    ),
)
def tail_filled_with_wrong_value(tree: Tree) -> Iterator[Edit]:
    """Elements beyond the edge count as zero where a maximum or product needs another neutral value, or as one where a sum needs zero."""
    for _, _, _, filler in guarded_loads(tree):
        parts = filler.find("initializer_list")
        for value in parts[0].named_children if parts else [filler]:
            if is_infinite(value) or number(value) == 1.0:
                yield replace(value, "0.0f")
            elif number(value) == 0.0:
                yield replace(value, value.text.replace("0", "1", 1))


@rule(
    "clamp-off-by-one",
    "boundary",
    source="operator catalogue B20",
    examples=(
        Example("int i = min(n, m - 1);", "int i = min(n, m);"),
        Example("int i = max(n, 0);", "int i = max(n, 0 + 1);"),
        Example("float a = fmaxf(x[0], 0.0f);", None),
    ),
)
def clamp_off_by_one(tree: Tree) -> Iterator[Edit]:
    """An index is clamped to a range that is off by one."""
    for call in tree.device("call_expression"):
        if callee(call) not in ("min", "max") or not is_index(call):
            continue
        for argument in arguments(call)[1:]:
            inner = bare(argument)
            if inner.kind == "binary_expression" and operator(inner) == "-" and number(operands(inner)[1]) == 1.0:
                yield drop_after(operands(inner)[0], inner)
            else:
                yield insert_after(argument, " + 1")


@rule(
    "last-index-plus-one",
    "boundary",
    source="operator catalogue B20, B22, B23 (windows, halos and mirrored indices)",
    examples=(
        Example("int i = n - 1 - m; y[i] = 0.0f;", "int i = n - m; y[i] = 0.0f;"),
        Example("int i = (n + 3 - 1) / 3;", None),
    ),
)
def last_index_plus_one(tree: Tree) -> Iterator[Edit]:
    """The last index of a range is taken for its length."""
    for node in index_binaries(tree, "-"):
        left, right = operands(node)
        inside = next((a for a in node.ancestors if a.kind not in ("parenthesized_expression",)), None)
        rounding = inside is not None and inside.kind == "binary_expression" and operator(inside) in ("/", "&", "==")
        if number(right) == 1.0 and not rounding and callee(_outer(node)) not in ("min", "max"):
            yield drop_after(left, node)


def _outer(node: Node) -> Node:
    listed = node.enclosing("argument_list")
    return listed.parent if listed is not None and listed.parent is not None else node


@rule(
    "wrong-leader",
    "boundary",
    source="operator catalogue T04 (the guard names another thread)",
    examples=(
        Example("if (threadIdx.x == 0) y[0] = x[0];", "if (threadIdx.x == 1) y[0] = x[0];"),
        Example("if (n == 0) y[0] = x[0];", None),
    ),
)
def wrong_leader(tree: Tree) -> Iterator[Edit]:
    """The thread or lane that should act for the others is another one."""
    for node in tree.device("binary_expression"):
        left, right = operands(node)
        names = ("threadIdx", "blockIdx", "lane", "tid", "warp", "thread_rank", "lane_id", "warp_id", "wid")
        leads = operator(node) == "==" and right.text == "0" and in_condition(node) and mentions(left, *names)
        if leads and not _guards_atomic(node):
            yield replace(right, "1")


def _guards_atomic(node: Node) -> bool:
    """Whether what the condition lets through is an atomic update: rules of atomics change those."""
    statement = node.enclosing("if_statement")
    body = statement.field("consequence") if statement is not None else None
    return body is not None and any(callee(call).startswith("atomic") for call in body.find("call_expression"))
