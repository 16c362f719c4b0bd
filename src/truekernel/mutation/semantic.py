"""Faults of an algorithm: normalisation, centring, scaling, guards against zero."""

from __future__ import annotations

from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.patterns import is_epsilon, number, real_binaries
from truekernel.mutation.roles import (
    EXPONENTIALS,
    ROOTS,
    is_count,
    is_logarithm,
    is_mean,
    is_normaliser,
    is_rescale,
    is_scale,
)
from truekernel.mutation.rule import Example, rule
from truekernel.source.edits import drop_after, drop_before, insert_after, insert_before, remove_statement, replace
from truekernel.source.query import arguments, bare, callee, operands, operator
from truekernel.source.tree import Node, Tree

_ILLUSION = "Sarkar, The Correctness Illusion, arXiv 2606.20128"


def _factors(tree: Tree) -> Iterator[tuple[Node, Node]]:
    """Real products with one of their two factors."""
    for node in real_binaries(tree, "*"):
        for factor in operands(node):
            yield node, factor


def _without(factor: Node, product: Node) -> Edit:
    left, right = operands(product)
    return drop_after(left, product) if factor is right else drop_before(right, product)


@rule(
    "drop-max-subtraction",
    "semantic",
    source="softmax without its maximum overflows for large inputs; operator catalogue M01",
    examples=(
        Example("float m = w[0]; y[0] = expf(x[0] - m);", "float m = w[0]; y[0] = expf(x[0]);"),
        Example("y[0] = expf(x[0]);", None),
    ),
)
def drop_max_subtraction(tree: Tree) -> Iterator[Edit]:
    """The exponential of a softmax is taken without subtracting the maximum."""
    for call in tree.device("call_expression"):
        if callee(call) in EXPONENTIALS and len(arguments(call)) == 1 and not is_rescale(call):
            inner = bare(arguments(call)[0])
            if inner.kind == "binary_expression" and operator(inner) == "-":
                yield drop_after(operands(inner)[0], inner)


@rule(
    "drop-divisor",
    "semantic",
    source="operator catalogue M03 (no division by the sum)",
    examples=(
        Example("y[0] = x[0] / w[0];", "y[0] = x[0];"),
        Example("float s = 1.0f / w[0];", "float s = 1.0f;"),
        Example("y[0] = x[0] / (float)n;", None),
    ),
)
def drop_divisor(tree: Tree) -> Iterator[Edit]:
    """A result is not divided by what normalises it."""
    for node in real_binaries(tree, "/"):
        left, right = operands(node)
        if not is_count(right):
            yield drop_after(left, node)


@rule(
    "skip-normalisation",
    "semantic",
    source="operator catalogue M03 (no division by the sum), with a reciprocal computed before",
    examples=(
        Example("float inv_sum = w[0]; y[0] = x[0] * inv_sum;", "float inv_sum = w[0]; y[0] = x[0];"),
        Example("y[0] = x[0] * w[0];", None),
    ),
)
def skip_normalisation(tree: Tree) -> Iterator[Edit]:
    """A result is not multiplied by the reciprocal that normalises it."""
    for product, factor in _factors(tree):
        if is_normaliser(factor):
            yield _without(factor, product)


@rule(
    "drop-scale",
    "semantic",
    source=f"{_ILLUSION}: attention without 1/sqrt(d); operator catalogue M06, M18",
    examples=(
        Example("float scale = w[0]; y[0] = x[0] * scale;", "float scale = w[0]; y[0] = x[0];"),
        Example("y[0] = x[0] * w[0];", None),
    ),
)
def drop_scale(tree: Tree) -> Iterator[Edit]:
    """A scale factor, such as 1/sqrt(d) in attention, is forgotten."""
    for product, factor in _factors(tree):
        if is_scale(factor) and not is_normaliser(factor):
            yield _without(factor, product)


@rule(
    "skip-rescaling",
    "semantic",
    source=f"{_ILLUSION}: flash attention without the rescaling by alpha; operator catalogue M04",
    examples=(
        Example(
            "float m_old = w[0], m_new = w[1], s = x[0]; s = s * expf(m_old - m_new) + x[1];",
            "float m_old = w[0], m_new = w[1], s = x[0]; s = s + x[1];",
        ),
        Example("float m = w[0]; float s = x[0] * expf(x[1] - m);", None),
    ),
)
def skip_rescaling(tree: Tree) -> Iterator[Edit]:
    """A running sum or output is not corrected when the maximum grows."""
    for product, factor in _factors(tree):
        if is_rescale(factor) and not (factor.kind == "binary_expression" and operator(factor) == "*"):
            yield _without(factor, product)
    for node in tree.device("assignment_expression"):
        statement = node.parent
        if operator(node) == "*=" and is_rescale(operands(node)[1]) and statement is not None:
            yield remove_statement(statement)


@rule(
    "rescale-twice",
    "semantic",
    source="operator catalogue M05",
    examples=(
        Example("float corr = w[0]; y[0] = x[0] * corr;", "float corr = w[0]; y[0] = x[0] * (corr * corr);"),
        Example("y[0] = x[0] * w[0];", None),
    ),
)
def rescale_twice(tree: Tree) -> Iterator[Edit]:
    """A running sum or output is corrected twice when the maximum grows."""
    for _, factor in _factors(tree):
        if is_rescale(factor) and factor.kind != "binary_expression":
            yield replace(factor, f"({factor.text} * {factor.text})")
    for node in tree.device("assignment_expression"):
        right = operands(node)[1]
        if operator(node) == "*=" and is_rescale(right):
            yield replace(right, f"({right.text}) * ({right.text})")


@rule(
    "mean-becomes-sum",
    "semantic",
    source="operator catalogue M21; Sarkar, What Actually Finds Kernel Bugs, arXiv 2606.27396",
    examples=(
        Example("float s = x[0]; y[0] = s / n;", "float s = x[0]; y[0] = s;"),
        Example("y[0] = x[0] / w[0];", None),
    ),
)
def mean_becomes_sum(tree: Tree) -> Iterator[Edit]:
    """A mean is not divided by the number of elements."""
    for node in real_binaries(tree, "/"):
        left, right = operands(node)
        if is_count(right):
            yield drop_after(left, node)


@rule(
    "divide-by-count-minus-one",
    "semantic",
    source="operator catalogue M07 (biased and unbiased variance confused)",
    examples=(
        Example("float s = x[0]; y[0] = s / n;", "float s = x[0]; y[0] = s / (n - 1);"),
        Example("y[0] = x[0] / (n - 1);", "y[0] = x[0] / (n);"),
        Example("y[0] = x[0] / w[0];", None),
    ),
)
def divide_by_count_minus_one(tree: Tree) -> Iterator[Edit]:
    """The number of elements is confused with the degrees of freedom, one less."""
    for node in real_binaries(tree, "/"):
        right = operands(node)[1]
        if not is_count(right):
            count = _count_inside(right)
            if count is not None:
                yield drop_after(operands(count)[0], count)
            continue
        count = _count_inside(right)
        if count is not None:
            yield drop_after(operands(count)[0], count)
        else:
            yield replace(right, f"({right.text} - 1)")


def _count_inside(node: Node) -> Node | None:
    """The difference `n - 1` inside a divisor."""
    found = [n for n in node.find("binary_expression") if operator(n) == "-" and number(operands(n)[1]) == 1.0]
    return found[0] if found else None


@rule(
    "drop-epsilon",
    "semantic",
    source="operator catalogue M09; GroupNorm faults listed by KernelBench-Verified (facebookresearch/kernel_bench_verified)",
    examples=(
        Example("y[0] = rsqrtf(x[0] + 1e-5f);", "y[0] = rsqrtf(x[0]);"),
        Example("float eps = w[0]; y[0] = fmaxf(x[0], eps);", "float eps = w[0]; y[0] = x[0];"),
        Example("y[0] = x[0] + w[0];", None),
    ),
)
def drop_epsilon(tree: Tree) -> Iterator[Edit]:
    """The small number that keeps a root or quotient away from zero is forgotten."""
    for node in real_binaries(tree, "+"):
        left, right = operands(node)
        if is_epsilon(right):
            yield drop_after(left, node)
        elif is_epsilon(left):
            yield drop_before(right, node)
    for call in tree.device("call_expression"):
        given = arguments(call)
        if callee(call) in ("fmaxf", "max", "fmax") and len(given) == 2:
            for small, kept in (given, given[::-1]):
                if is_epsilon(small):
                    yield replace(call, kept.text if kept.kind != "binary_expression" else f"({kept.text})")


@rule(
    "epsilon-times-ten",
    "semantic",
    source="operator catalogue M10",
    examples=(
        Example("y[0] = rsqrtf(x[0] + 1e-5f);", "y[0] = rsqrtf(x[0] + 10.0f * 1e-5f);"),
        Example("float eps = w[0]; y[0] = fmaxf(x[0], eps);", "float eps = w[0]; y[0] = fmaxf(x[0], 10.0f * eps);"),
        Example("y[0] = x[0] + w[0];", None),
    ),
)
def epsilon_times_ten(tree: Tree) -> Iterator[Edit]:
    """The small number that keeps a root or quotient away from zero is ten times too large."""
    for node in real_binaries(tree, "+"):
        for side in operands(node):
            if is_epsilon(side):
                yield insert_before(side, "10.0f * ")
    for call in tree.device("call_expression"):
        for argument in arguments(call):
            if callee(call) in ("fmaxf", "max", "fmax") and is_epsilon(argument):
                yield insert_before(argument, "10.0f * ")


@rule(
    "epsilon-outside-root",
    "semantic",
    source="operator catalogue M08",
    examples=(
        Example("y[0] = rsqrtf(x[0] + 1e-5f);", "y[0] = (rsqrtf(x[0]) + 1e-5f);"),
        Example("y[0] = rsqrtf(x[0]);", None),
    ),
)
def epsilon_outside_root(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """The small number is added after the root instead of before."""
    for call in tree.device("call_expression"):
        inner = bare(arguments(call)[0]) if callee(call) in ROOTS and len(arguments(call)) == 1 else None
        if inner is None or inner.kind != "binary_expression" or operator(inner) != "+":
            continue
        left, right = operands(inner)
        if is_epsilon(right):
            yield insert_before(call, "("), drop_after(left, inner), insert_after(call, f" + {right.text})")


@rule(
    "skip-centering",
    "semantic",
    source="operator catalogue M11 (the mean is not subtracted)",
    examples=(
        Example("float mean = w[0]; y[0] = x[0] - mean;", "float mean = w[0]; y[0] = x[0];"),
        Example("y[0] = x[0] - w[0];", None),
    ),
)
def skip_centering(tree: Tree) -> Iterator[Edit]:
    """The mean is not subtracted."""
    for node in real_binaries(tree, "-"):
        left, right = operands(node)
        if is_mean(right):
            yield drop_after(left, node)


@rule(
    "confuse-l1-l2",
    "semantic",
    source=f"{_ILLUSION}: an l2 norm gone wrong; operator catalogue A12, A14",
    examples=(
        Example("float d = x[0]; y[0] = d * d;", "float d = x[0]; y[0] = fabsf(d);"),
        Example("y[0] = fabsf(x[0]);", "y[0] = ((x[0]) * (x[0]));"),
        Example("y[0] = x[0] * w[0];", None),
    ),
)
def confuse_l1_l2(tree: Tree) -> Iterator[Edit]:
    """A square stands for an absolute value, or the other way round."""
    for node in real_binaries(tree, "*"):
        left, right = operands(node)
        if left.text == right.text:
            yield replace(node, f"fabsf({left.text})")
    for call in tree.device("call_expression"):
        given = arguments(call)
        if callee(call) in ("fabsf", "abs", "fabs") and len(given) == 1:
            yield replace(call, f"(({given[0].text}) * ({given[0].text}))")
        elif callee(call) in ("fmaf", "fma") and len(given) == 3 and given[0].text == given[1].text:
            yield replace(call, f"(fabsf({given[0].text}) + {given[2].text})")


@rule(
    "log-of-sum-without-max",
    "semantic",
    source="log-sum-exp whose maximum is not added back; operator catalogue M20",
    examples=(
        Example("float m = x[0]; y[0] = m + logf(w[0]);", "float m = x[0]; y[0] = logf(w[0]);"),
        Example("float m = x[0]; y[0] = w[1] - m - logf(w[0]);", "float m = x[0]; y[0] = w[1] - logf(w[0]);"),
        Example("y[0] = x[0] + w[0];", None),
    ),
)
def log_of_sum_without_max(tree: Tree) -> Iterator[Edit]:
    """The maximum of a log-sum-exp is taken out but not put back."""
    for node in real_binaries(tree, "+", "-"):
        left, right = operands(node)
        if is_logarithm(right):
            inner = bare(left)
            if operator(node) == "+":
                yield drop_before(right, node)
            elif inner.kind == "binary_expression" and operator(inner) == "-":
                yield drop_after(operands(inner)[0], inner)
        elif is_logarithm(left) and operator(node) == "+":
            yield drop_after(left, node)
