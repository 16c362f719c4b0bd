"""What a value is for, judged by its name and shape: rules of algorithms look for roles, general rules leave them to those."""

from __future__ import annotations

import re

from truekernel.mutation.patterns import number
from truekernel.source.query import arguments, bare, callee, operands, operator
from truekernel.source.tree import Node
from truekernel.source.types import is_integral

_NORMALISER = re.compile(r"inv|rcp|recip|rstd|rsigma|norm|denom", re.IGNORECASE)
_SCALE = re.compile(r"scale|alpha|slope|temperature|beta_|factor", re.IGNORECASE)
_RESCALE = re.compile(r"corr|rescale|decay|adjust|fix", re.IGNORECASE)
_MEAN = re.compile(r"mean|avg|average|\bmu\b|centre|center", re.IGNORECASE)
_MAXIMUM = re.compile(
    r"^(?:\w+(?:\.|->))?(?:\w*max\w*|\w*mx\w*|[lgwn]?m\d?|m_\w+|\w+_m|\w*(?:old|new|prev)\w*|\w*(?:peak|top|best)\w*)$",
    re.IGNORECASE,
)
_LOGARITHM = re.compile(r"log|lse", re.IGNORECASE)
EXPONENTIALS = ("expf", "__expf", "exp", "exp2f", "exp2", "hexp", "__exp10f", "exp10f")
ROOTS = ("sqrtf", "sqrt", "rsqrtf", "rsqrt", "__fsqrt_rn", "__frsqrt_rn", "hsqrt", "hrsqrt")


def _named(node: Node, pattern: re.Pattern[str]) -> bool:
    node = bare(node)
    if node.kind == "subscript_expression":
        base = node.field("argument")
        return base is not None and _named(base, pattern)
    return node.kind in ("identifier", "field_expression") and pattern.search(node.text) is not None


def is_normaliser(node: Node) -> bool:
    """Whether a factor normalises: a reciprocal sum, a reciprocal deviation, or a call of a reciprocal root."""
    return _named(node, _NORMALISER) or callee(bare(node)) in ("rsqrtf", "rsqrt", "hrsqrt", "__frcp_rn")


def is_scale(node: Node) -> bool:
    """Whether a factor scales: a parameter or variable called so, as 1/sqrt(d) in attention or the slope of a leaky relu."""
    return _named(node, _SCALE) and not is_rescale(node)


def is_rescale(node: Node) -> bool:
    """Whether a factor corrects a running result for a new maximum, as online softmax does: exp of a difference, or named so."""
    node = bare(node)
    if _named(node, _RESCALE):
        return True
    if node.kind == "binary_expression" and operator(node) == "*":
        return any(is_rescale(side) for side in operands(node))
    if node.kind == "identifier":
        return _initialiser_is_rescale(node)
    return _is_exponential_of_maxima(node)


def _is_exponential_of_maxima(node: Node) -> bool:
    """Whether an expression is `exp(m_old - m_new)`."""
    node = bare(node)
    if callee(node) not in EXPONENTIALS or len(arguments(node)) != 1:
        return False
    inner = bare(arguments(node)[0])
    return (
        inner.kind == "binary_expression"
        and operator(inner) == "-"
        and all(_named(s, _MAXIMUM) for s in operands(inner))
    )


def is_centering(node: Node) -> bool:
    """Whether a difference takes away a mean, or the maximum inside an exponential or a log-sum-exp."""
    right = operands(node)[1]
    outer = node.parent
    while outer is not None and outer.kind in ("argument_list", "parenthesized_expression", "binary_expression"):
        outer = outer.parent
    if node.parent is not None and node.parent.kind == "binary_expression" and is_log_sum_exp(node.parent):
        return True
    return _named(right, _MEAN) or (outer is not None and callee(outer) in EXPONENTIALS)


def is_logarithm(node: Node) -> bool:
    """Whether an expression is a logarithm: a call of one, or a variable named so."""
    return callee(bare(node)) in ("logf", "__logf", "log", "log2f", "__log2f") or _named(node, _LOGARITHM)


def is_log_sum_exp(node: Node) -> bool:
    """Whether a difference or sum ends with a logarithm, as `x - max - log(sum)` does."""
    return any(is_logarithm(side) for side in operands(node))


def is_mean(node: Node) -> bool:
    """Whether a name is that of a mean."""
    return _named(node, _MEAN)


def is_count(node: Node) -> bool:
    """Whether a divisor counts elements: an integer, or an integer turned into a real number."""
    node = bare(node)
    if node.kind == "cast_expression":
        value = node.field("value")
        return value is not None and is_integral(value)
    given = arguments(node)
    if node.kind == "call_expression" and len(given) == 1:
        return (
            callee(node) in ("static_cast", "float", "double", "__int2float_rn") or "cast" in callee(node)
        ) and is_integral(given[0])
    return number(node) is None and is_integral(node)


def _initialiser_is_rescale(name: Node) -> bool:
    function = name.function
    if function is None:
        return False
    for declarator in function.find("init_declarator"):
        target, value = declarator.field("declarator"), declarator.field("value")
        if target is not None and target.text == name.text and value is not None and declarator.end <= name.start:
            return _is_exponential_of_maxima(value)
    return False
