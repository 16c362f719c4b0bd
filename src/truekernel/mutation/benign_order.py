"""Rewrites that keep a program's meaning but pair or order its terms otherwise: honest results with other roundings."""

from __future__ import annotations

from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.benign_sums import HONEST
from truekernel.mutation.precision import is_float
from truekernel.mutation.rule import Example, rule
from truekernel.mutation.statements import ForLoop, body_statements, for_loops, is_pure, outermost
from truekernel.mutation.warp import reduction_loops
from truekernel.source.edits import replace
from truekernel.source.query import operands, operator
from truekernel.source.tree import Node, Tree
from truekernel.source.types import expression_type


@rule(
    "shuffle-steps-ascending",
    "benign",
    source=HONEST,
    examples=(
        Example(
            "for (int d = 16; d > 0; d >>= 1) n += __shfl_xor_sync(0xffffffffu, n, d);",
            "for (int d = 1; d <= (16); d <<= 1) n += __shfl_xor_sync(0xffffffffu, n, d);",
        ),
        Example("for (int d = 16; d > 0; d >>= 1) { n += __shfl_xor_sync(0xffffffffu, n, d); m += n; }", None),
    ),
)
def shuffle_steps_ascending(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """A warp's reduction pairs neighbours first and halves of the warp last (other roundings)."""
    edits: list[Edit] = []
    for loop, _ in reduction_loops(tree):
        edits += [
            replace(loop.start, "1"),
            replace(loop.condition, f"{loop.variable} <= ({loop.start.text})"),
            replace(loop.update, f"{loop.variable} <<= 1"),
        ]
    if edits:
        yield tuple(edits)


def _tree_step(loop: ForLoop) -> tuple[Node, Node] | None:
    """Guard and thread number of `if (t < half) a[t] += a[t + half]; __syncthreads();` as the body of a loop that halves `half`."""
    statements = [s for s in body_statements(loop.body) if not s.kind.startswith("preproc")]
    if len(statements) != 2 or statements[0].kind != "if_statement" or statements[1].text != "__syncthreads();":
        return None
    guard, branch = statements[0].field("condition"), statements[0].field("consequence")
    test = guard.field("value") if guard is not None else None
    added = body_statements(branch) if branch is not None else []
    if (
        test is None
        or len(added) != 1
        or len(added[0].named_children) != 1
        or statements[0].field("alternative") is not None
    ):
        return None
    step, thread = added[0].named_children[0], operands(test)[0] if test.kind == "binary_expression" else None
    if thread is None or operator(test) != "<" or operands(test)[1].text != loop.variable or operator(step) != "+=":
        return None
    target, right = ("".join(side.text.split()) for side in operands(step))
    partner = f"[{thread.text}+{loop.variable}]"
    if right.count(partner) != 1 or right.replace(partner, f"[{thread.text}]") != target:
        return None
    return test, thread


@rule(
    "tree-steps-ascending",
    "benign",
    source=HONEST,
    examples=(
        Example(
            "int t; for (int h = 64; h > 0; h >>= 1) { if (t < h) s[t] += s[t + h]; __syncthreads(); }",
            "int t; for (int h = 1; h <= (64); h <<= 1) { if (t < 2 * (64) && t % (2 * h) == 0) s[t] += s[t + h]; __syncthreads(); }",
        ),
        Example("int t; for (int h = 64; h > 0; h >>= 1) { if (t < h) s[t] = s[t + h]; __syncthreads(); }", None),
    ),
)
def tree_steps_ascending(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """A block's sum in shared memory pairs neighbours first and halves of the block last (other roundings)."""
    edits: list[Edit] = []
    for loop in for_loops(tree):
        found = _tree_step(loop) if loop.declared and is_pure(loop.start) else None
        if found is None or "".join(loop.condition.text.split()) != f"{loop.variable}>0" or not _halves(loop):
            continue
        test, thread = found
        start, h = loop.start.text, loop.variable
        edits += [
            replace(loop.start, "1"),
            replace(loop.condition, f"{h} <= ({start})"),
            replace(loop.update, f"{h} <<= 1"),
            replace(test, f"{thread.text} < 2 * ({start}) && {thread.text} % (2 * {h}) == 0"),
        ]
    if edits:
        yield tuple(edits)


def _halves(loop: ForLoop) -> bool:
    return "".join(loop.update.text.split()) in (f"{loop.variable}>>=1", f"{loop.variable}/=2")


def _addends(node: Node) -> list[Node] | None:
    """Terms of a sum of four, written `a + b + c + d` or `(a + b) + (c + d)`; otherwise None."""
    left, right = operands(node)
    if left.kind == "parenthesized_expression" and right.kind == "parenthesized_expression":
        pairs = [left.named_children[0], right.named_children[0]]
        if all(pair.kind == "binary_expression" and operator(pair) == "+" for pair in pairs):
            return [side for pair in pairs for side in operands(pair)]
        return None
    terms = [right]
    while left.kind == "binary_expression" and operator(left) == "+":
        left, right = operands(left)
        terms.append(right)
    terms.append(left)
    return terms[::-1] if len(terms) == 4 else None


@rule(
    "sum-of-four-regrouped",
    "benign",
    source=HONEST,
    examples=(
        Example("y[0] = x[0] + x[1] + x[2] + x[3];", "y[0] = (x[0] + x[1]) + (x[2] + x[3]);"),
        Example("y[0] = (x[0] + x[1]) + (x[2] + x[3]);", "y[0] = x[0] + x[1] + x[2] + x[3];"),
        Example("y[0] = x[0] + x[1] + x[2];", None),
    ),
)
def sum_of_four_regrouped(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Four terms are added in pairs instead of one after the other, or the reverse (other roundings)."""
    edits = []
    for node in outermost([n for n in tree.device("binary_expression") if operator(n) == "+" and is_float(n)]):
        terms = _addends(node)
        if terms is not None and all(is_pure(term) and is_float(term) for term in terms):
            a, b, c, d = (term.text for term in terms)
            edits.append(
                replace(
                    node, f"{a} + {b} + {c} + {d}" if node.text.startswith(f"({a}") else f"({a} + {b}) + ({c} + {d})"
                )
            )
    if edits:
        yield tuple(edits)


def _commuted(tree: Tree, sign: str) -> Iterator[tuple[Edit, ...]]:
    """One variant in which both sides of all outermost operations `sign` are exchanged."""
    edits = []
    for node in outermost([n for n in tree.device("binary_expression") if operator(n) == sign]):
        found = expression_type(node)
        left, right = operands(node)
        if found is not None and found.floating and is_pure(node):
            first = f"({left.text})" if left.kind in ("binary_expression", "conditional_expression") else left.text
            edits.append(replace(node, f"{right.text} {sign} {first}"))
    if edits:
        yield tuple(edits)


@rule(
    "sum-commuted",
    "benign",
    source="IEEE 754 addition commutes; a fused multiply-add may round another product",
    examples=(
        Example("y[0] = x[0] * 2.0f + w[0];", "y[0] = w[0] + (x[0] * 2.0f);"),
        Example("n = n + m;", None),
    ),
)
def sum_commuted(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Both sides of sums are exchanged (same bits but for fused products)."""
    yield from _commuted(tree, "+")


@rule(
    "product-commuted",
    "benign",
    source="IEEE 754 multiplication commutes",
    examples=(
        Example("y[0] = x[0] * 2.0f;", "y[0] = 2.0f * x[0];"),
        Example("n = n * m;", None),
    ),
)
def product_commuted(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Both sides of products are exchanged (same bits)."""
    yield from _commuted(tree, "*")
