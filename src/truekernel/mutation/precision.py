"""Faults of precision: values, sums, inputs and outputs that are rounded to a narrower format on the way."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.patterns import is_store_target, real_literals, stores
from truekernel.mutation.rule import Example, rule
from truekernel.mutation.statements import LOOPS
from truekernel.source.edits import replace
from truekernel.source.query import arguments, bare, callee, operands, operator
from truekernel.source.tree import Node, Tree
from truekernel.source.types import declared_type, expression_type

_OVERFLOW = 5.192296858534828e33  # 2**112: what a float16 can't hold overflows a float32 after this factor


def bf16(expression: str) -> str:
    """`expression` (a float) rounded to the eight significant bits of bfloat16, as a float."""
    return f"__uint_as_float((__float_as_uint({expression}) + 0x8000u) & 0xffff0000u)"


def tf32(expression: str) -> str:
    """`expression` (a float) rounded to the eleven significant bits of TensorFloat-32, as a float."""
    return f"__uint_as_float((__float_as_uint({expression}) + 0x1000u) & 0xffffe000u)"


def half(expression: str) -> str:
    """`expression` (a float) rounded to the eleven significant bits of float16, infinite from 65536 on, as a float.

    Needs no header. Results below 2**-14 keep all their bits, which a float16 would lose.
    """
    scaled = tf32(f"({expression}) * {_OVERFLOW!r}f")
    return f"({scaled} * 1.925929944387236e-34f)"


def is_float(node: Node) -> bool:
    """Whether an expression is known to be one float32."""
    return _is(node, "float")


def _is(node: Node, base: str) -> bool:
    found = expression_type(node)
    return found is not None and found.scalar and found.base == base


def accumulations(tree: Tree, base: str = "float") -> Iterator[tuple[Node, Node, str]]:
    """Sums over loops in variables of type `base`: assignment, target, and the new value as an expression.

    `acc += e` gives `acc + (e)`, `acc = fmaf(a, b, acc)` gives its right side.
    """
    for node in tree.device("assignment_expression"):
        target, right = operands(node)
        if not _is(target, base) or node.enclosing(*LOOPS) is None:
            continue
        if operator(node) == "+=":
            yield node, target, f"{target.text} + ({right.text})"
        elif (
            operator(node) == "="
            and callee(right) in ("fmaf", "fma", "__fmaf_rn")
            and arguments(right)[-1].text == target.text
        ):
            yield node, target, right.text


@rule(
    "accumulator-to-half",
    "precision",
    source="operator catalogue P01; Tensara's policy that a computation run wholly in the next lower precision must fail",
    examples=(
        Example(
            "float s = 0; for (int i = 0; i < n; ++i) s += x[i];",
            f"float s = 0; for (int i = 0; i < n; ++i) s = {half('s + (x[i])')};",
        ),
        Example("int s = 0; for (int i = 0; i < n; ++i) s += i;", None),
    ),
)
def accumulator_to_half(tree: Tree) -> Iterator[Edit]:
    """A running sum is kept in half precision."""
    for node, target, value in accumulations(tree):
        yield replace(node, f"{target.text} = {half(value)}")


@rule(
    "accumulator-to-bf16",
    "precision",
    source="operator catalogue P02",
    examples=(
        Example(
            "float s = 0; for (int i = 0; i < n; ++i) s = fmaf(x[i], w[i], s);",
            f"float s = 0; for (int i = 0; i < n; ++i) s = {bf16('fmaf(x[i], w[i], s)')};",
        ),
        Example("float s = 0; s += x[0];", None),
    ),
)
def accumulator_to_bf16(tree: Tree) -> Iterator[Edit]:
    """A running sum is kept in bfloat16."""
    for node, target, value in accumulations(tree):
        yield replace(node, f"{target.text} = {bf16(value)}")


@rule(
    "accumulator-to-float",
    "precision",
    source="operator catalogue P01 for double; numerical bugs of accuracy, Di Franco et al., ASE 2017",
    examples=(
        Example("double s = 0; while (n--) s += x[n];", "double s = 0; while (n--) s = (float)(s + (x[n]));"),
        Example("float s = 0; while (n--) s += x[n];", None),
    ),
)
def accumulator_to_float(tree: Tree) -> Iterator[Edit]:
    """A running sum in double precision is kept in single precision."""
    for node, target, value in accumulations(tree, "double"):
        yield replace(node, f"{target.text} = (float)({value})")


def _loaded(tree: Tree) -> Iterator[Node]:
    """Reads of one float32 from constant or shared memory."""
    for node in tree.device("subscript_expression"):
        names = node.find("identifier")
        found = declared_type(names[0]) if names else None
        if found is None or not is_float(node) or is_store_target(node) or not (found.const or found.shared):
            continue
        if not _is_addressed(node):
            yield node


def _is_addressed(node: Node) -> bool:
    """Whether an element is only named to take its address or to change it."""
    parent = node.parent
    return parent is not None and (
        parent.kind == "update_expression" or (parent.kind == "pointer_expression" and parent.text.startswith("&"))
    )


@rule(
    "input-to-bf16",
    "precision",
    source="operator catalogue P04; Float-vs-BFloat16 mismatches, 54 % of failures in KernelBench-Verified, github.com/facebookresearch/kernel_bench_verified",
    examples=(
        Example("y[n] = x[n] * 2.0f;", f"y[n] = {bf16('x[n]')} * 2.0f;"),
        Example("y[n] = y[m];", None),
    ),
)
def input_to_bf16(tree: Tree) -> Iterator[Edit]:
    """A value that is read from an input or from shared memory is rounded to bfloat16."""
    for node in _loaded(tree):
        yield replace(node, bf16(node.text))


@rule(
    "input-to-tf32",
    "precision",
    source="operator catalogue P06: TF32 left on for float32 problems",
    examples=(
        Example("y[n] = x[n] * w[m];", (f"y[n] = {tf32('x[n]')} * w[m];", f"y[n] = x[n] * {tf32('w[m]')};")),
        Example("y[n] = 1.0f;", None),
    ),
)
def input_to_tf32(tree: Tree) -> Iterator[Edit]:
    """A value that is read from an input or from shared memory is rounded to TensorFloat-32."""
    for node in _loaded(tree):
        yield replace(node, tf32(node.text))


def _intermediates(tree: Tree) -> Iterator[Node]:
    """Initial values of float32 variables that are computed: neither constants nor mere reads."""
    for node in tree.device("init_declarator"):
        name, value = node.field("declarator"), node.field("value")
        if name is None or value is None or name.kind != "identifier":
            continue
        found = declared_type(name)
        if found is None or not found.scalar or found.base != "float" or not is_float(value):
            continue
        if (
            bare(value).kind in ("binary_expression", "call_expression", "conditional_expression")
            and callee(value) != "__ldg"
        ):
            yield value


@rule(
    "intermediate-to-bf16",
    "precision",
    source="operator catalogue P03",
    examples=(
        Example("const float v = x[0] * 2.0f;", f"const float v = {bf16('x[0] * 2.0f')};"),
        Example("const float v = x[0]; int k = n * 2;", None),
    ),
)
def intermediate_to_bf16(tree: Tree) -> Iterator[Edit]:
    """An intermediate result is rounded to bfloat16."""
    for value in _intermediates(tree):
        yield replace(value, bf16(value.text))


@rule(
    "intermediate-to-half",
    "precision",
    source="operator catalogue P03",
    examples=(
        Example("const float v = x[0] * 2.0f;", f"const float v = {half('x[0] * 2.0f')};"),
        Example("const float v = 2.0f;", None),
    ),
)
def intermediate_to_half(tree: Tree) -> Iterator[Edit]:
    """An intermediate result is rounded to half precision."""
    for value in _intermediates(tree):
        yield replace(value, half(value.text))


def _outputs(tree: Tree) -> Iterator[Node]:
    """Right sides of stores of one float32 to memory that is not the block's own."""
    for _, left, right in stores(tree):
        names = left.find("identifier")
        found = declared_type(names[0]) if names else None
        if (
            found is not None
            and found.pointer
            and not found.shared
            and is_float(left)
            and bare(right).kind != "number_literal"
        ):
            yield right


@rule(
    "output-to-half",
    "precision",
    source="operator catalogue P05",
    examples=(
        Example("y[0] = x[0] + 1.0f;", f"y[0] = {half('x[0] + 1.0f')};"),
        Example("__shared__ float s[8]; s[0] = x[0];", None),
    ),
)
def output_to_half(tree: Tree) -> Iterator[Edit]:
    """A result is rounded to half precision before it is stored."""
    for value in _outputs(tree):
        yield replace(value, half(value.text))


@rule(
    "output-to-bf16",
    "precision",
    source="operator catalogue P05",
    examples=(
        Example("y[0] = x[0] + 1.0f;", f"y[0] = {bf16('x[0] + 1.0f')};"),
        Example("y[0] = 1.0f;", None),
    ),
)
def output_to_bf16(tree: Tree) -> Iterator[Edit]:
    """A result is rounded to bfloat16 before it is stored."""
    for value in _outputs(tree):
        yield replace(value, bf16(value.text))


@rule(
    "subnormal-output-flushed",
    "precision",
    source="operator catalogue P13: --use_fast_math implies -ftz=true",
    examples=(
        Example("y[0] = v;", None),
        Example(
            "float v = x[0] * 2.0f; y[0] = v;",
            "float v = x[0] * 2.0f; y[0] = (fabsf(v) < 1.17549435e-38f ? 0.0f : (v));",
        ),
    ),
)
def subnormal_output_flushed(tree: Tree) -> Iterator[Edit]:
    """Subnormal results become zero."""
    for value in _outputs(tree):
        if is_float(value):
            yield replace(value, f"(fabsf({value.text}) < 1.17549435e-38f ? 0.0f : ({value.text}))")


@rule(
    "subnormal-input-flushed",
    "precision",
    source="operator catalogue P13: --use_fast_math implies -ftz=true",
    examples=(
        Example("y[0] = x[n] * 2.0f;", "y[0] = (fabsf(x[n]) < 1.17549435e-38f ? 0.0f : x[n]) * 2.0f;"),
        Example("y[0] = n * 2.0f;", None),
    ),
)
def subnormal_input_flushed(tree: Tree) -> Iterator[Edit]:
    """Subnormal inputs are taken for zero."""
    for node in _loaded(tree):
        found = declared_type(node.find("identifier")[0])
        if found is None or found.shared:
            continue
        yield replace(node, f"(fabsf({node.text}) < 1.17549435e-38f ? 0.0f : {node.text})")


def _rounded_literals(tree: Tree, bits: int) -> Iterator[Edit]:
    """Literals with more than `bits` significant bits, rounded to that many."""
    for node, value, suffix in real_literals(tree):
        single = struct.unpack("I", struct.pack("f", value))[0] if abs(value) < 3e38 else 0
        step = 1 << (24 - bits)
        cut = (single + step // 2) & ~(step - 1)
        if cut != single and abs(value) > 1e-30:
            yield replace(node, f"{struct.unpack('f', struct.pack('I', cut))[0]!r}{suffix}")


@rule(
    "constant-to-half",
    "precision",
    source="operator catalogue P19",
    examples=(
        Example("y[0] = 0.7978845608f * x[0];", "y[0] = 0.7978515625f * x[0];"),
        Example("y[0] = 0.5f * x[0];", None),
    ),
)
def constant_to_half(tree: Tree) -> Iterator[Edit]:
    """A constant has the eleven significant bits of a half-precision number."""
    yield from _rounded_literals(tree, 11)


@rule(
    "constant-to-bf16",
    "precision",
    source="operator catalogue P19",
    examples=(
        Example("y[0] = 0.7978845608f * x[0];", "y[0] = 0.796875f * x[0];"),
        Example("y[0] = 3.0f * x[0];", None),
    ),
)
def constant_to_bf16(tree: Tree) -> Iterator[Edit]:
    """A constant has the eight significant bits of a bfloat16."""
    yield from _rounded_literals(tree, 8)
