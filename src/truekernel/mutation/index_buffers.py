"""Index faults at an access: the wrong element, the wrong variable, the wrong buffer."""

from __future__ import annotations

from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.patterns import (
    index_binaries,
    is_input,
    is_store_target,
    loads,
    local_names,
    loops,
    number,
    parameters_like,
    stores,
    subscript,
)
from truekernel.mutation.rule import Example, rule
from truekernel.source.edits import drop_after, insert_after, remove_statement, replace
from truekernel.source.query import operands, operator, same
from truekernel.source.tree import Node, Tree
from truekernel.source.types import declared_type, expression_type, is_integral

_COMPONENTS = {"x": "y", "y": "z", "z": "w", "w": "x"}


@rule(
    "load-next-element",
    "index",
    source="gpu_index_increment of MUTGPU, ICST 2020; operator catalogue I10",
    examples=(
        Example("y[0] = x[n];", "y[0] = x[n + 1];"),
        Example("y[0] = 1.0f;", None),
    ),
)
def load_next_element(tree: Tree) -> Iterator[Edit]:
    """The element after the right one is read."""
    for _, _, index in loads(tree):
        yield _plus_one(index)


@rule(
    "store-next-element",
    "index",
    source="gpu_index_increment of MUTGPU, ICST 2020; operator catalogue I10",
    examples=(
        Example("y[n] = x[0];", "y[n + 1] = x[0];"),
        Example("float a = x[0];", None),
    ),
)
def store_next_element(tree: Tree) -> Iterator[Edit]:
    """The element after the right one is written."""
    for _, left, _ in stores(tree):
        parts = subscript(left)
        if parts is not None:
            yield _plus_one(parts[1])


def _plus_one(index: Node) -> Edit:
    value = number(index)
    if value is not None and index.text.isdigit():
        return replace(index, str(int(value) + 1))
    loose = index.kind in ("conditional_expression", "comma_expression") or operator(index) in (
        "&",
        "|",
        "^",
        "<<",
        ">>",
        "?",
    )
    return replace(index, f"({index.text}) + 1") if loose else insert_after(index, " + 1")


@rule(
    "transpose-subscripts",
    "index",
    source="operator catalogue I07 (a tile is stored or read transposed)",
    examples=(
        Example(
            "__shared__ float t[8][8]; t[n][m] = x[0];",
            "__shared__ float t[8][8]; t[m][n] = x[0];",
        ),
        Example("y[n] = x[m];", None),
    ),
)
def transpose_subscripts(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """The two indices of an element of a two-dimensional array are exchanged."""
    for node in tree.device("subscript_expression"):
        outer = subscript(node)
        inner = subscript(outer[0]) if outer is not None else None
        if outer is not None and inner is not None and not same(outer[1], inner[1]):
            yield replace(inner[1], outer[1].text), replace(outer[1], inner[1].text)


@rule(
    "drop-pointer-offset",
    "index",
    source="operator catalogue I09 (a batch offset is forgotten; a batch of one hides it)",
    examples=(
        Example("const float* row = x + n * m; y[0] = row[0];", "const float* row = x; y[0] = row[0];"),
        Example("int k = n + m;", None),
    ),
)
def drop_pointer_offset(tree: Tree) -> Iterator[Edit]:
    """The offset of a row or batch is not added to a pointer."""
    for node in tree.device("binary_expression"):
        left, right = operands(node)
        found = expression_type(left)
        if operator(node) == "+" and found is not None and found.element is not None and is_integral(right):
            yield drop_after(left, node)
    for node in tree.device("assignment_expression"):
        left = operands(node)[0]
        found, statement = expression_type(left), node.parent
        moves = operator(node) == "+=" and found is not None and found.element is not None
        if moves and statement is not None and statement.kind == "expression_statement":
            yield remove_statement(statement)


@rule(
    "wrong-index-variable",
    "index",
    source="operator catalogue I16 (a parameter is broadcast along the wrong axis)",
    examples=(
        Example("int r = n; int c = m; y[c] = x[0];", "int r = n; int c = m; y[r] = x[0];"),
        Example("int c = m; y[c] = x[0];", None),
    ),
)
def wrong_index_variable(tree: Tree) -> Iterator[Edit]:
    """An element is chosen by another integer variable of the same block of code."""
    for node in tree.device("subscript_expression"):
        parts = subscript(node)
        if parts is None or parts[1].kind != "identifier":
            continue
        others = local_names(parts[1], _is_index_variable)
        if others:
            yield replace(parts[1], others[0])


def _is_index_variable(name: Node) -> bool:
    found = declared_type(name)
    return found is not None and found.integral and found.base != "bool" and not name.text.isupper()


@rule(
    "wrong-stride-parameter",
    "index",
    source="operator catalogue I05 (another length that has the same value at the tested shape)",
    examples=(
        Example("y[n * 4 + m] = x[n];", ("y[m * 4 + m] = x[n];", "y[n * 4 + n] = x[n];", "y[n * 4 + m] = x[m];")),
        Example("y[0] = x[0];", None),
    ),
)
def wrong_stride_parameter(tree: Tree) -> Iterator[Edit]:
    """An index is computed with another length of the problem."""
    loop_headers = {id(n) for loop in loops(tree) for part in (loop.condition, loop.step) for n in part.walk()}
    for name in tree.device("identifier"):
        found = declared_type(name)
        if found is None or not found.integral or id(name) in loop_headers or not _in_arithmetic(name):
            continue
        if name.text not in _parameters(name):
            continue
        others = parameters_like(name, lambda _: True)
        if others:
            after = _parameters(name)[_parameters(name).index(name.text) + 1 :]
            following = [other for other in others if other in after]
            yield replace(name, (following or others)[0])


def _parameters(name: Node) -> list[str]:
    function = name.function
    found = function.find("parameter_declaration") if function is not None else []
    return [names[-1].text for parameter in found if (names := parameter.find("identifier"))]


def _in_arithmetic(name: Node) -> bool:
    parent = name.parent
    while parent is not None and parent.kind in ("parenthesized_expression", "cast_expression"):
        parent = parent.parent
    if parent is None:
        return False
    if parent.kind == "subscript_argument_list":
        return True
    return parent.kind == "binary_expression" and operator(parent) in ("+", "-", "*", "/", "%")


@rule(
    "wrong-loop-extent",
    "index",
    source="operator catalogue I21 (the reduction runs over another axis)",
    examples=(
        Example("for (int i = 0; i < n; ++i) y[i] = 0.0f;", "for (int i = 0; i < m; ++i) y[i] = 0.0f;"),
        Example("for (int i = 0; i < 4; ++i) y[i] = 0.0f;", None),
    ),
)
def wrong_loop_extent(tree: Tree) -> Iterator[Edit]:
    """A loop runs over the length of another axis."""
    for loop in loops(tree):
        if loop.bound.kind == "identifier":
            others = parameters_like(loop.bound, lambda _: True)
            if others:
                yield replace(loop.bound, others[0])


@rule(
    "read-output-for-input",
    "index",
    source="operator catalogue I22 (output and input confused)",
    examples=(
        Example("y[0] = x[1];", "y[0] = y[1];"),
        Example("y[0] = 1.0f;", None),
    ),
)
def read_output_for_input(tree: Tree) -> Iterator[Edit]:
    """An element is read from the output buffer instead of the input."""
    for _, base, _ in loads(tree):
        if is_input(base):
            others = parameters_like(base, lambda other: not is_input(other))
            if others:
                yield replace(base, others[0])


@rule(
    "swap-vector-components",
    "index",
    source="operator catalogue H11 (lanes of a vector in the wrong order)",
    examples=(
        Example(
            "float4 v = reinterpret_cast<const float4*>(x)[0]; y[0] = v.x;",
            "float4 v = reinterpret_cast<const float4*>(x)[0]; y[0] = v.y;",
        ),
        Example("int i = threadIdx.x;", None),
    ),
)
def swap_vector_components(tree: Tree) -> Iterator[Edit]:
    """Another component of a vector is read."""
    for node in tree.device("field_expression"):
        base, name = node.field("argument"), node.field("field")
        found = expression_type(base) if base is not None else None
        if base is None or name is None or found is None or found.component is None or is_store_target(node):
            continue
        parent = node.parent
        if parent is not None and parent.kind == "assignment_expression" and node.field_name == "left":
            continue
        width = 2 if found.base.startswith("__") else int(found.base[-1])
        following = _COMPONENTS.get(name.text, "x")
        yield replace(name, following if "xyzw".index(following) < width else "x")


@rule(
    "confuse-stride-padding",
    "index",
    source="operator catalogue I13",
    examples=(
        Example("int p = 1; int k = n * 2 - p; y[k] = 0.0f;", "int p = 1; int k = n * p - 2; y[k] = 0.0f;"),
        Example("int k = n + m;", None),
    ),
)
def confuse_stride_padding(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """Stride and padding, or factor and offset, of a window are exchanged."""
    for node in index_binaries(tree, "-"):
        left, right = operands(node)
        products = [n for n in left.find("binary_expression") if operator(n) == "*"]
        if right.kind in ("identifier", "number_literal", "field_expression") and products and number(right) != 1.0:
            factor = operands(products[0])[1]
            if not same(factor, right):
                yield replace(factor, right.text), replace(right, factor.text)


@rule(
    "drop-index-subtrahend",
    "index",
    source="operator catalogue I14 (padding on one side only)",
    examples=(
        Example("int k = n - m; y[k] = 0.0f;", "int k = n; y[k] = 0.0f;"),
        Example("int k = n - 1;", None),
    ),
)
def drop_index_subtrahend(tree: Tree) -> Iterator[Edit]:
    """What an index should be moved back by, such as the padding, is forgotten."""
    for node in index_binaries(tree, "-"):
        left, right = operands(node)
        if number(right) is None:
            yield drop_after(left, node)
