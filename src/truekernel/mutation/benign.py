"""Rewrites that keep a program's meaning and every bit of its results: they must not be rejected."""

from __future__ import annotations

from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.patterns import is_store_target
from truekernel.mutation.rule import Example, rule
from truekernel.mutation.statements import (
    assigned_names,
    for_loops,
    in_block,
    is_pure,
    neighbours,
    outermost,
)
from truekernel.mutation.sync import barriers
from truekernel.mutation.warp import reduction_loops
from truekernel.source.edits import insert_after, insert_before, replace
from truekernel.source.query import operands, operator
from truekernel.source.tree import Node, Tree
from truekernel.source.types import declared_type, expression_type

HONEST = "meaning-preserving rewrite"
_RELATIONS = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_READABLE = (
    "float",
    "double",
    "int",
    "unsigned int",
    "long long",
    "unsigned char",
    "float2",
    "float4",
    "int4",
    "uint4",
)


def _all(edits: list[Edit]) -> Iterator[tuple[Edit, ...]]:
    """One variant that makes all edits."""
    if edits:
        yield tuple(edits)


@rule(
    "redundant-barrier",
    "benign",
    source=f"{HONEST}; operator catalogue S18",
    examples=(
        Example(
            "{ s[0] = 1; __syncthreads(); n = s[1]; }", "{ s[0] = 1; __syncthreads(); __syncthreads(); n = s[1]; }"
        ),
        Example("if (n) __syncthreads(); else m = 1;", None),
    ),
)
def redundant_barrier(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Each barrier is waited at twice (same bits)."""
    yield from _all([insert_after(barrier, f" {barrier.text}") for barrier in barriers(tree) if in_block(barrier)])


@rule(
    "read-only-loads",
    "benign",
    source=HONEST,
    examples=(
        Example(
            "__global__ void k(const float* __restrict__ x, float* y) { y[0] = x[1]; }",
            "__global__ void k(const float* __restrict__ x, float* y) { y[0] = __ldg(&x[1]); }",
        ),
        Example("__device__ float f(const float* __restrict__ x) { return x[1]; }", None),
    ),
)
def read_only_loads(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Inputs are read through the read-only cache (same bits)."""
    edits = []
    for node in outermost([n for n in tree.device("subscript_expression") if not is_store_target(n)]):
        base = node.field("argument")
        if base is not None and base.kind == "identifier" and _is_kernel_input(base) and not _is_addressed(node):
            edits.append(replace(node, f"__ldg(&{node.text})"))
    yield from _all(edits)


def _is_kernel_input(name: Node) -> bool:
    function, found = name.function, declared_type(name)
    if function is None or found is None or found.pointer != 1 or not found.const or found.base not in _READABLE:
        return False
    if not any(child.text == "__global__" for child in function.children):
        return False
    for parameter in function.find("parameter_declaration"):
        names = [n.text for n in parameter.find("identifier")]
        if names[-1:] == [name.text]:
            return "__restrict__" in parameter.text
    return False


def _is_addressed(node: Node) -> bool:
    parent = node.parent
    return parent is not None and parent.kind in ("pointer_expression", "update_expression")


@rule(
    "wide-indices",
    "benign",
    source=HONEST,
    examples=(
        Example("y[n + 1] = x[n];", "y[(long long)(n + 1)] = x[(long long)(n)];"),
        Example("y[0] = 1;", None),
    ),
)
def wide_indices(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Indices are converted to 64 bits after they have been computed (same bits)."""
    indices = [
        node.named_children[0] for node in tree.device("subscript_argument_list") if len(node.named_children) == 1
    ]
    edits = []
    for index in outermost(indices):
        found = expression_type(index)
        if found is not None and found.integral and index.kind != "number_literal" and is_pure(index):
            edits.append(replace(index, f"(long long)({index.text})"))
    yield from _all(edits)


@rule(
    "stored-through-temporary",
    "benign",
    source=HONEST,
    examples=(
        Example("y[n] = x[n] * 2.0f;", "{ const auto tk_value = (x[n] * 2.0f); y[n] = tk_value; }"),
        Example("y[n++] = x[n];", None),
    ),
)
def stored_through_temporary(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Values are named before they are stored (same bits)."""
    edits = []
    for statement in tree.device("expression_statement"):
        inside = statement.named_children
        if len(inside) != 1 or inside[0].kind != "assignment_expression" or operator(inside[0]) != "=":
            continue
        left, right = operands(inside[0])
        if (
            left.kind == "subscript_expression"
            and is_pure(left)
            and right.kind in ("binary_expression", "call_expression")
        ):
            edits.append(replace(statement, f"{{ const auto tk_value = ({right.text}); {left.text} = tk_value; }}"))
    yield from _all(edits)


@rule(
    "loop-bound-hoisted",
    "benign",
    source=HONEST,
    examples=(
        Example(
            "{ for (int i = 0; i < n * m; ++i) y[i] = 0; }",
            "{ { const auto tk_bound = n * m; for (int i = 0; i < tk_bound; ++i) y[i] = 0; } }",
        ),
        Example("{ for (int i = 0; i < n * m; ++i) m = x[i]; }", None),
    ),
)
def loop_bound_hoisted(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """The bound of a loop is computed once, before it (same bits)."""
    edits: list[Edit] = []
    for loop in for_loops(tree):
        if loop.condition.kind != "binary_expression" or not _stands_alone(loop.node) or not loop.declared:
            continue
        left, bound = operands(loop.condition)
        names = {name.text for name in bound.find("identifier")}
        fixed = (
            bound.kind == "binary_expression"
            and is_pure(bound)
            and not bound.find("subscript_expression", "pointer_expression")
        )
        if left.text == loop.variable and fixed and not names & (assigned_names(loop.node) | {loop.variable}):
            edits += [insert_before(loop.node, f"{{ const auto tk_bound = {bound.text}; "), replace(bound, "tk_bound")]
            edits.append(insert_after(loop.node, " }"))
    yield from _all(edits)


def _stands_alone(loop: Node) -> bool:
    """Whether something may be put right before a loop: it stands in braces and no `#pragma` belongs to it."""
    before, _ = neighbours(loop)
    return in_block(loop) and not (before is not None and before.kind.startswith("preproc"))


@rule(
    "comparison-mirrored",
    "benign",
    source=HONEST,
    examples=(
        Example("if (n < m + 1) y[0] = 1;", "if (m + 1 > n) y[0] = 1;"),
        Example("if (n == m) y[0] = 1;", None),
    ),
)
def comparison_mirrored(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Sides of comparisons are exchanged, and the sign with them (same bits)."""
    found = [node for node in tree.device("binary_expression") if operator(node) in _RELATIONS]
    edits = []
    for node in outermost(found):
        left, right = operands(node)
        known = all(expression_type(side) is not None for side in (left, right))
        simple = all(
            is_pure(side) and not (side.kind == "binary_expression" and operator(side) in _RELATIONS)
            for side in (left, right)
        )
        if known and simple:
            edits.append(replace(node, f"{right.text} {_RELATIONS[operator(node)]} {left.text}"))
    yield from _all(edits)


@rule(
    "shifts-for-divisions",
    "benign",
    source=HONEST,
    examples=(
        Example("int w = threadIdx.x / 32 + threadIdx.x % 32;", "int w = (threadIdx.x >> 5) + (threadIdx.x & 31);"),
        Example("int w = threadIdx.x >> 5;", "int w = (threadIdx.x / 32);"),
        Example("int w = n / 32;", None),
    ),
)
def shifts_for_divisions(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Unsigned numbers are divided by powers of two with shifts and masks, or the reverse (same bits)."""
    edits = []
    for node in outermost([n for n in tree.device("binary_expression") if operator(n) in ("/", "%", ">>", "&")]):
        left, right = operands(node)
        found = expression_type(left)
        if found is None or not found.scalar or found.base != "unsigned int" or not right.text.isdigit():
            continue
        new = _other_spelling(operator(node), int(right.text))
        if new:
            edits.append(replace(node, f"({left.text} {new})"))
    yield from _all(edits)


def _other_spelling(sign: str, number: int) -> str:
    power = number.bit_length() - 1
    if sign == "/" and number == 1 << power:
        return f">> {power}"
    if sign == "%" and number == 1 << power:
        return f"& {number - 1}"
    if sign == ">>" and number < 16:
        return f"/ {1 << number}"
    if sign == "&" and number > 0 and number & (number + 1) == 0:
        return f"% {number + 1}"
    return ""


@rule(
    "restrict-dropped",
    "benign",
    source=HONEST,
    examples=(
        Example("__global__ void k(float* __restrict__ y) { y[0] = 1; }", "__global__ void k(float* y) { y[0] = 1; }"),
        Example("__global__ void k(float* y) { y[0] = 1; }", None),
    ),
)
def restrict_dropped(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Pointers are no longer promised to be free of aliases (same bits)."""
    found = [node for node in tree.find("type_qualifier") if node.text == "__restrict__" and node.in_device_code]
    yield from _all([Edit(node.start, node.end + 1, "") for node in found])


@rule(
    "inlining-forbidden",
    "benign",
    source=HONEST,
    examples=(
        Example(
            "__device__ __forceinline__ float f(float v) { return v; }",
            "__device__ __noinline__ float f(float v) { return v; }",
        ),
        Example("__device__ float f(float v) { return v; }", None),
    ),
)
def inlining_forbidden(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Device functions are called instead of inlined (same bits)."""
    found = [node for function in tree.device_functions for node in function.children if node.text == "__forceinline__"]
    yield from _all([replace(node, "__noinline__") for node in found])


@rule(
    "launch-bounds-dropped",
    "benign",
    source=HONEST,
    examples=(
        Example("__global__ void __launch_bounds__(256) k(float* y) {}", "__global__ void k(float* y) {}"),
        Example("__global__ void k(float* y) {}", None),
    ),
)
def launch_bounds_dropped(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Nothing is promised about the number of threads of a block (same bits)."""
    yield from _all([Edit(node.start, node.end + 1, "") for node in tree.find("launch_bounds")])


@rule(
    "loops-unrolled",
    "benign",
    source=HONEST,
    examples=(
        Example(
            "{ for (int i = 0; i < n; ++i) y[i] = 0; }", "{ \n#pragma unroll 4\nfor (int i = 0; i < n; ++i) y[i] = 0; }"
        ),
        Example("{\n#pragma unroll\nfor (int i = 0; i < n; ++i) y[i] = 0;\n}", None),
    ),
)
def loops_unrolled(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Four passes of each innermost loop are written out by the compiler (same bits)."""
    edits = []
    for loop in for_loops(tree):
        if _stands_alone(loop.node) and not loop.body.find("for_statement", "while_statement", "do_statement"):
            edits.append(insert_before(loop.node, "\n#pragma unroll 4\n"))
    yield from _all(edits)


@rule(
    "shuffle-to-all-lanes",
    "benign",
    source=f"{HONEST}: the first lane adds the same pairs",
    examples=(
        Example(
            "for (int d = 16; d > 0; d >>= 1) n += __shfl_down_sync(0xffffffffu, n, d);",
            "for (int d = 16; d > 0; d >>= 1) n += __shfl_xor_sync(0xffffffffu, n, d);",
        ),
        Example("for (int d = 1; d < 32; d *= 2) n += __shfl_down_sync(0xffffffffu, n, d);", None),
    ),
)
def shuffle_to_all_lanes(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """A warp's reduction gives its result to all lanes, not only to the first (same bits)."""
    edits = []
    for call in (call for _, call in reduction_loops(tree)):
        function = call.field("function")
        name = (function.field("field") or function) if function is not None else None
        if name is not None and "shfl_down" in name.text:
            edits.append(replace(name, name.text.replace("shfl_down", "shfl_xor")))
    yield from _all(edits)
