"""Faults of an algorithm: selections, activations, comparisons, wrong operands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from truekernel.model import Edit
from truekernel.mutation.patterns import (
    compares_values,
    is_infinite,
    is_input,
    is_value,
    loads,
    local_names,
    number,
    parameters_like,
    real_binaries,
    stores,
    token,
)
from truekernel.mutation.roles import EXPONENTIALS
from truekernel.mutation.rule import Example, rule
from truekernel.source.edits import replace
from truekernel.source.query import arguments, bare, callee, operands, operator
from truekernel.source.tree import Node, Tree
from truekernel.source.types import declared_type, expression_type

_ILLUSION = "Sarkar, The Correctness Illusion, arXiv 2606.20128"


_ACTIVATION = re.compile(
    r"f?abs[f_]?|tanhf|erff|\w*(?:relu|gelu|silu|swish|sigmoid|softplus|mish|celu|selu|elu|activation|act)6?",
    re.IGNORECASE,
)


_EXTREMA = ("fmaxf", "fminf", "max", "min", "fmax", "fmin")


def _value_comparisons(tree: Tree) -> Iterator[Node]:
    for node in tree.device("binary_expression"):
        if operator(node) in ("<", "<=", ">", ">=") and compares_values(node):
            yield node


@rule(
    "ties-go-the-other-way",
    "semantic",
    source="operator catalogue B01, for values (the first maximum against the last)",
    examples=(
        Example("if (x[0] > w[0]) y[0] = 1.0f;", "if (x[0] >= w[0]) y[0] = 1.0f;"),
        Example("if (n > m) y[0] = 1.0f;", None),
    ),
)
def ties_go_the_other_way(tree: Tree) -> Iterator[Edit]:
    """A comparison of values decides equality the other way."""
    for node in _value_comparisons(tree):
        yield replace(token(node), operator(node)[0] if "=" in operator(node) else f"{operator(node)}=")


@rule(
    "swap-comparison-direction",
    "semantic",
    source="negate conditional operator of MUTGPU, ICST 2020; operator catalogue A13, M15",
    examples=(
        Example("if (x[0] > w[0]) y[0] = 1.0f;", "if (x[0] < w[0]) y[0] = 1.0f;"),
        Example("if (n > m) y[0] = 1.0f;", None),
    ),
)
def swap_comparison_direction(tree: Tree) -> Iterator[Edit]:
    """A comparison of values looks for the smaller instead of the larger, or the other way round."""
    for node in _value_comparisons(tree):
        yield replace(token(node), operator(node).translate(str.maketrans("<>", "><")))


@rule(
    "swap-branches",
    "semantic",
    source="operator catalogue M15 (the slope of a leaky relu on the wrong side)",
    examples=(
        Example("y[0] = x[0] > 0.0f ? x[0] : 0.1f * x[0];", "y[0] = x[0] > 0.0f ? 0.1f * x[0] : x[0];"),
        Example("y[0] = n < m ? x[n] : 0.0f;", None),
    ),
)
def swap_branches(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """The two sides of a selection by value are exchanged."""
    for node, yes, no in _selections(tree):
        if not is_infinite(node):
            yield replace(yes, no.text), replace(no, yes.text)


def _selections(tree: Tree) -> Iterator[tuple[Node, Node, Node]]:
    """`condition ? yes : no` that chooses by value, not by place: condition, yes, no."""
    for node in tree.device("conditional_expression"):
        condition, yes, no = (node.field(name) for name in ("condition", "consequence", "alternative"))
        if condition is None or yes is None or no is None:
            continue
        compared = [n for n in condition.find("binary_expression") if operator(n) in ("<", "<=", ">", ">=", "==", "!=")]
        if (compared and any(compares_values(n) for n in compared)) or (not compared and is_value(node)):
            yield condition, yes, no


@rule(
    "selection-always-second",
    "semantic",
    source="operator catalogue M15, M18 (one branch of an activation is forgotten)",
    examples=(
        Example("y[0] = x[0] > 0.0f ? x[0] : 0.1f * x[0];", "y[0] = false ? x[0] : 0.1f * x[0];"),
        Example("y[0] = n < m ? x[n] : 0.0f;", None),
    ),
)
def selection_always_second(tree: Tree) -> Iterator[Edit]:
    """A selection by value always takes its second side."""
    for condition, _, _ in _selections(tree):
        yield replace(condition, "false")


@rule(
    "selection-always-first",
    "semantic",
    source="operator catalogue M16 (a relu that lets everything through; values of one sign hide it)",
    examples=(
        Example("y[0] = x[0] > 0.0f ? x[0] : 0.1f * x[0];", "y[0] = true ? x[0] : 0.1f * x[0];"),
        Example("y[0] = n < m ? x[n] : 0.0f;", None),
    ),
)
def selection_always_first(tree: Tree) -> Iterator[Edit]:
    """A selection by value always takes its first side."""
    for condition, _, _ in _selections(tree):
        yield replace(condition, "true")


@rule(
    "drop-nonlinearity",
    "semantic",
    source="KernelBench draws inputs from [0, 1), where relu is the identity; operator catalogue A12, M16, M17",
    examples=(
        Example("y[0] = fmaxf(x[0], 0.0f);", "y[0] = x[0];"),
        Example(
            "y[0] = fminf(fmaxf(x[0], -1.0f), 1.0f);", ("y[0] = (fmaxf(x[0], -1.0f));", "y[0] = fminf(x[0], 1.0f);")
        ),
        Example("y[0] = fabsf(x[0]);", "y[0] = (x[0]);"),
        Example("float m = w[0]; m = fmaxf(m, x[0]); y[0] = m;", None),
    ),
)
def drop_nonlinearity(tree: Tree) -> Iterator[Edit]:
    """A relu, another bound, an absolute value, or a call of an activation is forgotten."""
    for call in tree.device("call_expression"):
        given, function = arguments(call), call.field("function")
        if len(given) == 1 and function is not None and _ACTIVATION.fullmatch(callee(call)):
            yield replace(function, "")
        if callee(call) not in _EXTREMA or len(given) != 2 or not is_value(call):
            continue
        for bound, kept in (given[::-1], given):
            if _is_bound(bound) and not _is_bound(kept):
                loose = kept.kind not in ("identifier", "subscript_expression", "field_expression")
                yield replace(call, f"({kept.text})" if loose else kept.text)
                break


def _is_bound(node: Node) -> bool:
    """Whether an expression is a constant or a parameter that bounds values."""
    if number(node) is not None:
        return abs(number(node) or 0.0) > 1e-3 or number(node) == 0.0
    name = bare(node)
    function = name.function
    if name.kind != "identifier" or function is None:
        return False
    given = [names[-1].text for p in function.find("parameter_declaration") if (names := p.find("identifier"))]
    words = (
        "min",
        "max",
        "low",
        "high",
        "lo",
        "hi",
        "bound",
        "limit",
        "clip",
        "clamp",
        "floor",
        "ceil",
        "cap",
        "lower",
        "upper",
    )
    return name.text in given and any(
        name.text.lower().startswith(word) or name.text.lower().endswith(word) for word in words
    )


@rule(
    "maximum-becomes-sum",
    "semantic",
    source="operator catalogue W15, M21 (the wrong reduction)",
    examples=(
        Example("float m = w[0]; m = fmaxf(m, x[0]); y[0] = m;", "float m = w[0]; m = ((m) + (x[0])); y[0] = m;"),
        Example("y[0] = fmaxf(x[0], 0.0f);", None),
    ),
)
def maximum_becomes_sum(tree: Tree) -> Iterator[Edit]:
    """A maximum or minimum of two values becomes their sum."""
    for call in tree.device("call_expression"):
        given = arguments(call)
        if (
            callee(call) in _EXTREMA
            and len(given) == 2
            and is_value(call)
            and not any(number(a) is not None for a in given)
        ):
            yield replace(call, f"(({given[0].text}) + ({given[1].text}))")


@rule(
    "sum-becomes-maximum",
    "semantic",
    source="operator catalogue W15, M21 (the wrong reduction)",
    examples=(
        Example("float s = 0.0f; s += x[0];", "float s = 0.0f; s = fmaxf(s, x[0]);"),
        Example("int s = 0; s += n;", None),
    ),
)
def sum_becomes_maximum(tree: Tree) -> Iterator[Edit]:
    """A running sum becomes a running maximum."""
    for node in tree.device("assignment_expression"):
        left, right = operands(node)
        found = expression_type(left)
        if operator(node) == "+=" and found is not None and found.floating and found.base == "float":
            yield replace(node, f"{left.text} = fmaxf({left.text}, {right.text})")


@rule(
    "wrong-input-buffer",
    "semantic",
    source="operator catalogue M12 (weight and bias exchanged)",
    examples=(
        Example("y[0] = x[1] + 1.0f;", "y[0] = w[1] + 1.0f;"),
        Example("y[0] = y[1];", None),
    ),
)
def wrong_input_buffer(tree: Tree) -> Iterator[Edit]:
    """An element is read from another input."""
    for _, base, _ in loads(tree):
        others = parameters_like(base, is_input) if is_input(base) else []
        if others:
            yield replace(base, others[0])


@rule(
    "input-ignored",
    "semantic",
    source="KernelBench issue 165 (github.com/ScalingIntelligence/KernelBench/issues/165): outputs of zeros pass; operator catalogue M25",
    examples=(
        Example("y[0] = x[1] + 1.0f;", "y[0] = 0.0f + 1.0f;"),
        Example("int k = n; y[0] = y[k];", None),
    ),
)
def input_ignored(tree: Tree) -> Iterator[Edit]:
    """An element of an input counts as zero."""
    for node, base, _ in loads(tree):
        found = expression_type(node)
        if is_input(base) and found is not None and found.base == "float" and found.scalar:
            yield replace(node, "0.0f")


@rule(
    "flush-small-results",
    "semantic",
    source="KernelBench-Verified: early exit on small values (facebookresearch/kernel_bench_verified); KernelBench issue 165; operator catalogue M24",
    examples=(
        Example("y[0] = x[0] * 0.5f;", "y[0] = fabsf(x[0] * 0.5f) < 1e-3f ? 0.0f : (x[0] * 0.5f);"),
        Example("y[0] = 0.0f;", None),
    ),
)
def flush_small_results(tree: Tree) -> Iterator[Edit]:
    """Results below a thousandth are stored as zero."""
    for _, left, right in stores(tree):
        base = left.field("argument")
        pointer = declared_type(base) if base is not None and base.kind == "identifier" else None
        found = expression_type(left)
        if (
            number(right) is None
            and pointer is not None
            and pointer.pointer
            and found is not None
            and found.base == "float"
            and found.scalar
        ):
            yield replace(right, f"fabsf({right.text}) < 1e-3f ? 0.0f : ({right.text})")


@rule(
    "store-constant",
    "semantic",
    source="KernelBench issue 165 (github.com/ScalingIntelligence/KernelBench/issues/165): two kernels of zeros, made by models, passed",
    examples=(
        Example("y[0] = x[0] * 0.5f;", "y[0] = 0.0f;"),
        Example("y[0] = 0.0f;", None),
    ),
)
def store_constant(tree: Tree) -> Iterator[Edit]:
    """A result is never stored; zero is."""
    for _, left, right in stores(tree):
        base = left.field("argument")
        pointer = declared_type(base) if base is not None and base.kind == "identifier" else None
        found = expression_type(left)
        if (
            number(right) is None
            and pointer is not None
            and pointer.pointer
            and found is not None
            and found.base == "float"
            and found.scalar
        ):
            yield replace(right, "0.0f")


@rule(
    "wrong-value-variable",
    "semantic",
    source="operator catalogue M02, M12 (mean for variance, old maximum for new)",
    examples=(
        Example("float a = x[0]; float b = x[1]; y[0] = b;", "float a = x[0]; float b = x[1]; y[0] = a;"),
        Example("float a = x[0]; y[0] = a;", None),
    ),
)
def wrong_value_variable(tree: Tree) -> Iterator[Edit]:
    """Another real variable of the same block of code is used."""
    for name in tree.device("identifier"):
        found = declared_type(name)
        if found is None or not found.floating or not _is_read(name):
            continue
        others = local_names(name, partial(_has_type, base=found.base))
        if others:
            yield replace(name, others[0])


def _has_type(name: Node, base: str) -> bool:
    found = declared_type(name)
    return found is not None and found.scalar and found.base == base


def _is_read(name: Node) -> bool:
    """Whether a name is a whole operand of an expression and not what is declared or assigned."""
    parent = name.parent
    if parent is None or parent.kind not in (
        "binary_expression",
        "argument_list",
        "assignment_expression",
        "return_statement",
    ):
        return False
    return not (parent.kind == "assignment_expression" and name.field_name == "left")


@rule(
    "split-exponential",
    "semantic",
    source="operator catalogue M19, M01 (a sigmoid that is right on one side only, a softmax that overflows)",
    examples=(
        Example("y[0] = 1.0f / (1.0f + expf(-x[0]));", "y[0] = 1.0f / (1.0f + (1.0f / expf(x[0])));"),
        Example("y[0] = expf(x[0] - w[0]);", "y[0] = (expf(x[0]) / expf(w[0]));"),
        Example("y[0] = expf(x[0]);", None),
    ),
)
def split_exponential(tree: Tree) -> Iterator[Edit]:
    """exp(a - b) is computed as exp(a) / exp(b), which overflows although the result is small."""
    for call in tree.device("call_expression"):
        given = arguments(call)
        inner = bare(given[0]) if callee(call) in EXPONENTIALS and len(given) == 1 else None
        if inner is None or operator(inner) != "-":
            continue
        name, argument = callee(call), inner.field("argument")
        if argument is not None:
            yield replace(call, f"(1.0f / {name}({argument.text}))")
        elif inner.kind == "binary_expression":
            left, right = operands(inner)
            yield replace(call, f"({name}({left.text}) / {name}({right.text}))")


@rule(
    "reduce-then-reuse-first",
    "semantic",
    source="operator catalogue M02 (a statistic of another row or axis)",
    examples=(
        Example("y[0] = (x[0] + w[0]) * 0.5f;", "y[0] = (x[0] + (x[0])) * 0.5f;"),
        Example("y[0] = x[0] * w[0];", None),
    ),
)
def reduce_then_reuse_first(tree: Tree) -> Iterator[Edit]:
    """The first of two added values is added again in the place of the second."""
    for node in real_binaries(tree, "+"):
        left, right = operands(node)
        if number(right) is None and number(left) is None and left.text != right.text:
            yield replace(right, f"({left.text})")
