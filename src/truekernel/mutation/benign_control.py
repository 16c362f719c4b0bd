"""Rewrites of loops, branches and assignments that keep a program's meaning and every bit of its results."""

from __future__ import annotations

from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.rule import Example, rule
from truekernel.mutation.statements import ForLoop, for_loops, in_block, is_pure, neighbours, outermost
from truekernel.source.edits import insert_after, replace
from truekernel.source.query import operands, operator
from truekernel.source.tree import Node, Tree
from truekernel.source.types import expression_type

HONEST = "meaning-preserving rewrite"
_SPELLED = ("float", "double", "int", "unsigned int", "long long", "unsigned long long")


@rule(
    "for-as-while",
    "benign",
    source=HONEST,
    examples=(
        Example(
            "{ for (int i = 0; i < n; ++i) { y[i] = 0; } }",
            "{ { int i = 0; while (i < n) { y[i] = 0; ++i; } } }",
        ),
        Example("{ for (int i = 0; i < n; ++i) y[i] = 0; }", "{ { int i = 0; while (i < n) { y[i] = 0; ++i; } } }"),
        Example("{ for (int i = 0; i < n; ++i) { if (i == m) continue; y[i] = 0; } }", None),
    ),
)
def for_as_while(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Counting loops are written with `while` (same bits)."""
    edits: list[Edit] = []
    for loop in for_loops(tree):
        first = loop.node.field("initializer")
        alone = in_block(loop.node) and not _has_pragma(loop.node)
        if first is None or not loop.declared or not alone or loop.node.find("continue_statement"):
            continue
        if tree.may_edit(loop.node.start, loop.body.start):
            edits += _as_while(loop, f"{{ {first.text} while ({loop.condition.text}) ")
    if edits:
        yield tuple(edits)


def _has_pragma(loop: Node) -> bool:
    before, _ = neighbours(loop)
    return before is not None and before.kind.startswith("preproc")


def _as_while(loop: ForLoop, header: str) -> list[Edit]:
    body, step = loop.body, loop.update.text
    if body.kind == "compound_statement":
        last = Edit(body.end - 1, body.end - 1, f"{step}; ")
        return [Edit(loop.node.start, body.start, header), last, insert_after(loop.node, " }")]
    return [Edit(loop.node.start, body.start, f"{header}{{ "), insert_after(loop.node, f" {step}; }} }}")]


@rule(
    "branches-exchanged",
    "benign",
    source=HONEST,
    examples=(
        Example("y[0] = n < m ? x[0] : 0.0f;", "y[0] = !(n < m) ? 0.0f : x[0];"),
        Example("y[0] = x[0];", None),
    ),
)
def branches_exchanged(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Choices are made by the opposite condition (same bits)."""
    edits = []
    for choice in outermost(tree.device("conditional_expression")):
        condition, first, second = (choice.field(name) for name in ("condition", "consequence", "alternative"))
        if condition is None or first is None or second is None or second.kind == "assignment_expression":
            continue
        simple = condition.text if condition.kind == "parenthesized_expression" else f"({condition.text})"
        nested = f"({first.text})" if first.kind in ("conditional_expression", "assignment_expression") else first.text
        edits.append(replace(choice, f"!{simple} ? {second.text} : {nested}"))
    if edits:
        yield tuple(edits)


@rule(
    "assignments-spelled-out",
    "benign",
    source=HONEST,
    examples=(
        Example("y[0] += x[0] * 2.0f;", "y[0] = y[0] + (x[0] * 2.0f);"),
        Example("y[n++] += x[0];", None),
    ),
)
def assignments_spelled_out(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """`a += b` is written `a = a + (b)` (same bits)."""
    edits = []
    for node in outermost(tree.device("assignment_expression")):
        target, right = operands(node)
        found = expression_type(target)
        sign = operator(node)
        known = found is not None and found.scalar and found.base in _SPELLED
        if known and sign in ("+=", "-=", "*=") and is_pure(target):
            edits.append(replace(node, f"{target.text} = {target.text} {sign[0]} ({right.text})"))
    if edits:
        yield tuple(edits)
