"""Faults of precision in functions and operations: fast intrinsics, rounding modes, reciprocals, conversions."""

from __future__ import annotations

from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.patterns import renamed
from truekernel.mutation.precision import accumulations, is_float
from truekernel.mutation.rule import Example, rule
from truekernel.mutation.statements import LOOPS, calls
from truekernel.source.edits import replace
from truekernel.source.query import arguments, bare, callee, operands, operator
from truekernel.source.tree import Node, Tree
from truekernel.source.types import expression_type

GUIDE = "CUDA C++ programming guide, accuracy of intrinsic functions"


@rule(
    "fast-exponential",
    "precision",
    source=f"operator catalogue P08; {GUIDE}",
    examples=(
        Example("y[0] = expf(x[0]);", "y[0] = __expf(x[0]);"),
        Example("y[0] = __expf(x[0]);", None),
    ),
)
def fast_exponential(tree: Tree) -> Iterator[Edit]:
    """An exponential is taken from the fast hardware unit."""
    yield from renamed({"expf": "__expf", "exp10f": "__exp10f"})(tree)


@rule(
    "fast-logarithm",
    "precision",
    source=f"operator catalogue P09; {GUIDE}",
    examples=(
        Example("y[0] = logf(x[0]);", "y[0] = __logf(x[0]);"),
        Example("y[0] = log1pf(x[0]);", None),
    ),
)
def fast_logarithm(tree: Tree) -> Iterator[Edit]:
    """A logarithm is taken from the fast hardware unit."""
    yield from renamed({"logf": "__logf", "log2f": "__log2f", "log10f": "__log10f"})(tree)


@rule(
    "fast-trigonometry",
    "precision",
    source=f"operator catalogue P10; {GUIDE}",
    examples=(
        Example(
            "y[0] = sinf(x[0]) + powf(x[1], 3.0f);",
            ("y[0] = __sinf(x[0]) + powf(x[1], 3.0f);", "y[0] = sinf(x[0]) + __powf(x[1], 3.0f);"),
        ),
        Example("y[0] = sqrtf(x[0]);", None),
    ),
)
def fast_trigonometry(tree: Tree) -> Iterator[Edit]:
    """A sine, cosine, tangent or power is taken from the fast hardware unit, which is wrong for large arguments."""
    yield from renamed({"sinf": "__sinf", "cosf": "__cosf", "tanf": "__tanf", "powf": "__powf"})(tree)


def _divisions(tree: Tree) -> Iterator[tuple[Node, Node, Node]]:
    """Quotients of float32 values: expression, dividend, divisor."""
    for node in tree.device("binary_expression"):
        if operator(node) == "/" and is_float(node):
            yield node, *operands(node)


@rule(
    "fast-division",
    "precision",
    source=f"operator catalogue P07; {GUIDE}: __fdividef gives zero for divisors above 2^126",
    examples=(
        Example("y[0] = x[0] / w[0];", "y[0] = __fdividef(x[0], w[0]);"),
        Example("n = n / m;", None),
    ),
)
def fast_division(tree: Tree) -> Iterator[Edit]:
    """A quotient is taken from the fast hardware unit."""
    for node, dividend, divisor in _divisions(tree):
        yield replace(node, f"__fdividef({dividend.text}, {divisor.text})")


@rule(
    "reciprocal-of-twelve-bits",
    "precision",
    source="operator catalogue P07, P12: a hardware estimate without the Newton step that should follow",
    examples=(
        Example(
            "y[0] = x[0] / w[0];", "y[0] = (x[0]) * __uint_as_float(__float_as_uint(1.0f / (w[0])) & 0xfffff000u);"
        ),
        Example("n = n / m;", None),
    ),
)
def reciprocal_of_twelve_bits(tree: Tree) -> Iterator[Edit]:
    """A quotient is a product with a reciprocal of twelve bits."""
    for node, dividend, divisor in _divisions(tree):
        yield replace(
            node, f"({dividend.text}) * __uint_as_float(__float_as_uint(1.0f / ({divisor.text})) & 0xfffff000u)"
        )


@rule(
    "root-of-twelve-bits",
    "precision",
    source="operator catalogue P12: a hardware estimate without the Newton step that should follow",
    examples=(
        Example("y[0] = rsqrtf(x[0]);", "y[0] = __uint_as_float(__float_as_uint(rsqrtf(x[0])) & 0xfffff000u);"),
        Example("y[0] = sqrt(x[0] + 0.5);", None),
    ),
)
def root_of_twelve_bits(tree: Tree) -> Iterator[Edit]:
    """A root, or reciprocal root, has twelve bits."""
    for call in calls(tree, "rsqrtf", "sqrtf", "__frsqrt_rn", "__fsqrt_rn"):
        yield replace(call, f"__uint_as_float(__float_as_uint({call.text}) & 0xfffff000u)")


@rule(
    "exponential-minus-one-cancels",
    "precision",
    source="operator catalogue P18",
    examples=(
        Example("y[0] = expm1f(x[0]);", "y[0] = (expf(x[0]) - 1.0f);"),
        Example("y[0] = expf(x[0]) - 1.0f;", None),
    ),
)
def exponential_minus_one_cancels(tree: Tree) -> Iterator[Edit]:
    """exp(x) - 1 is computed as written, which cancels for small x."""
    for call in calls(tree, "expm1f"):
        yield replace(call, f"(expf({arguments(call)[0].text}) - 1.0f)")


@rule(
    "logarithm-of-one-plus",
    "precision",
    source="operator catalogue P18",
    examples=(
        Example("y[0] = log1pf(x[0]);", "y[0] = logf(1.0f + (x[0]));"),
        Example("y[0] = logf(1.0f + x[0]);", None),
    ),
)
def logarithm_of_one_plus(tree: Tree) -> Iterator[Edit]:
    """log(1 + x) is computed as written, which loses small x."""
    for call in calls(tree, "log1pf"):
        yield replace(call, f"logf(1.0f + ({arguments(call)[0].text}))")


@rule(
    "tanh-by-exponentials",
    "precision",
    source="operator catalogue P11; numerical bugs of accuracy, Di Franco et al., ASE 2017",
    examples=(
        Example("y[0] = tanhf(x[0]);", "y[0] = (1.0f - 2.0f / (expf(2.0f * (x[0])) + 1.0f));"),
        Example("y[0] = tanf(x[0]);", None),
    ),
)
def tanh_by_exponentials(tree: Tree) -> Iterator[Edit]:
    """A hyperbolic tangent is made of exponentials, which cancels for small arguments."""
    for call in calls(tree, "tanhf"):
        yield replace(call, f"(1.0f - 2.0f / (expf(2.0f * ({arguments(call)[0].text})) + 1.0f))")


@rule(
    "erf-by-tanh",
    "precision",
    source="operator catalogue M14, P11; GELU with tanh for GELU with erf, KernelBench-Verified, github.com/facebookresearch/kernel_bench_verified",
    examples=(
        Example("y[0] = erff(v);", "y[0] = tanhf(1.1283791671f * (v) * (1.0f + 0.08943f * (v) * (v)));"),
        Example("y[0] = erfcf(v);", None),
    ),
)
def erf_by_tanh(tree: Tree) -> Iterator[Edit]:
    """An error function is approximated by a hyperbolic tangent, to three digits."""
    for call in calls(tree, "erff"):
        value = arguments(call)[0].text
        yield replace(call, f"tanhf(1.1283791671f * ({value}) * (1.0f + 0.08943f * ({value}) * ({value})))")


def _halves(node: Node) -> bool:
    """Whether the innermost loop around a node halves or doubles its counter, as trees do."""
    loop = node.enclosing(*LOOPS)
    update = None if loop is None else loop.field("update")
    return (
        update is not None and update.kind == "assignment_expression" and operator(update) in ("/=", "*=", ">>=", "<<=")
    )


@rule(
    "sum-toward-zero",
    "precision",
    source="operator catalogue P14; truncation in tensor-core accumulation",
    examples=(
        Example("float s = 0; while (n--) s += x[n];", "float s = 0; while (n--) s = __fadd_rz(s, x[n]);"),
        Example(
            "float s = 0; while (n--) s = fmaf(x[n], w[n], s);",
            "float s = 0; while (n--) s = __fmaf_rz(x[n], w[n], s);",
        ),
        Example("int s = 0; while (n--) s += n;", None),
        Example("float s = 0; for (int half = 64; half > 0; half /= 2) s += x[half];", None),
        Example("float s = 0; while (n--) s += 1.0f;", None),
    ),
)
def sum_toward_zero(tree: Tree) -> Iterator[Edit]:
    """A running sum is rounded towards zero, so it drifts (not the few additions of a tree, nor a count, which is exact)."""
    for node, target, _ in accumulations(tree):
        right = operands(node)[1]
        if _halves(node) or right.kind == "number_literal":
            continue
        if operator(node) == "+=":
            yield replace(node, f"{target.text} = __fadd_rz({target.text}, {right.text})")
        else:
            name = right.field("function")
            if name is not None:
                yield replace(name, "__fmaf_rz")


_TRUNCATING = {
    "__float2int_rn": "__float2int_rz",
    "__float2uint_rn": "__float2uint_rz",
    "rintf": "truncf",
    "roundf": "truncf",
    "nearbyintf": "truncf",
    "floorf": "truncf",
}


@rule(
    "rounding-to-truncation",
    "precision",
    source="operator catalogue P22",
    examples=(
        Example("y[0] = rintf(x[0]);", "y[0] = truncf(x[0]);"),
        Example("y[0] = truncf(x[0]);", None),
    ),
)
def rounding_to_truncation(tree: Tree) -> Iterator[Edit]:
    """A value is cut towards zero where it should be rounded."""
    yield from renamed(_TRUNCATING)(tree)


_NARROWING = {
    "__float2half": "0xffffe000u",
    "__float2half_rn": "0xffffe000u",
    "__floats2half2_rn": "0xffffe000u",
    "__float2half2_rn": "0xffffe000u",
    "__float2bfloat16": "0xffff0000u",
    "__float2bfloat16_rn": "0xffff0000u",
    "__floats2bfloat162_rn": "0xffff0000u",
}


@rule(
    "narrowing-toward-zero",
    "precision",
    source="operator catalogue P22",
    examples=(
        Example("h[0] = __float2half(v);", "h[0] = __float2half(__uint_as_float(__float_as_uint(v) & 0xffffe000u));"),
        Example("h[0] = __float2half(0.0f);", None),
    ),
)
def narrowing_toward_zero(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """A conversion to a 16-bit format cuts bits off instead of rounding."""
    for call in calls(tree, *_NARROWING):
        cut = [value for value in arguments(call) if bare(value).kind != "number_literal"]
        if cut:
            mask = _NARROWING[callee(call)]
            yield tuple(replace(value, f"__uint_as_float(__float_as_uint({value.text}) & {mask})") for value in cut)


_SINGLE = {
    "sqrt": "sqrtf",
    "exp": "expf",
    "log": "logf",
    "fma": "fmaf",
    "rsqrt": "rsqrtf",
    "pow": "powf",
    "tanh": "tanhf",
}


@rule(
    "double-function-to-float",
    "precision",
    source="operator catalogue P01 for double; numerical bugs of accuracy, Di Franco et al., ASE 2017",
    examples=(
        Example("double v = x[0]; y[0] = sqrt(v);", "double v = x[0]; y[0] = sqrtf((float)(v));"),
        Example("y[0] = sqrt(x[0]);", None),
    ),
)
def double_function_to_float(tree: Tree) -> Iterator[Edit]:
    """A function of double-precision values is evaluated in single precision."""
    for call in calls(tree, *_SINGLE):
        given = arguments(call)
        types = [expression_type(value) for value in given]
        if any(found is not None and found.scalar and found.base == "double" for found in types):
            yield replace(call, f"{_SINGLE[callee(call)]}({', '.join(f'(float)({value.text})' for value in given)})")


@rule(
    "double-cast-to-float",
    "precision",
    source="operator catalogue P01 for double; GPU numerical bugs of GPU-NBs, ISSTA",
    examples=(
        Example("double v = (double)x[0] * x[1];", "double v = (float)x[0] * x[1];"),
        Example("float v = (float)n;", None),
    ),
)
def double_cast_to_float(tree: Tree) -> Iterator[Edit]:
    """A value that should be widened to double precision before arithmetic is not."""
    for cast in tree.device("cast_expression"):
        written = cast.field("type")
        if written is not None and written.text == "double":
            yield replace(written, "float")
    for call in tree.device("call_expression"):
        function = call.field("function")
        if function is not None and function.text.replace(" ", "") == "static_cast<double>":
            yield replace(function, "static_cast<float>")
