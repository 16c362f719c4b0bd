"""Arithmetic faults: an operator, a term or a factor is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.patterns import (
    in_index,
    is_epsilon,
    is_index,
    is_value,
    number,
    real_binaries,
    renamed,
    stores,
    token,
)
from truekernel.mutation.roles import is_centering, is_normaliser, is_rescale, is_scale
from truekernel.mutation.rule import Example, rule
from truekernel.source.edits import drop_after, drop_before, insert_after, insert_before, replace
from truekernel.source.query import arguments, callee, operands, operator, same
from truekernel.source.tree import Node, Tree

_ODD_OR_MONOTONE = (
    "expf",
    "__expf",
    "exp2f",
    "expm1f",
    "exp",
    "hexp",
    "tanhf",
    "erff",
    "erfcf",
    "sinf",
    "log1pf",
    "floorf",
    "rintf",
)


@rule(
    "swap-add-sub",
    "arithmetic",
    source="operator catalogue A01; math operator of MUTGPU, ICST 2020",
    examples=(
        Example("y[0] = x[0] + w[0];", "y[0] = x[0] - w[0];"),
        Example("float a = x[n + 1] * w[0];", None),
        Example("__half a = __float2half(x[0]); a = __hadd(a, a);", "__half a = __float2half(x[0]); a = __hsub(a, a);"),
    ),
)
def swap_add_sub(tree: Tree) -> Iterator[Edit]:
    """A sum of real numbers becomes a difference, or a difference a sum."""
    for node in real_binaries(tree, "+", "-"):
        yield replace(token(node), "-" if operator(node) == "+" else "+")
    yield from renamed({"__hadd": "__hsub", "__hsub": "__hadd", "__hadd2": "__hsub2", "__fadd_rn": "__fsub_rn"})(tree)


@rule(
    "swap-mul-div",
    "arithmetic",
    source="operator catalogue A02; math operator of MUTGPU, ICST 2020",
    examples=(
        Example("y[0] = x[0] * w[0];", "y[0] = x[0] / w[0];"),
        Example("y[n * m] = x[0] + w[0];", None),
    ),
)
def swap_mul_div(tree: Tree) -> Iterator[Edit]:
    """A product of real numbers becomes a quotient, or a quotient a product."""
    for node in real_binaries(tree, "*", "/"):
        yield replace(token(node), "/" if operator(node) == "*" else "*")
    yield from renamed({"__hmul": "__hdiv", "__hdiv": "__hmul", "__fdividef": "__fmul_rn", "__fdiv_rn": "__fmul_rn"})(
        tree
    )


@rule(
    "subtract-for-accumulate",
    "arithmetic",
    source="operator catalogue A03",
    examples=(
        Example("float s = 0.0f; s += x[0];", "float s = 0.0f; s -= x[0];"),
        Example("int i = 0; i += n; y[i] = 1.0f;", None),
    ),
)
def subtract_for_accumulate(tree: Tree) -> Iterator[Edit]:
    """A term is subtracted from an accumulator instead of added, or added instead of subtracted."""
    for node in _accumulations(tree):
        yield replace(token(node), "-=" if operator(node) == "+=" else "+=")


@rule(
    "assign-for-accumulate",
    "arithmetic",
    source="Sarkar, The Correctness Illusion, arXiv 2606.20128: matmul with acc= for acc+=; catalogue A10",
    examples=(
        Example("float s = 0.0f; s += x[0];", "float s = 0.0f; s = x[0];"),
        Example("float s = x[0]; s -= x[1];", None),
    ),
)
def assign_for_accumulate(tree: Tree) -> Iterator[Edit]:
    """An accumulator is overwritten by the term that it should add."""
    for node in _accumulations(tree):
        if operator(node) == "+=":
            yield replace(token(node), "=")


@rule(
    "accumulate-twice",
    "arithmetic",
    source="operator catalogue A22",
    examples=(
        Example("float s = 0.0f; s += x[0];", "float s = 0.0f; s += (x[0]) + (x[0]);"),
        Example("float s = 0.0f; s = x[0];", None),
    ),
)
def accumulate_twice(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """A term is added to its accumulator twice."""
    for node in _accumulations(tree):
        term = operands(node)[1]
        if operator(node) == "+=":
            yield (replace(term, f"({term.text}) + ({term.text})"),)


@rule(
    "negate-stored-value",
    "arithmetic",
    source="operator catalogue A03; the x-1 inputs of KernelBench-Verified look for sign faults (facebookresearch/kernel_bench_verified)",
    examples=(
        Example("y[0] = x[0] + 1.0f;", "y[0] = -(x[0] + 1.0f);"),
        Example("float a = x[0];", None),
    ),
)
def negate_stored_value(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """A value is stored with the wrong sign."""
    for _, left, right in stores(tree):
        if is_value(left) and is_value(right) and number(right) != 0.0:
            yield insert_before(right, "-("), insert_after(right, ")")


@rule(
    "drop-addend",
    "arithmetic",
    source="operator catalogue A04 (a bias is forgotten)",
    examples=(
        Example("y[0] = x[0] + w[0];", ("y[0] = x[0];", "y[0] = w[0];")),
        Example("y[0] = sqrtf(x[0] + 1e-5f);", None),
    ),
)
def drop_addend(tree: Tree) -> Iterator[Edit]:
    """One of two added real numbers is forgotten (small guards against zero have a rule of their own)."""
    for node in real_binaries(tree, "+"):
        left, right = operands(node)
        if not is_epsilon(right) and not is_epsilon(left) and not is_rescale(left):
            yield drop_after(left, node)
            yield drop_before(right, node)


@rule(
    "drop-subtrahend",
    "arithmetic",
    source="operator catalogue A04",
    examples=(
        Example("float d = x[0] - w[0]; y[0] = d * d;", "float d = x[0]; y[0] = d * d;"),
        Example("float mean = w[0]; y[0] = x[0] - mean;", None),
        Example("y[0] = expf(x[0] - w[0]);", None),
    ),
)
def drop_subtrahend(tree: Tree) -> Iterator[Edit]:
    """A subtracted real number is forgotten (means and the maximum of a softmax have rules of their own)."""
    for node in real_binaries(tree, "-"):
        if not is_centering(node):
            yield drop_after(operands(node)[0], node)


@rule(
    "swap-subtraction-operands",
    "arithmetic",
    source="operator catalogue A03",
    examples=(
        Example("y[0] = x[0] - w[0];", "y[0] = w[0] - x[0];"),
        Example("y[0] = x[0] + w[0];", None),
    ),
)
def swap_subtraction_operands(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """A difference of real numbers is taken the other way round."""
    for node in real_binaries(tree, "-"):
        left, right = operands(node)
        if left.kind != "binary_expression" or operator(left) in "*/":
            yield replace(left, right.text), replace(right, left.text)


@rule(
    "drop-factor",
    "arithmetic",
    source="operator catalogue A05",
    examples=(
        Example("y[0] = x[0] * w[0];", ("y[0] = x[0];", "y[0] = w[0];")),
        Example("float scale = w[0]; y[0] = x[0] * scale;", None),
        Example("y[0] = x[0] * x[0];", None),
    ),
)
def drop_factor(tree: Tree) -> Iterator[Edit]:
    """One of two real factors is forgotten (scales, normalisers and squares have rules of their own)."""
    for node in real_binaries(tree, "*"):
        left, right = operands(node)
        if same(left, right) or any(is_scale(f) or is_normaliser(f) or is_rescale(f) for f in (left, right)):
            continue
        yield drop_after(left, node)
        yield drop_before(right, node)


@rule(
    "swap-division-operands",
    "arithmetic",
    source="operator catalogue A02",
    examples=(
        Example("y[0] = x[0] / w[0];", "y[0] = w[0] / x[0];"),
        Example("y[0] = 1.0f / w[0];", None),
    ),
)
def swap_division_operands(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """A quotient of real numbers is taken the other way round."""
    for node in real_binaries(tree, "/"):
        left, right = operands(node)
        if number(left) is None and left.kind != "binary_expression":
            yield replace(left, right.text), replace(right, left.text)


@rule(
    "negate-argument",
    "arithmetic",
    source="operator catalogue A03",
    examples=(
        Example("y[0] = expf(-x[0]);", "y[0] = expf(x[0]);"),
        Example("y[0] = tanhf(x[0]);", "y[0] = tanhf(-(x[0]));"),
        Example("y[0] = fabsf(x[0]);", None),
    ),
)
def negate_argument(tree: Tree) -> Iterator[Edit | tuple[Edit, ...]]:
    """The argument of a function has the wrong sign."""
    for call in tree.device("call_expression"):
        given = arguments(call)
        if callee(call) not in _ODD_OR_MONOTONE or len(given) != 1:
            continue
        inner = given[0].field("argument")
        if given[0].kind == "unary_expression" and operator(given[0]) == "-" and inner is not None:
            yield drop_before(inner, given[0])
        else:
            yield insert_before(given[0], "-("), insert_after(given[0], ")")


def _accumulations(tree: Tree) -> Iterator[Node]:
    for node in tree.device("assignment_expression"):
        left, right = operands(node)
        if operator(node) in ("+=", "-=") and is_value(left) and not is_index(right) and not in_index(node):
            yield node
