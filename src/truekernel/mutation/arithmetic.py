"""Arithmetic faults: an operator, a term, a factor or a constant is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.patterns import (
    in_index,
    in_loop_header,
    index_binaries,
    is_epsilon,
    is_index,
    is_infinite,
    is_value,
    literal,
    number,
    real_binaries,
    real_literals,
    renamed,
    stores,
)
from truekernel.mutation.roles import is_centering, is_normaliser, is_rescale, is_scale
from truekernel.mutation.rule import Example, rule
from truekernel.source.edits import drop_after, drop_before, insert_after, insert_before, replace
from truekernel.source.query import arguments, bare, callee, operands, operator, same
from truekernel.source.tree import Node, Tree

_CATALOGUE = "mutation operator catalogue for GPU kernels,"
_MUTGPU = "MUTGPU, ICST 2020"
_TRUNCATED = 5


def _token(node: Node) -> Node:
    token = node.field("operator")
    assert token is not None
    return token


@rule(
    "swap-add-sub",
    "arithmetic",
    source=f"{_CATALOGUE} A01; math operator of {_MUTGPU}",
    examples=(
        Example("y[0] = x[0] + w[0];", "y[0] = x[0] - w[0];"),
        Example("float a = x[n + 1] * w[0];", None),
        Example("__half a = __float2half(x[0]); a = __hadd(a, a);", "__half a = __float2half(x[0]); a = __hsub(a, a);"),
    ),
)
def swap_add_sub(tree: Tree) -> Iterator[Edit]:
    """A sum of real numbers becomes a difference, or a difference a sum."""
    for node in real_binaries(tree, "+", "-"):
        yield replace(_token(node), "-" if operator(node) == "+" else "+")
    yield from renamed({"__hadd": "__hsub", "__hsub": "__hadd", "__hadd2": "__hsub2", "__fadd_rn": "__fsub_rn"})(tree)


@rule(
    "swap-mul-div",
    "arithmetic",
    source=f"{_CATALOGUE} A02; math operator of {_MUTGPU}",
    examples=(
        Example("y[0] = x[0] * w[0];", "y[0] = x[0] / w[0];"),
        Example("y[n * m] = x[0] + w[0];", None),
    ),
)
def swap_mul_div(tree: Tree) -> Iterator[Edit]:
    """A product of real numbers becomes a quotient, or a quotient a product."""
    for node in real_binaries(tree, "*", "/"):
        yield replace(_token(node), "/" if operator(node) == "*" else "*")
    yield from renamed({"__hmul": "__hdiv", "__hdiv": "__hmul", "__fdividef": "__fmul_rn", "__fdiv_rn": "__fmul_rn"})(
        tree
    )


@rule(
    "subtract-for-accumulate",
    "arithmetic",
    source=f"{_CATALOGUE} A03",
    examples=(
        Example("float s = 0.0f; s += x[0];", "float s = 0.0f; s -= x[0];"),
        Example("int i = 0; i += n; y[i] = 1.0f;", None),
    ),
)
def subtract_for_accumulate(tree: Tree) -> Iterator[Edit]:
    """A term is subtracted from an accumulator instead of added, or added instead of subtracted."""
    for node in _accumulations(tree):
        yield replace(_token(node), "-=" if operator(node) == "+=" else "+=")


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
            yield replace(_token(node), "=")


@rule(
    "accumulate-twice",
    "arithmetic",
    source=f"{_CATALOGUE} A22",
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
    source=f"{_CATALOGUE} A03; the x-1 inputs of KernelBench-Verified look for sign faults (facebookresearch/kernel_bench_verified)",
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
    source=f"{_CATALOGUE} A04 (a bias is forgotten)",
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
    source=f"{_CATALOGUE} A04",
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
    source=f"{_CATALOGUE} A03",
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
    source=f"{_CATALOGUE} A05",
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
    source=f"{_CATALOGUE} A02",
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
    "constant-off-by-a-thousandth",
    "arithmetic",
    source=f"{_CATALOGUE} A08",
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
    source=f"{_CATALOGUE} A09 (0.7978 for sqrt(2/pi), 0.0447 for 0.044715)",
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
    source=f"{_CATALOGUE} A06; increment operator of {_MUTGPU}",
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
    "swap-min-max",
    "arithmetic",
    source=f"{_CATALOGUE} A13",
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
    "confuse-exp-bases",
    "arithmetic",
    source=f"{_CATALOGUE} A16",
    examples=(
        Example("y[0] = expf(x[0]);", "y[0] = exp2f(x[0]);"),
        Example("y[0] = logf(x[0]);", None),
    ),
)
def confuse_exp_bases(tree: Tree) -> Iterator[Edit]:
    """An exponential is taken to another base."""
    names = {
        "expf": "exp2f",
        "__expf": "exp2f",
        "exp": "exp2",
        "exp2f": "expf",
        "exp2": "exp",
        "hexp": "hexp2",
        "hexp2": "hexp",
    }
    yield from renamed(names | {"expm1f": "expf", "exp10f": "expf"})(tree)


@rule(
    "confuse-log-bases",
    "arithmetic",
    source=f"{_CATALOGUE} A17",
    examples=(
        Example("y[0] = logf(x[0]);", "y[0] = log2f(x[0]);"),
        Example("y[0] = log1pf(x[0]);", "y[0] = logf(x[0]);"),
        Example("y[0] = expf(x[0]);", None),
    ),
)
def confuse_log_bases(tree: Tree) -> Iterator[Edit]:
    """A logarithm is taken to another base or of another argument."""
    names = {
        "logf": "log2f",
        "__logf": "__log2f",
        "log": "log2",
        "log2f": "logf",
        "log10f": "logf",
        "log1pf": "logf",
        "hlog": "hlog2",
    }
    yield from renamed(names)(tree)


@rule(
    "drop-square",
    "arithmetic",
    source=f"{_CATALOGUE} A14",
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
    "drop-negation",
    "arithmetic",
    source=f"{_CATALOGUE} A03",
    examples=(
        Example("y[0] = expf(-x[0]);", "y[0] = expf(x[0]);"),
        Example("float m = -INFINITY; m = fmaxf(m, x[0]); y[0] = m;", None),
    ),
)
def drop_negation(tree: Tree) -> Iterator[Edit]:
    """A minus sign is forgotten."""
    for node in tree.device("unary_expression"):
        argument = node.field("argument")
        if operator(node) == "-" and argument is not None and not is_infinite(argument) and is_value(argument):
            yield drop_before(argument, node)


@rule(
    "fused-addend-lost",
    "arithmetic",
    source=f"{_CATALOGUE} A10, for accumulation by fused multiply-add",
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
    source=f"{_CATALOGUE} A11",
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


@rule(
    "shift-count-plus-one",
    "arithmetic",
    source=f"{_CATALOGUE} A20",
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
    "divide-before-multiplying",
    "arithmetic",
    source=f"{_CATALOGUE} A18",
    examples=(
        Example("int k = n * m / 4;", "int k = n / 4 * m;"),
        Example("float k = x[0] * w[0] / x[1];", None),
    ),
)
def divide_before_multiplying(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """An integer product is divided too early, so that the remainder is lost."""
    for node in index_binaries(tree, "/"):
        left, right = operands(node)
        product = bare(left)
        if product.kind == "binary_expression" and operator(product) == "*" and right.kind != "binary_expression":
            first, second = operands(product)
            yield (replace(node, f"{first.text} / {right.text} * {second.text}"),)


@rule(
    "mask-for-remainder",
    "arithmetic",
    source=f"{_CATALOGUE} A19",
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
        if value is None or int(value) & (int(value) - 1):
            yield replace(node, f"({left.text} & ({right.text} - 1))")


def _accumulations(tree: Tree) -> Iterator[Node]:
    for node in tree.device("assignment_expression"):
        left, right = operands(node)
        if operator(node) in ("+=", "-=") and is_value(left) and not is_index(right) and not in_index(node):
            yield node


def _fused(tree: Tree) -> Iterator[Node]:
    for call in tree.device("call_expression"):
        if callee(call) in ("fmaf", "fma", "__fmaf_rn", "__hfma") and len(arguments(call)) == 3:
            yield call


def _cut(value: float, digits: int) -> float:
    """`value` without what follows its first significant `digits` (for magnitudes of everyday constants)."""
    mantissa, exponent = f"{value:.12e}".split("e")
    return float(f"{mantissa[: digits + 1]}e{exponent}")
