"""Arithmetic faults: another mathematical function is called, or its arguments are mixed up."""

from __future__ import annotations

from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.patterns import (
    real_binaries,
    renamed,
)
from truekernel.mutation.rule import Example, rule
from truekernel.source.edits import drop_after, replace
from truekernel.source.query import arguments, callee, operands, same
from truekernel.source.tree import Node, Tree


@rule(
    "swap-min-max",
    "arithmetic",
    source="operator catalogue A13",
    examples=(
        Example("y[0] = fmaxf(x[0], 0.0f);", "y[0] = fminf(x[0], 0.0f);"),
        Example("y[0] = fabsf(x[0]);", None),
    ),
)
def swap_min_max(tree: Tree) -> Iterator[Edit]:
    """A minimum becomes a maximum, or a maximum a minimum."""
    pairs = [("fmaxf", "fminf"), ("max", "min"), ("fmax", "fmin"), ("__hmax", "__hmin"), ("__hmax2", "__hmin2")]
    yield from renamed({**dict(pairs), **{low: high for high, low in pairs}})(tree)


@rule(
    "swap-sqrt-rsqrt",
    "arithmetic",
    source="Sarkar, arXiv 2606.20128: an l2norm without its root; catalogue A15",
    examples=(
        Example("y[0] = sqrtf(x[0]);", ("y[0] = rsqrtf(x[0]);", "y[0] = (x[0]);")),
        Example("y[0] = expf(x[0]);", None),
    ),
)
def swap_sqrt_rsqrt(tree: Tree) -> Iterator[Edit]:
    """A square root becomes its reciprocal or is forgotten, or the reciprocal becomes the root."""
    pairs = [("sqrtf", "rsqrtf"), ("sqrt", "rsqrt"), ("hsqrt", "hrsqrt"), ("__fsqrt_rn", "rsqrtf")]
    names = {**{root: inverse for inverse, root in pairs}, **dict(pairs)}
    for call in tree.device("call_expression"):
        function = call.field("function")
        if function is not None and callee(call) in names:
            yield replace(function, names[callee(call)])
            if not callee(call).startswith(("r", "hr")):
                yield replace(function, "")


@rule(
    "confuse-exp-log-bases",
    "arithmetic",
    source="operator catalogue A16, A17",
    examples=(
        Example("y[0] = expf(x[0]);", "y[0] = exp2f(x[0]);"),
        Example("y[0] = log1pf(x[0]);", "y[0] = logf(x[0]);"),
        Example("y[0] = sqrtf(x[0]);", None),
    ),
)
def confuse_exp_log_bases(tree: Tree) -> Iterator[Edit]:
    """An exponential or a logarithm is taken to another base, or of its argument without the one added to it."""
    bases = {
        "expf": "exp2f",
        "__expf": "exp2f",
        "exp": "exp2",
        "exp2f": "expf",
        "exp2": "exp",
        "hexp": "hexp2",
        "hexp2": "hexp",
    }
    bases |= {"logf": "log2f", "__logf": "__log2f", "log": "log2", "log2f": "logf", "log10f": "logf", "hlog": "hlog2"}
    yield from renamed(bases | {"expm1f": "expf", "exp10f": "expf", "log1pf": "logf"})(tree)


@rule(
    "drop-square",
    "arithmetic",
    source="operator catalogue A14",
    examples=(
        Example("float d = x[0]; y[0] = d * d;", "float d = x[0]; y[0] = d;"),
        Example("y[0] = x[0] * w[0];", None),
    ),
)
def drop_square(tree: Tree) -> Iterator[Edit]:
    """A square is forgotten."""
    for node in real_binaries(tree, "*"):
        left, right = operands(node)
        if same(left, right):
            yield drop_after(left, node)
    for call in _fused(tree):
        first, second, addend = arguments(call)
        if same(first, second):
            yield replace(call, f"(({first.text}) + ({addend.text}))")


@rule(
    "fused-addend-lost",
    "arithmetic",
    source="operator catalogue A10, for accumulation by fused multiply-add",
    examples=(
        Example("float a = 0.0f; a = fmaf(x[0], w[0], a);", "float a = 0.0f; a = ((x[0]) * (w[0]));"),
        Example("float a = x[0] * w[0];", None),
    ),
)
def fused_addend_lost(tree: Tree) -> Iterator[Edit]:
    """A fused multiply-add forgets what it should add to."""
    for call in _fused(tree):
        first, second, _ = arguments(call)
        yield replace(call, f"(({first.text}) * ({second.text}))")


@rule(
    "fused-operands-swapped",
    "arithmetic",
    source="operator catalogue A11",
    examples=(
        Example("float a = 0.0f; a = fmaf(x[0], w[0], a);", "float a = 0.0f; a = fmaf(x[0], a, w[0]);"),
        Example("float a = x[0] * w[0];", None),
    ),
)
def fused_operands_swapped(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """A fused multiply-add takes its second factor for the addend."""
    for call in _fused(tree):
        _, second, addend = arguments(call)
        yield replace(second, addend.text), replace(addend, second.text)


def _fused(tree: Tree) -> Iterator[Node]:
    for call in tree.device("call_expression"):
        if callee(call) in ("fmaf", "fma", "__fmaf_rn", "__hfma") and len(arguments(call)) == 3:
            yield call


@rule(
    "confuse-similar-functions",
    "arithmetic",
    source="KernelBench-Verified: the tanh approximation of GELU for its definition; operator catalogue M14",
    examples=(
        Example("y[0] = erff(x[0]);", "y[0] = tanhf(x[0]);"),
        Example("y[0] = floorf(x[0]);", "y[0] = ceilf(x[0]);"),
        Example("y[0] = expf(x[0]);", None),
    ),
)
def confuse_similar_functions(tree: Tree) -> Iterator[Edit]:
    """A function is confused with one that is close in name or shape."""
    pairs = {
        "erff": "tanhf",
        "tanhf": "erff",
        "erfcf": "erff",
        "sinf": "cosf",
        "cosf": "sinf",
        "floorf": "ceilf",
        "ceilf": "floorf",
    }
    pairs |= {"sinhf": "coshf", "roundf": "truncf", "rintf": "truncf", "sqrtf": "cbrtf"}
    yield from renamed(pairs)(tree)
