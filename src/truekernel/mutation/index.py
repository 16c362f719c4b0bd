"""Index faults in the thread and block arithmetic: which element a thread works on."""

from __future__ import annotations

from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.patterns import in_index, index_binaries, loops, number, subscript, token
from truekernel.mutation.rule import Example, rule
from truekernel.source.edits import drop_after, drop_before, replace
from truekernel.source.query import bare, mentions, operands, operator, same, thread_index
from truekernel.source.tree import Node, Tree

_NEXT = {"x": "y", "y": "x", "z": "y"}


def _builtins(tree: Tree, *bases: str) -> Iterator[tuple[Node, str, str]]:
    """Uses of threadIdx and its like: node, base, axis."""
    for node in tree.device("field_expression"):
        found = thread_index(node)
        if found is not None and found[0] in bases:
            yield node, *found


def _global_offset(node: Node) -> tuple[Node, Node] | None:
    """The two terms of `blockIdx.x * blockDim.x + threadIdx.x`, in the order of the text, when the sum is one."""
    if operator(node) != "+":
        return None
    left, right = operands(node)
    for block, thread in ((left, right), (right, left)):
        if mentions(block, "blockIdx") and thread_index(bare(thread)) and mentions(thread, "threadIdx"):
            return left, right
    return None


@rule(
    "swap-thread-block-index",
    "index",
    source="gpu_index_replacement of MUTGPU, ICST 2020; operator catalogue I01",
    examples=(
        Example("int i = threadIdx.x + n;", "int i = blockIdx.x + n;"),
        Example("int i = blockDim.x + n;", None),
    ),
)
def swap_thread_block_index(tree: Tree) -> Iterator[Edit]:
    """The index of the thread stands for that of the block, or the other way round."""
    for node, base, axis in _builtins(tree, "threadIdx", "blockIdx"):
        yield replace(node, f"{'blockIdx' if base == 'threadIdx' else 'threadIdx'}.{axis}")


@rule(
    "swap-block-grid-dim",
    "index",
    source="gpu_index_replacement of MUTGPU, ICST 2020; operator catalogue I03",
    examples=(
        Example("int i = blockIdx.x * blockDim.x;", "int i = blockIdx.x * gridDim.x;"),
        Example("int i = blockIdx.x + threadIdx.x;", None),
    ),
)
def swap_block_grid_dim(tree: Tree) -> Iterator[Edit]:
    """The size of the block stands for that of the grid, or the other way round."""
    for node, base, axis in _builtins(tree, "blockDim", "gridDim"):
        yield replace(node, f"{'gridDim' if base == 'blockDim' else 'blockDim'}.{axis}")


@rule(
    "swap-index-axis",
    "index",
    source="gpu_index_replacement of MUTGPU, ICST 2020; operator catalogue I02",
    examples=(
        Example("int i = blockIdx.y;", "int i = blockIdx.x;"),
        Example("int i = n;", None),
    ),
)
def swap_index_axis(tree: Tree) -> Iterator[Edit]:
    """An index or size is taken along another axis of the block or the grid."""
    flat = {id(f) for f in tree.device_functions if not any(n[1] == "y" for n in map(thread_index, f.walk()) if n)}
    for node, base, axis in _builtins(tree, "threadIdx", "blockIdx", "blockDim", "gridDim"):
        if base.endswith("Dim") and id(node.function) in flat:
            continue
        yield replace(node, f"{base}.{_NEXT[axis]}")


@rule(
    "drop-thread-offset",
    "index",
    source="operator catalogue I23; common in first versions of a kernel",
    examples=(
        Example("int i = blockIdx.x * blockDim.x + threadIdx.x;", "int i = blockIdx.x * blockDim.x;"),
        Example("int i = blockIdx.x * blockDim.x;", None),
    ),
)
def drop_thread_offset(tree: Tree) -> Iterator[Edit]:
    """The place of the thread in its block is forgotten: all threads of a block take the same element."""
    for node in index_binaries(tree, "+"):
        terms = _global_offset(node)
        if terms is not None:
            left, right = terms
            yield drop_before(right, node) if mentions(left, "threadIdx") else drop_after(left, node)


@rule(
    "drop-block-offset",
    "index",
    source="operator catalogue I23; common in first versions of a kernel",
    examples=(
        Example("int i = blockIdx.x * blockDim.x + threadIdx.x;", "int i = threadIdx.x;"),
        Example("int i = threadIdx.x;", None),
    ),
)
def drop_block_offset(tree: Tree) -> Iterator[Edit]:
    """The place of the block in the grid is forgotten: all blocks work on the same elements."""
    for node in index_binaries(tree, "+"):
        terms = _global_offset(node)
        if terms is not None:
            left, right = terms
            yield drop_before(right, node) if mentions(left, "blockIdx") else drop_after(left, node)


@rule(
    "swap-quotient-remainder",
    "index",
    source="operator catalogue I24 (lane and warp mixed up)",
    examples=(
        Example("int lane = threadIdx.x % 32;", "int lane = threadIdx.x / 32;"),
        Example("int lane = threadIdx.x & 31;", "int lane = threadIdx.x >> 5;"),
        Example("y[0] = x[0] / 3.0f;", None),
    ),
)
def swap_quotient_remainder(tree: Tree) -> Iterator[Edit | tuple[Edit, ...]]:
    """A quotient stands for a remainder, or the other way round, as lane and warp index do when they are mixed up."""
    pairs = {"31": "5", "15": "4", "7": "3", "3": "2", "63": "6", "127": "7", "255": "8"}
    masks = {bits: mask for mask, bits in pairs.items()}
    for node in index_binaries(tree, "/", "%", "&", ">>"):
        left, right = operands(node)
        sign = operator(node)
        if sign in "/%":
            if not _is_ceiling(node) and (number(left) is None):
                yield replace(token(node), "%" if sign == "/" else "/")
        elif sign == "&" and right.text in pairs:
            yield replace(token(node), ">>"), replace(right, pairs[right.text])
        elif sign == ">>" and right.text in masks:
            yield replace(token(node), "&"), replace(right, masks[right.text])


def _is_ceiling(node: Node) -> bool:
    """Whether a quotient is `(a + b - 1) / b`: rules of boundaries change those."""
    left, right = operands(node)
    return any(n.kind == "binary_expression" and same(operands(n)[1], right) for n in left.find("binary_expression"))


@rule(
    "drop-index-factor",
    "index",
    source="operator catalogue I11; a group or row length is forgotten",
    examples=(
        Example("int i = n * 4;", "int i = n;"),
        Example("y[0] = x[0] * w[0];", None),
        Example("int i = n * m + 1;", None),
    ),
)
def drop_index_factor(tree: Tree) -> Iterator[Edit]:
    """An integer factor that is not the stride of a row is forgotten."""
    for node in index_binaries(tree, "*"):
        parent = node.parent
        if parent is not None and parent.kind == "binary_expression" and operator(parent) == "+":
            continue
        yield drop_after(operands(node)[0], node)


def strided(tree: Tree) -> Iterator[tuple[Node, Node, Node, Node]]:
    """Sums `row * stride + column` of integers that form an index: sum, row, stride, column (either order of the terms)."""
    for node in index_binaries(tree, "+"):
        if _global_offset(node) is not None:
            continue
        left, right = operands(node)
        for product, other in ((left, right), (right, left)):
            inner = bare(product)
            if inner.kind == "binary_expression" and operator(inner) == "*":
                yield node, *operands(inner), other
                break


@rule(
    "swap-row-column",
    "index",
    source="operator catalogue I04; can't be seen when a matrix is square",
    examples=(
        Example("y[n * 8 + m] = x[0];", "y[m * 8 + n] = x[0];"),
        Example("y[n + m] = x[0];", None),
    ),
)
def swap_row_column(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Row and column are exchanged in an index, the stride stays."""
    for _, row, _, column in strided(tree):
        if not same(row, column):
            yield replace(row, _factor(column)), replace(column, _unwrapped(row))


def _factor(node: Node) -> str:
    return f"({node.text})" if node.kind in ("binary_expression", "conditional_expression") else node.text


def _unwrapped(row: Node) -> str:
    """The text of a row without the cast that widens its product."""
    value = row.field("value") if row.kind == "cast_expression" else None
    return value.text if value is not None else row.text


@rule(
    "stride-plus-one",
    "index",
    source="operator catalogue I06; MIOpen and oneDNN reports of wrong leading dimensions",
    examples=(
        Example("y[n * m + 1] = x[0];", "y[n * (m + 1) + 1] = x[0];"),
        Example("y[n + m] = x[0];", None),
    ),
)
def stride_plus_one(tree: Tree) -> Iterator[Edit]:
    """The stride between rows is one too large."""
    for _, _, stride, _ in strided(tree):
        yield replace(stride, f"({stride.text} + 1)")


@rule(
    "drop-row-term",
    "index",
    source="operator catalogue I09 (a batch offset is forgotten; a batch of one hides it)",
    examples=(
        Example("y[n * m + 1] = x[0];", "y[1] = x[0];"),
        Example("y[n + m] = x[0];", None),
    ),
)
def drop_row_term(tree: Tree) -> Iterator[Edit]:
    """The row part of an index is forgotten: every row is read from, or written to, the first."""
    for node, _, _, column in strided(tree):
        yield drop_before(column, node) if column is operands(node)[1] else drop_after(column, node)


@rule(
    "drop-column-term",
    "index",
    source="operator catalogue I16 (broadcast along the wrong axis)",
    examples=(
        Example("y[n * m + 1] = x[0];", "y[n * m] = x[0];"),
        Example("y[n + m] = x[0];", None),
    ),
)
def drop_column_term(tree: Tree) -> Iterator[Edit]:
    """The column part of an index is forgotten: every column is the first."""
    for node, _, _, column in strided(tree):
        left, right = operands(node)
        yield drop_after(left, node) if column is right else drop_before(right, node)


@rule(
    "subtract-offset",
    "index",
    source="operator catalogue A01 and I10, for index arithmetic",
    examples=(
        Example("y[n + 1] = x[m - 1];", ("y[n - 1] = x[m - 1];", "y[n + 1] = x[m + 1];")),
        Example("y[0] = x[0] + x[1];", None),
    ),
)
def subtract_offset(tree: Tree) -> Iterator[Edit]:
    """An offset is added to an index instead of subtracted, or subtracted instead of added."""
    for node in tree.device("binary_expression"):
        if operator(node) in ("+", "-") and in_index(node) and not _global_offset(node):
            yield replace(token(node), "-" if operator(node) == "+" else "+")


@rule(
    "reverse-one-operand",
    "index",
    source="operator catalogue I15 (flipped kernel taps: convolution for correlation)",
    examples=(
        Example(
            "float s = 0.0f; for (int k = 0; k < n; ++k) s += x[k] * w[k];",
            "float s = 0.0f; for (int k = 0; k < n; ++k) s += x[k] * w[((n) - 1 - k)];",
        ),
        Example("float s = 0.0f; for (int k = 0; k < n; ++k) s += x[k];", None),
    ),
)
def reverse_one_operand(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """A loop over two operands walks one of them backwards."""
    for loop in loops(tree):
        uses = [node for node in loop.body.find("subscript_expression") if _indexed_by(node, loop.variable)]
        bases = {node.field("argument").text for node in uses}  # type: ignore[union-attr]
        if operator(loop.condition) != "<" or loop.start.text != "0" or len(bases) < 2:
            continue
        last = uses[-1].field("indices")
        assert last is not None
        names = [n for n in last.find("identifier") if n.text == loop.variable]
        yield tuple(replace(name, f"(({loop.bound.text}) - 1 - {loop.variable})") for name in names)


def _indexed_by(node: Node, variable: str) -> bool:
    parts = subscript(node)
    return parts is not None and mentions(parts[1], variable)
