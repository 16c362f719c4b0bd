"""Short questions about nodes that rules ask again and again; purely syntactic."""

from __future__ import annotations

from truekernel.source.tree import Node


def callee(node: Node) -> str:
    """Name of the function that a call names, without namespace, object and template arguments ("" when `node` is no plain call).

    `std::max<int>(a, b)` gives "max", `warp.shfl_down(v, 8)` gives "shfl_down".
    """
    function = node.field("function") if node.kind == "call_expression" else None
    while function is not None:
        if function.kind in ("identifier", "field_identifier"):
            return function.text
        inner = function.field("field") if function.kind == "field_expression" else function.field("name")
        if inner is None:
            return ""
        function = inner
    return ""


def receiver(node: Node) -> Node | None:
    """The object of a method call (`warp` in `warp.shfl_down(v, 8)`), or None."""
    function = node.field("function") if node.kind == "call_expression" else None
    return function.field("argument") if function is not None and function.kind == "field_expression" else None


def arguments(node: Node) -> list[Node]:
    """Arguments of a call."""
    listed = node.field("arguments")
    return listed.named_children if listed is not None else []


def operator(node: Node) -> str:
    """Operator of a binary, unary, update or assignment expression ("" for others)."""
    token = node.field("operator")
    return token.text if token is not None else ""


def operands(node: Node) -> tuple[Node, Node]:
    """Left and right side of a binary or assignment expression."""
    left, right = node.field("left"), node.field("right")
    assert left is not None and right is not None, node
    return left, right


def bare(node: Node) -> Node:
    """The expression inside any number of parentheses."""
    while node.kind == "parenthesized_expression" and len(node.named_children) == 1:
        node = node.named_children[0]
    return node


def same(first: Node, second: Node) -> bool:
    """Whether two nodes have the same text, blanks aside."""
    return "".join(first.text.split()) == "".join(second.text.split())


def mentions(node: Node, *names: str) -> bool:
    """Whether an identifier or field of one of `names` occurs in this subtree."""
    return any(child.text in names for child in node.find("identifier", "field_identifier"))


def thread_index(node: Node) -> tuple[str, str] | None:
    """`("threadIdx", "x")` for the built-in `threadIdx.x`, and so for blockIdx, blockDim and gridDim; otherwise None."""
    if node.kind != "field_expression":
        return None
    base, axis = node.field("argument"), node.field("field")
    if base is None or axis is None or base.text not in ("threadIdx", "blockIdx", "blockDim", "gridDim"):
        return None
    return base.text, axis.text
