"""Faults of precision in algorithms: compensated sums, variances, merged moments, integer accumulators."""

from __future__ import annotations

import re
from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.rule import Example, rule
from truekernel.mutation.statements import LOOPS, initial_value
from truekernel.source.edits import replace
from truekernel.source.query import arguments, bare, callee, operands, operator, same
from truekernel.source.tree import Node, Tree
from truekernel.source.types import expression_type

_COUNTED = ("int", "unsigned int", "long long", "unsigned long long")


@rule(
    "compensation-dropped",
    "precision",
    source="operator catalogue P15; Kahan, Communications of the ACM 8 (1965), doi:10.1145/363707.363723",
    examples=(
        Example(
            "for (int i = 0; i < n; ++i) { float v = x[i] - c; float t = s + v; c = (t - s) - v; s = t; }",
            "for (int i = 0; i < n; ++i) { float v = x[i] - c; float t = s + v; c = 0.0f; s = t; }",
        ),
        Example("for (int i = 0; i < n; ++i) { c = (c - s) + n; }", None),
    ),
)
def compensation_dropped(tree: Tree) -> Iterator[Edit]:
    """A compensated sum forgets what its additions lost."""
    for node in tree.device("assignment_expression", "init_declarator"):
        value = node.field("right") or node.field("value")
        if (
            value is None
            or node.enclosing(*LOOPS) is None
            or value.kind != "binary_expression"
            or operator(value) != "-"
        ):
            continue
        lost = bare(operands(value)[0])
        if (
            operands(value)[0].kind == "parenthesized_expression"
            and lost.kind == "binary_expression"
            and operator(lost) == "-"
        ):
            yield replace(value, "0.0f")


def _difference(node: Node) -> tuple[Node, Node] | None:
    """Both sides of a difference, written here or where the variable `node` was initialised."""
    node = bare(node)
    if node.kind == "identifier":
        value = initial_value(node)
        node = bare(value) if value is not None else node
    if node.kind == "binary_expression" and operator(node) == "-":
        return operands(node)
    return None


def _squares(tree: Tree) -> Iterator[tuple[Node, Node, str]]:
    """Squares: expression, what is squared, and the text around the square ("{}")."""
    for node in tree.device("binary_expression"):
        if operator(node) == "*" and same(*operands(node)):
            yield node, operands(node)[0], "{}"
    for call in tree.device("call_expression"):
        given = arguments(call)
        if callee(call) in ("fmaf", "fma") and len(given) == 3 and same(given[0], given[1]):
            yield call, given[0], f"({given[2].text} + {{}})"
        elif re.fullmatch(r"squared?|sqr?|pow2", callee(call)) and len(given) == 1:
            yield call, given[0], "{}"


def _is_mean(node: Node) -> bool:
    return re.search(r"mean|mu|avg|average|centre|center", node.text, re.IGNORECASE) is not None


@rule(
    "one-pass-variance",
    "precision",
    source="operator catalogue P16; GroupNorm without a stable variance, KernelBench-Verified, github.com/facebookresearch/kernel_bench_verified",
    examples=(
        Example(
            "for (int i = 0; i < n; ++i) { const float d = x[i] - mean; s += d * d; }",
            "for (int i = 0; i < n; ++i) { const float d = x[i] - mean; s += ((x[i]) * (x[i]) - (mean) * (mean)); }",
        ),
        Example(
            "for (int i = 0; i < n; ++i) { const float d = x[i] - mean; s = fmaf(d, d, s); }",
            "for (int i = 0; i < n; ++i) { const float d = x[i] - mean; s = (s + ((x[i]) * (x[i]) - (mean) * (mean))); }",
        ),
        Example("for (int i = 0; i < n; ++i) s += x[i] * x[i];", None),
    ),
)
def one_pass_variance(tree: Tree) -> Iterator[Edit]:
    """A variance is a difference of two large sums, E[x^2] - E[x]^2, instead of a sum of squared deviations."""
    for node, squared, around in _squares(tree):
        sides = _difference(squared)
        if sides is None or not _is_mean(sides[1]) or node.enclosing(*LOOPS) is None:
            continue
        value, mean = sides
        square = f"(({value.text}) * ({value.text}) - ({mean.text}) * ({mean.text}))"
        yield replace(node, around.format(square))


@rule(
    "moments-merged-without-counts",
    "precision",
    source="operator catalogue P17; Chan, Golub, LeVeque, The American Statistician 37 (1983)",
    examples=(
        Example("float mean = a + delta * (k / count);", "float mean = a + delta * 0.5f;"),
        Example("float mean = a + delta * k;", None),
    ),
)
def moments_merged_without_counts(tree: Tree) -> Iterator[Edit]:
    """Means of two parts are merged as if both had equally many values."""
    for node in tree.device("binary_expression"):
        if operator(node) != "*" or "delta" not in operands(node)[0].text.lower():
            continue
        weight = bare(operands(node)[1])
        if weight.kind == "identifier":
            value = initial_value(weight)
            weight = bare(value) if value is not None else weight
        if weight.kind == "binary_expression" and operator(weight) == "/":
            yield replace(operands(node)[1], "0.5f")


@rule(
    "integer-accumulator-narrowed",
    "precision",
    source="operator catalogue P20",
    examples=(
        Example("int s = 0; while (n--) s += m;", "int s = 0; while (n--) s = (signed char)(s + (m));"),
        Example("float s = 0; while (n--) s += x[n];", None),
        Example("for (int i = 0; i < n; i += m) ;", None),
    ),
)
def integer_accumulator_narrowed(tree: Tree) -> Iterator[Edit]:
    """An integer sum or count is kept in eight bits."""
    for node in tree.device("assignment_expression"):
        target, right = operands(node)
        found = expression_type(target)
        if operator(node) != "+=" or found is None or not found.scalar or found.base not in _COUNTED:
            continue
        if node.field_name != "update" and node.enclosing(*LOOPS) is not None:
            yield replace(node, f"{target.text} = (signed char)({target.text} + ({right.text}))")
