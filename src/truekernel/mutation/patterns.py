"""Shapes of code that several rules look for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from truekernel.model import Edit
from truekernel.source.c_types import FLOATING, INTEGRAL
from truekernel.source.edits import replace
from truekernel.source.query import bare, callee, operands, operator
from truekernel.source.tree import Node, Tree
from truekernel.source.types import declared_type, expression_type

COMPARISONS = ("<", "<=", ">", ">=")
_NUMBER = re.compile(r"((?:\d[\d']*)?\.?\d*(?:[eE][+-]?\d+)?)([fFlL]?)")


def is_value(node: Node) -> bool:
    """Whether an expression is a real number: known so, of a template's type, or unknown and not part of an index."""
    found = expression_type(node)
    if found is None:
        return not in_index(node) and not in_loop_header(node)
    return found.scalar and found.component is None and found.base not in INTEGRAL and "*" not in found.base


def is_index(node: Node) -> bool:
    """Whether an expression is an integer: known so, or unknown and part of an index."""
    found = expression_type(node)
    return found.integral if found is not None else in_index(node)


def in_index(node: Node) -> bool:
    """Whether this node lies in the brackets of a subscript."""
    return node.enclosing("subscript_argument_list") is not None


def in_loop_header(node: Node) -> bool:
    """Whether this node lies in the start, condition or step of a `for`."""
    child = node
    for ancestor in node.ancestors:
        if ancestor.kind == "for_statement":
            return child.field_name != "body"
        if ancestor.kind.endswith("_statement"):
            return False
        child = ancestor
    return False


def in_condition(node: Node) -> bool:
    """Whether this node lies in the condition of an `if`, `while` or `?:` (a `for` has its own rules)."""
    child = node
    for ancestor in node.ancestors:
        if ancestor.kind == "condition_clause":
            return True
        if ancestor.kind == "conditional_expression":
            return child.field_name == "condition"
        if ancestor.kind not in ("binary_expression", "parenthesized_expression", "unary_expression"):
            return False
        child = ancestor
    return False


def token(node: Node) -> Node:
    """The operator of a binary or assignment expression, as a node."""
    found = node.field("operator")
    assert found is not None, node
    return found


def real_binaries(tree: Tree, *operators: str) -> Iterator[Node]:
    """Binary expressions over real numbers with one of `operators`."""
    for node in tree.device("binary_expression"):
        if operator(node) in operators and is_value(node):
            yield node


def index_binaries(tree: Tree, *operators: str) -> Iterator[Node]:
    """Binary expressions over integers with one of `operators`."""
    for node in tree.device("binary_expression"):
        if operator(node) in operators and is_index(node):
            yield node


def comparisons(tree: Tree, *operators: str) -> Iterator[Node]:
    """Comparisons of integers with one of `operators` in conditions of `if`, `while` and `?:`."""
    for node in tree.device("binary_expression"):
        if operator(node) in operators and in_condition(node) and not compares_values(node):
            yield node


def compares_values(node: Node) -> bool:
    """Whether a comparison is one of real numbers."""
    types = [expression_type(side) for side in operands(node)]
    return any(found is not None and (found.base in FLOATING or found.base not in INTEGRAL) for found in types)


@dataclass(frozen=True, slots=True)
class Loop:
    """A `for` that counts: `variable` starts at `start`, goes on while `condition` (a comparison with `bound`), then `step`."""

    node: Node
    variable: str
    start: Node
    condition: Node
    bound: Node
    step: Node
    body: Node

    @property
    def upward(self) -> bool:
        """Whether it counts up to its bound."""
        return operator(self.condition) in ("<", "<=", "!=")


def loops(tree: Tree) -> Iterator[Loop]:
    """Counting loops in device code."""
    for node in tree.device("for_statement"):
        first, condition = node.field("initializer"), node.field("condition")
        step, body = node.field("update"), node.field("body")
        if first is None or condition is None or step is None or body is None:
            continue
        if condition.kind != "binary_expression" or operator(condition) not in (*COMPARISONS, "!="):
            continue
        declarator = first if first.kind == "assignment_expression" else first.child("init_declarator")
        if declarator is None:
            continue
        name = declarator.field("declarator") or declarator.field("left")
        start = declarator.field("value") or declarator.field("right")
        left, right = operands(condition)
        if name is not None and start is not None and left.text == name.text:
            yield Loop(node, name.text, start, condition, right, step, body)


def shuffles(node: Node) -> bool:
    """Whether lanes exchange values below this node."""
    return any("shfl" in callee(call) for call in node.find("call_expression"))


def renamed(names: Mapping[str, str]) -> Callable[[Tree], Iterator[Edit]]:
    """Sites of a rule that calls another function: one mutant for each call of a key of `names`."""

    def sites(tree: Tree) -> Iterator[Edit]:
        for call in tree.device("call_expression"):
            other = names.get(callee(call))
            function = call.field("function")
            if other is not None and function is not None:
                yield replace(function, other)

    return sites


def number(node: Node) -> float | None:
    """Value of a decimal literal, sign included; None for other nodes."""
    node = bare(node)
    if node.kind == "unary_expression" and operator(node) == "-":
        inner = number(node.named_children[0])
        return None if inner is None else -inner
    if node.kind != "number_literal" or node.text[:2].lower() == "0x":
        return None
    text = node.text.replace("'", "").rstrip("fFlLuU")
    try:
        return float(text)
    except ValueError:
        return None


def real_literals(tree: Tree) -> Iterator[tuple[Node, float, str]]:
    """Decimal floating literals other than zero: node, value, suffix."""
    for node in tree.device("number_literal"):
        match = _NUMBER.fullmatch(node.text)
        if match and any(mark in node.text for mark in ".eE") and float(match[1].replace("'", "")) != 0.0:
            yield node, float(match[1].replace("'", "")), match[2]


def literal(value: float, suffix: str) -> str:
    """A floating literal of `value` with at most nine significant digits."""
    text = f"{value:.9g}"
    return (text if any(mark in text for mark in ".e") else f"{text}.0") + suffix


def is_infinite(node: Node) -> bool:
    """Whether an expression is an infinity or the largest number, the start of a minimum or maximum."""
    node = bare(node)
    if node.kind == "unary_expression":
        node = bare(node.named_children[0])
    if node.kind == "call_expression" and callee(node) in ("__int_as_float", "__uint_as_float"):
        return any(word in node.text.lower() for word in ("7f800000", "ff800000"))
    value = number(node)
    names = ("INFINITY", "FLT_MAX", "CUDART_INF_F", "HUGE_VALF", "INT_MAX", "INT_MIN", "DBL_MAX")
    return node.text in names or (value is not None and abs(value) >= 1e9)


def is_epsilon(node: Node) -> bool:
    """Whether an expression is a small number that keeps a root, a logarithm or a quotient away from zero."""
    node = bare(node)
    value = number(node)
    if value is not None:
        return 0.0 < abs(value) <= 1e-3
    return node.kind == "identifier" and re.search(r"eps|tiny", node.text, re.IGNORECASE) is not None


def stores(tree: Tree) -> Iterator[tuple[Node, Node, Node]]:
    """Plain assignments to an element of memory: assignment, subscript on the left, right side."""
    for node in tree.device("assignment_expression"):
        left, right = operands(node)
        if operator(node) == "=" and left.kind == "subscript_expression":
            yield node, left, right


def is_store_target(node: Node) -> bool:
    """Whether a subscript (or one of a chain of them) is written, not read."""
    while node.parent is not None and node.parent.kind in ("subscript_expression", "field_expression"):
        if node.field_name != "argument":
            return False
        node = node.parent
    parent = node.parent
    return parent is not None and parent.kind == "assignment_expression" and node.field_name == "left"


def subscript(node: Node) -> tuple[Node, Node] | None:
    """Base and index of a subscript with one index; None otherwise."""
    base, listed = node.field("argument"), node.field("indices")
    if base is None or listed is None or len(listed.named_children) != 1:
        return None
    return base, listed.named_children[0]


def loads(tree: Tree) -> Iterator[tuple[Node, Node, Node]]:
    """Reads of one element through a name: subscript, base, index (outermost index of a chain)."""
    for node in tree.device("subscript_expression"):
        parts = subscript(node)
        inner = node.parent is not None and node.parent.kind == "subscript_expression" and node.field_name == "argument"
        if parts is not None and not inner and not is_store_target(node):
            yield node, *parts


def is_input(base: Node) -> bool:
    """Whether a name is a pointer to constant data: an input of the kernel."""
    found = declared_type(base) if base.kind == "identifier" else None
    return found is not None and found.pointer == 1 and found.const


def parameters_like(name: Node, wanted: Callable[[Node], bool]) -> list[str]:
    """Names of the other parameters of the enclosing function with the same type as `name`, kept when `wanted(identifier)`."""
    function, mine = name.function, declared_type(name)
    if function is None or mine is None:
        return []
    found = []
    for parameter in function.find("parameter_declaration"):
        if parameter.enclosing("function_definition") is not function:
            continue
        identifiers = parameter.find("identifier")
        if not identifiers or identifiers[-1].text == name.text:
            continue
        other = declared_type(identifiers[-1])
        if other is not None and (other.base, other.pointer) == (mine.base, mine.pointer) and wanted(identifiers[-1]):
            found.append(identifiers[-1].text)
    return found


def local_names(name: Node, wanted: Callable[[Node], bool]) -> list[str]:
    """Names of variables that are declared before `name` in blocks around it, nearest first, kept when `wanted(identifier)`."""
    found: dict[str, None] = {}
    for scope in name.ancestors:
        declarations: Iterable[Node] = ()
        if scope.kind == "compound_statement":
            declarations = [
                child for child in scope.children if child.kind == "declaration" and child.end <= name.start
            ]
        elif scope.kind == "for_statement" and (first := scope.field("initializer")) is not None:
            declarations = [first] if first.kind == "declaration" and first.end <= name.start else []
        for declaration in reversed(list(declarations)):
            for declarator in reversed(declaration.children):
                target = declarator.field("declarator") if declarator.kind == "init_declarator" else None
                if target is not None and target.kind == "identifier" and target.text != name.text and wanted(target):
                    found.setdefault(target.text)
        if scope.kind == "function_definition":
            break
    return list(found)
