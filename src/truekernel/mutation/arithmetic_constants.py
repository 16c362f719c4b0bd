"""Arithmetic faults: a constant, or integer arithmetic, is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.patterns import (
    in_loop_header,
    index_binaries,
    is_epsilon,
    is_infinite,
    literal,
    number,
    real_literals,
)
from truekernel.mutation.rule import Example, rule
from truekernel.source.edits import replace
from truekernel.source.query import bare, operands, operator
from truekernel.source.tree import Tree

_TRUNCATED = 5


@rule(
    "constant-off-by-a-thousandth",
    "arithmetic",
    source="operator catalogue A08",
    examples=(
        Example("y[0] = 0.5f * x[0];", "y[0] = 0.5005f * x[0];"),
        Example("y[0] = 0.0f;", None),
    ),
)
def constant_off_by_a_thousandth(tree: Tree) -> Iterator[Edit]:
    """A real constant is a thousandth too large."""
    for node, value, suffix in real_literals(tree):
        if not is_infinite(node) and not is_epsilon(node):
            yield replace(node, literal(value * 1.001, suffix))


@rule(
    "constant-halved-or-doubled",
    "arithmetic",
    source="Sarkar, arXiv 2606.20128: GELU without its factor 0.5; catalogue A07",
    examples=(
        Example("y[0] = 0.5f * x[0];", ("y[0] = 1.0f * x[0];", "y[0] = 0.25f * x[0];")),
        Example("y[0] = x[0] + 1e-6f;", None),
    ),
)
def constant_halved_or_doubled(tree: Tree) -> Iterator[Edit]:
    """A real constant is twice or half of what it should be."""
    for node, value, suffix in real_literals(tree):
        if not is_infinite(node) and not is_epsilon(node):
            yield replace(node, literal(value * 2.0, suffix))
            yield replace(node, literal(value * 0.5, suffix))


@rule(
    "constant-truncated",
    "arithmetic",
    source="operator catalogue A09 (0.7978 for sqrt(2/pi), 0.0447 for 0.044715)",
    examples=(
        Example("y[0] = 0.044715f * x[0];", ("y[0] = 0.044f * x[0];", "y[0] = 0.0447f * x[0];")),
        Example("y[0] = 0.125f * x[0];", None),
    ),
)
def constant_truncated(tree: Tree) -> Iterator[Edit]:
    """A real constant with many digits is cut after the second or third."""
    for node, value, suffix in real_literals(tree):
        digits = node.text.rstrip("fF").lower().split("e")[0].replace(".", "").strip("0")
        if len(digits) >= _TRUNCATED and not is_infinite(node):
            yield replace(node, literal(_cut(value, 2), suffix))
            yield replace(node, literal(_cut(value, 3), suffix))


@rule(
    "integer-constant-plus-one",
    "arithmetic",
    source="operator catalogue A06; increment operator of MUTGPU, ICST 2020",
    examples=(
        Example("int k = n / 4;", "int k = n / 5;"),
        Example("for (int i = 0; i < 4; ++i) y[i] = 0.0f;", None),
        Example("int k = n >> 5;", None),
    ),
)
def integer_constant_plus_one(tree: Tree) -> Iterator[Edit]:
    """An integer constant in a product, quotient or remainder is one too large."""
    for node in index_binaries(tree, "*", "/", "%"):
        right = operands(node)[1]
        value = number(right)
        if value is not None and right.kind == "number_literal" and right.text.isdigit() and not in_loop_header(node):
            yield replace(right, str(int(value) + 1))


@rule(
    "shift-count-plus-one",
    "arithmetic",
    source="operator catalogue A20",
    examples=(
        Example("int k = n >> 5;", "int k = n >> 6;"),
        Example("int k = n / 32;", None),
    ),
)
def shift_count_plus_one(tree: Tree) -> Iterator[Edit]:
    """A shift moves by one bit too many."""
    for node in tree.device("binary_expression"):
        right = bare(operands(node)[1])
        if operator(node) in ("<<", ">>") and right.kind == "number_literal" and right.text.isdigit():
            yield replace(right, str(int(right.text) + 1))


@rule(
    "reorder-integer-division",
    "arithmetic",
    source="operator catalogue A18",
    examples=(
        Example("int k = n * m / 4;", "int k = n / 4 * m;"),
        Example("int k = n / 4 * m;", "int k = n * m / 4;"),
        Example("float k = x[0] * w[0] / x[1];", None),
    ),
)
def reorder_integer_division(tree: Tree) -> Iterator[Edit]:
    """An integer is divided before it is multiplied, or multiplied before it is divided, so that another remainder is lost."""
    for node in index_binaries(tree, "/", "*"):
        left, right = operands(node)
        other = "*" if operator(node) == "/" else "/"
        if left.kind == "binary_expression" and operator(left) == other and right.kind != "binary_expression":
            first, second = operands(left)
            yield replace(node, f"{first.text} {operator(node)} {right.text} {other} {second.text}")


@rule(
    "mask-for-remainder",
    "arithmetic",
    source="operator catalogue A19",
    examples=(
        Example("int k = n % m;", "int k = (n & (m - 1));"),
        Example("int k = n % 32;", None),
    ),
)
def mask_for_remainder(tree: Tree) -> Iterator[Edit]:
    """A remainder is taken by a bit mask although the divisor need not be a power of two."""
    for node in index_binaries(tree, "%"):
        left, right = operands(node)
        value = number(right)
        if (value is None and not right.text.isupper()) or (value is not None and int(value) & (int(value) - 1)):
            yield replace(node, f"({left.text} & ({right.text} - 1))")


def _cut(value: float, digits: int) -> float:
    """`value` without what follows its first significant `digits` (for magnitudes of everyday constants)."""
    mantissa, exponent = f"{value:.12e}".split("e")
    return float(f"{mantissa[: digits + 1]}e{exponent}")
