"""Rewrites that keep a program's meaning but round elsewhere: fused products, reciprocals, other formulas of the same function."""

from __future__ import annotations

from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.precision import is_float
from truekernel.mutation.rule import Example, rule
from truekernel.mutation.statements import calls, initial_value, outermost
from truekernel.source.edits import replace
from truekernel.source.query import arguments, bare, callee, operands, operator
from truekernel.source.tree import Node, Tree
from truekernel.source.types import expression_type, is_integral

FMA = "IEEE 754 fusedMultiplyAdd; nvcc -fmad=false"
_FUSED = ("fmaf", "fma", "__fmaf_rn")


@rule(
    "fma-off",
    "benign",
    source=FMA,
    flags=("fma=off",),
    examples=(
        Example("y[0] = x[0] * 2.0f + w[0];", "y[0] = x[0] * 2.0f + w[0];"),
        Example("y[0] = x[0] + w[0];", None),
    ),
)
def fma_off(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """The compiler does not fuse products into sums (other roundings)."""
    products = [node for node in tree.device("binary_expression") if operator(node) == "*" and _is_real(node)]
    if any(_summed(node) for node in products):
        yield ()


def _is_real(node: Node) -> bool:
    found = expression_type(node)
    return found is not None and found.floating


def _summed(product: Node) -> bool:
    """Whether a product is a side of a sum or difference, or what is added in place."""
    child, parent = product, product.parent
    while parent is not None and parent.kind == "parenthesized_expression":
        child, parent = parent, parent.parent
    if parent is None:
        return False
    if parent.kind == "assignment_expression":
        return operator(parent) in ("+=", "-=") and child.field_name == "right"
    return parent.kind == "binary_expression" and operator(parent) in "+-"


@rule(
    "products-not-fused",
    "benign",
    source=FMA,
    flags=("fma=off",),
    examples=(
        Example("y[0] = fmaf(x[0], x[1], w[0]);", "y[0] = ((x[0]) * (x[1]) + (w[0]));"),
        Example("y[0] = fmaf(x[0], x[1], -w[0]);", None),
    ),
)
def products_not_fused(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Fused multiply-adds are written out, and not fused again (other roundings)."""
    # A negated third operand computes the rounding error of a product: such programs are left alone.
    edits = []
    for call in outermost(calls(tree, *_FUSED)):
        given = arguments(call)
        if (
            len(given) == 3
            and _is_real(call)
            and not given[2].text.startswith("-")
            and not call.find("call_expression")[1:]
        ):
            edits.append(replace(call, f"(({given[0].text}) * ({given[1].text}) + ({given[2].text}))"))
    if edits and not any("-" in arguments(call)[-1].text[:1] for call in calls(tree, *_FUSED)):
        yield tuple(edits)


def _tame(divisor: Node) -> bool:
    """Whether the reciprocal of a divisor neither overflows nor underflows: a count, or one plus something."""
    divisor = bare(divisor)
    value = divisor.field("value") if divisor.kind == "cast_expression" else None
    if value is not None and is_integral(value):
        return True
    if is_integral(divisor):
        return True
    if divisor.kind != "binary_expression" or operator(divisor) != "+":
        return False
    one, other = operands(divisor)
    return one.text in ("1.0f", "1.f") and callee(bare(other)) in ("expf", "__expf")


@rule(
    "quotient-by-reciprocal",
    "benign",
    source="two roundings for one; CUDA C++ programming guide, accuracy of single-precision functions",
    examples=(
        Example("y[0] = x[0] / (1.0f + expf(x[1]));", "y[0] = (x[0]) * (1.0f / ((1.0f + expf(x[1]))));"),
        Example("float v = x[0] / n;", "float v = (x[0]) * (1.0f / (n));"),
        Example("y[0] = x[0] / w[0];", None),
        Example("y[0] = 1.0f / n;", None),
    ),
)
def quotient_by_reciprocal(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Quotients by a count, or by one plus an exponential, are products with its reciprocal (other roundings)."""
    edits = []
    for node in outermost([n for n in tree.device("binary_expression") if operator(n) == "/" and is_float(n)]):
        dividend, divisor = operands(node)
        if _tame(divisor) and is_float(dividend) and dividend.text not in ("1.0f", "1.f"):
            edits.append(replace(node, f"({dividend.text}) * (1.0f / ({divisor.text}))"))
    if edits:
        yield tuple(edits)


@rule(
    "reciprocal-to-quotients",
    "benign",
    source="one rounding for two",
    examples=(
        Example(
            "const float r = 1.0f / w[0]; y[0] = x[0] * r; y[1] = x[1] * r;",
            "const float r = w[0]; y[0] = x[0] / r; y[1] = x[1] / r;",
        ),
        Example("const float r = 1.0f / w[0]; y[0] = r;", None),
        Example("const float r = 1.0f / w[0]; y[0] = r * x[0];", None),
    ),
)
def reciprocal_to_quotients(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Products with a reciprocal that was computed once are quotients (other roundings, fewer)."""
    edits: list[Edit] = []
    for declared in tree.device("init_declarator"):
        name, value = declared.field("declarator"), declared.field("value")
        if name is None or value is None or value.kind != "binary_expression" or operator(value) != "/":
            continue
        one, divisor = operands(value)
        uses = _uses(declared, name.text)
        if one.text not in ("1.0f", "1.f") or not is_float(value) or not is_float(divisor) or not uses:
            continue
        signs = [_times(use) for use in uses]
        if all(sign is not None for sign in signs) and all(initial_value(use) is value for use in uses):
            edits.append(replace(value, divisor.text))
            edits += [replace(sign, sign.text.replace("*", "/")) for sign in signs if sign is not None]
    if edits:
        yield tuple(edits)


def _uses(declared: Node, name: str) -> list[Node]:
    function = declared.function
    found = function.find("identifier") if function is not None else []
    return [node for node in found if node.text == name and node.start >= declared.end]


def _times(use: Node) -> Node | None:
    """The sign of the product whose second factor `use` is, or None."""
    parent = use.parent
    if parent is None or use.field_name != "right" or operator(parent) not in ("*", "*="):
        return None
    return parent.field("operator") if is_float(parent) else None


@rule(
    "exponential-by-powers-of-two",
    "benign",
    source="FlashAttention computes softmax so; Dao et al., arXiv:2205.14135",
    examples=(
        Example("y[0] = expf(x[0] - w[0]);", "y[0] = exp2f((x[0] - w[0]) * 1.44269504f);"),
        Example("y[0] = expf(x[0]);", None),
    ),
)
def exponential_by_powers_of_two(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Exponentials of differences are powers of two of the scaled difference (other roundings)."""
    edits = []
    for call in outermost(calls(tree, "expf")):
        value = bare(arguments(call)[0])
        if value.kind == "binary_expression" and operator(value) == "-":
            edits.append(replace(call, f"exp2f(({value.text}) * 1.44269504f)"))
    if edits:
        yield tuple(edits)


@rule(
    "root-spelled-otherwise",
    "benign",
    source="CUDA C++ programming guide, accuracy of single-precision functions: rsqrtf is within two units in the last place",
    examples=(
        Example("y[0] = rsqrtf(x[0]);", "y[0] = (1.0f / sqrtf(x[0]));"),
        Example("y[0] = 1.0f / sqrtf(x[0]);", "y[0] = rsqrtf(x[0]);"),
        Example("y[0] = sqrtf(x[0]);", None),
    ),
)
def root_spelled_otherwise(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """A reciprocal root is a reciprocal of a root, or the reverse (other roundings)."""
    edits = [replace(call, f"(1.0f / sqrtf({arguments(call)[0].text}))") for call in outermost(calls(tree, "rsqrtf"))]
    for node in tree.device("binary_expression"):
        one, root = operands(node)
        if (
            operator(node) == "/"
            and one.text in ("1.0f", "1.f")
            and callee(root) == "sqrtf"
            and not root.find("call_expression")[1:]
        ):
            edits.append(replace(node, f"rsqrtf({arguments(root)[0].text})"))
    if edits and not any(calls(tree, name) for name in ("rsqrt", "__frsqrt_rn")):
        yield tuple(sorted(edits))


_ACCURATE = {
    "__expf": "expf",
    "__logf": "logf",
    "__log2f": "log2f",
    "__sinf": "sinf",
    "__cosf": "cosf",
    "__powf": "powf",
    "__tanf": "tanf",
}


@rule(
    "accurate-functions",
    "benign",
    source="CUDA C++ programming guide, accuracy of intrinsic functions",
    examples=(
        Example("y[0] = __expf(x[0]);", "y[0] = expf(x[0]);"),
        Example("y[0] = __fdividef(x[0], w[0]);", "y[0] = ((x[0]) / (w[0]));"),
        Example("y[0] = expf(x[0]);", None),
    ),
)
def accurate_functions(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Fast intrinsics are replaced by the accurate functions (other roundings, fewer)."""
    edits = []
    for call in outermost(calls(tree, *_ACCURATE, "__fdividef")):
        given, function = arguments(call), call.field("function")
        if callee(call) == "__fdividef" and len(given) == 2:
            edits.append(replace(call, f"(({given[0].text}) / ({given[1].text}))"))
        elif function is not None:
            edits.append(replace(function, _ACCURATE[callee(call)]))
    if edits:
        yield tuple(edits)
