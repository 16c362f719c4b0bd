"""Faults of what a kernel states about its launch and hardware: strides over the grid, launch bounds, tensor cores, vectors, shared memory."""

from __future__ import annotations

from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.patterns import is_store_target
from truekernel.mutation.rule import Example, rule
from truekernel.mutation.statements import base_name, call_statements, calls, for_loops, initial_value
from truekernel.source.edits import remove_statement, replace
from truekernel.source.query import arguments, bare, callee, mentions, operands, operator
from truekernel.source.tree import Node, Tree
from truekernel.source.types import declared_type, expression_type

_STRIDE = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) y[i] = 0;"


def _spans_grid(stride: Node) -> bool:
    """Whether a step covers the whole grid: it names gridDim, or a variable that was computed from it."""
    if mentions(stride, "gridDim"):
        return True
    value = initial_value(bare(stride)) if bare(stride).kind == "identifier" else None
    return value is not None and mentions(value, "gridDim")


@rule(
    "grid-stride-loop-runs-once",
    "launch",
    source="operator catalogue H17: wrong only where the problem is larger than the grid",
    examples=(
        Example(_STRIDE, _STRIDE.replace("i += blockDim.x * gridDim.x", "i = n")),
        Example("for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 0;", None),
    ),
)
def grid_stride_loop_runs_once(tree: Tree) -> Iterator[Edit]:
    """Each thread of a grid-stride loop takes one step."""
    for loop in for_loops(tree):
        if operator(loop.update) != "+=" or not _spans_grid(operands(loop.update)[1]):
            continue
        if loop.condition.kind == "binary_expression" and operands(loop.condition)[0].text == loop.variable:
            yield replace(loop.update, f"{loop.variable} = {operands(loop.condition)[1].text}")


@rule(
    "grid-stride-of-one-block",
    "launch",
    source="operator catalogue I03, H17: blocks repeat each other's work",
    examples=(
        Example(_STRIDE, _STRIDE.replace("i += blockDim.x * gridDim.x", "i += blockDim.x")),
        Example("int rows = gridDim.x * m;", None),
    ),
)
def grid_stride_of_one_block(tree: Tree) -> Iterator[Edit]:
    """A stride over the grid is one block wide."""
    for node in tree.device("binary_expression"):
        if operator(node) != "*":
            continue
        sides = operands(node)
        for one, other in (sides, sides[::-1]):
            if _is_builtin(one, "gridDim") and (_is_builtin(other, "blockDim") or _is_block_constant(other)):
                yield replace(node, other.text)


def _is_builtin(node: Node, name: str) -> bool:
    return (
        node.find("identifier")[:1] != []
        and base_name(node) == name
        and node.kind in ("field_expression", "cast_expression")
    )


def _is_block_constant(node: Node) -> bool:
    return bare(node).kind == "identifier" and bare(node).text.isupper()


@rule(
    "tile-step-doubled",
    "launch",
    source="operator catalogue H07: every second step along the inner axis is left out",
    examples=(
        Example(
            "for (int k0 = 0; k0 < n; k0 += TILE) { s[0] = x[k0]; __syncthreads(); }",
            "for (int k0 = 0; k0 < n; k0 += 2 * (TILE)) { s[0] = x[k0]; __syncthreads(); }",
        ),
        Example("for (int k0 = 0; k0 < n; k0 += TILE) y[k0] = 0;", None),
    ),
)
def tile_step_doubled(tree: Tree) -> Iterator[Edit]:
    """A loop over tiles takes every second one."""
    for loop in for_loops(tree):
        staged = any(
            callee(call) in ("__syncthreads", "mma_sync", "sync") for call in loop.body.find("call_expression")
        )
        if staged and operator(loop.update) == "+=":
            yield replace(operands(loop.update)[1], f"2 * ({operands(loop.update)[1].text})")
        elif staged and loop.update.kind == "update_expression" and "++" in loop.update.text:
            yield replace(loop.update, f"{loop.variable} += 2")


@rule(
    "launch-bounds-halved",
    "launch",
    source="operator catalogue H18: the launch fails, or registers spill",
    examples=(
        Example(
            "__global__ void __launch_bounds__(256) k(float* y) {}",
            "__global__ void __launch_bounds__((256) / 2) k(float* y) {}",
        ),
        Example("__global__ void k(float* y) {}", None),
    ),
)
def launch_bounds_halved(tree: Tree) -> Iterator[Edit]:
    """A kernel promises to be launched with half of the threads that it is launched with."""
    for bounds in tree.find("launch_bounds"):
        first = bounds.named_children[0] if bounds.named_children else None
        if first is not None:
            yield replace(first, f"({first.text}) / 2")


@rule(
    "fragment-layout-swapped",
    "launch",
    source="operator catalogue H02",
    examples=(
        Example(
            "wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;",
            "wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::col_major> a;",
        ),
        Example("wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;", None),
    ),
)
def fragment_layout_swapped(tree: Tree) -> Iterator[Edit]:
    """A matrix fragment is read by columns instead of rows, or the reverse."""
    yield from _renamed_constants(tree, {"row_major": "col_major", "col_major": "row_major"})


@rule(
    "store-layout-swapped",
    "launch",
    source="operator catalogue H01",
    examples=(
        Example(
            "wmma::store_matrix_sync(y, c, 16, wmma::mem_row_major);",
            "wmma::store_matrix_sync(y, c, 16, wmma::mem_col_major);",
        ),
        Example("wmma::store_matrix_sync(y, c, 16, layout);", None),
    ),
)
def store_layout_swapped(tree: Tree) -> Iterator[Edit]:
    """A result fragment is stored transposed."""
    yield from _renamed_constants(tree, {"mem_row_major": "mem_col_major", "mem_col_major": "mem_row_major"})


def _renamed_constants(tree: Tree, names: dict[str, str]) -> Iterator[Edit]:
    for node in tree.find("identifier", "type_identifier"):
        if node.text in names and node.in_device_code:
            yield replace(node, names[node.text])


@rule(
    "fragment-not-filled",
    "launch",
    source="operator catalogue H06",
    examples=(
        Example("wmma::fill_fragment(c, 0.0f);", ";"),
        Example("wmma::load_matrix_sync(a, x, 16);", None),
    ),
)
def fragment_not_filled(tree: Tree) -> Iterator[Edit]:
    """An accumulator fragment starts with whatever its registers hold."""
    for statement in call_statements(tree, "fill_fragment"):
        yield remove_statement(statement)


@rule(
    "fragment-filled-with-one",
    "launch",
    source="operator catalogue H06",
    examples=(
        Example("wmma::fill_fragment(c, 0.0f);", "wmma::fill_fragment(c, 1.0f);"),
        Example("wmma::fill_fragment(c, v);", None),
    ),
)
def fragment_filled_with_one(tree: Tree) -> Iterator[Edit]:
    """An accumulator fragment starts at one."""
    for call in calls(tree, "fill_fragment"):
        given = arguments(call)
        if len(given) == 2 and given[1].text in ("0.0f", "0.f", "0", "0.0"):
            yield replace(given[1], "1.0f")


@rule(
    "fragment-stride-off",
    "launch",
    source="operator catalogue H08",
    examples=(
        Example("wmma::load_matrix_sync(a, x, LD);", "wmma::load_matrix_sync(a, x, (LD) + 8);"),
        Example("wmma::mma_sync(c, a, b, c);", None),
    ),
)
def fragment_stride_off(tree: Tree) -> Iterator[Edit]:
    """The rows of a matrix are taken to be eight elements further apart than they are."""
    for call in calls(tree, "load_matrix_sync", "store_matrix_sync"):
        given = arguments(call)
        if len(given) > 2:
            yield replace(given[2], f"({given[2].text}) + 8")


@rule(
    "product-without-accumulator",
    "launch",
    source="operator catalogue A10, H06 for tensor cores: each step replaces the sum",
    examples=(
        Example("wmma::mma_sync(c, a, b, c);", "(wmma::fill_fragment(c, 0.0f), wmma::mma_sync(c, a, b, c));"),
        Example("wmma::mma_sync(d, a, b, c);", None),
    ),
)
def product_without_accumulator(tree: Tree) -> Iterator[Edit]:
    """A tensor-core product replaces the running sum instead of adding to it."""
    for call in calls(tree, "mma_sync"):
        given = arguments(call)
        function = call.field("function")
        if len(given) == 4 and given[0].text == given[3].text and function is not None:
            scope = function.text.removesuffix("mma_sync")
            yield replace(call, f"({scope}fill_fragment({given[0].text}, 0.0f), {call.text})")


def _components(tree: Tree) -> Iterator[tuple[Node, Node]]:
    """Reads of a component of a vector: expression and the component's name."""
    for node in tree.device("field_expression"):
        owner, name = node.field("argument"), node.field("field")
        if owner is None or name is None or is_store_target(node) or owner.kind == "call_expression":
            continue
        found = expression_type(owner)
        if (
            found is not None
            and found.component is not None
            and owner.text not in ("threadIdx", "blockIdx", "blockDim", "gridDim")
        ):
            yield node, name


@rule(
    "vector-component-repeated",
    "launch",
    source="operator catalogue H10: half of a vector is used twice",
    examples=(
        Example("float4 v; n = v.x + v.w;", "float4 v; n = v.x + v.z;"),
        Example("float4 v; v.w = 0;", None),
    ),
)
def vector_component_repeated(tree: Tree) -> Iterator[Edit]:
    """The neighbour of a vector's component is used in its place."""
    for _, name in _components(tree):
        if name.text in ("y", "w"):
            yield replace(name, "x" if name.text == "y" else "z")


_MAKERS = (
    "make_float4",
    "make_float2",
    "__floats2half2_rn",
    "__floats2bfloat162_rn",
    "__halves2half2",
    "__halves2bfloat162",
)


@rule(
    "vector-components-swapped",
    "launch",
    source="operator catalogue H11",
    examples=(
        Example("float2 v = make_float2(x[0], x[1]);", "float2 v = make_float2(x[1], x[0]);"),
        Example("float2 v = make_float2(n, n);", None),
    ),
)
def vector_components_swapped(tree: Tree) -> Iterator[tuple[Edit, Edit]]:
    """The first two components of a vector are put together in the wrong order."""
    for call in calls(tree, *_MAKERS):
        first, second = (*arguments(call), None, None)[:2]
        if first is not None and second is not None and first.text != second.text:
            yield replace(first, second.text), replace(second, first.text)


@rule(
    "vector-base-misaligned",
    "launch",
    source="operator catalogue H09: a fault on a GPU",
    examples=(
        Example(
            "const float4* v = reinterpret_cast<const float4*>(x);",
            "const float4* v = reinterpret_cast<const float4*>((x) + 1);",
        ),
        Example("const int* v = reinterpret_cast<const int*>(x);", None),
    ),
)
def vector_base_misaligned(tree: Tree) -> Iterator[Edit]:
    """Vectors are read or written from an address that is off by one element."""
    for call in calls(tree, "reinterpret_cast"):
        target, given = expression_type(call), arguments(call)
        if target is None or target.element is None or target.element.component is None or len(given) != 1:
            continue
        if given[0].text.startswith("&") or bare(given[0]).kind in ("identifier", "binary_expression"):
            yield replace(given[0], f"({given[0].text}) + 1")


def _in_dynamic_memory(node: Node) -> bool:
    """Whether a pointer expression starts from dynamic shared memory, directly or through variables."""
    names = node.find("identifier")
    for name in names[:1]:
        found = declared_type(name)
        if found is not None and found.shared and found.extents[:1] == ("",):
            return True
        value = initial_value(name)
        return value is not None and _in_dynamic_memory(value)
    return False


@rule(
    "shared-parts-overlap",
    "launch",
    source="operator catalogue H13",
    examples=(
        Example(
            "extern __shared__ float s[]; float* t = s + n * m;",
            "extern __shared__ float s[]; float* t = s + (n * m) / 2;",
        ),
        Example("const float* t = x + n;", None),
    ),
)
def shared_parts_overlap(tree: Tree) -> Iterator[Edit]:
    """Two arrays that are cut out of dynamic shared memory overlap."""
    for node in tree.device("init_declarator"):
        name, value = node.field("declarator"), node.field("value")
        pointer = name is not None and name.kind == "pointer_declarator"
        if pointer and value is not None and value.kind == "binary_expression" and operator(value) == "+":
            base, offset = operands(value)
            if _in_dynamic_memory(base):
                yield replace(offset, f"({offset.text}) / 2")


@rule(
    "shared-array-one-short",
    "launch",
    source="operator catalogue H12 for static shared memory",
    examples=(
        Example("__shared__ float s[TILE][TILE + 1];", "__shared__ float s[(TILE) - 1][TILE + 1];"),
        Example("float s[TILE];", None),
    ),
)
def shared_array_one_short(tree: Tree) -> Iterator[Edit]:
    """A shared array lacks its last element or row."""
    for node in tree.find("array_declarator"):
        size, declaration = node.field("size"), node.enclosing("declaration")
        inner = node.field("declarator")
        if (
            size is None
            or declaration is None
            or inner is None
            or inner.kind != "identifier"
            or not node.in_device_code
        ):
            continue
        if any(child.text == "__shared__" for child in declaration.children) and size.text not in ("1", "2"):
            yield replace(size, f"({size.text}) - 1")
