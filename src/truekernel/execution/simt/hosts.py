"""Where an edit of a source can be switched at run time: the smallest expression or statement that holds it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from truekernel.model import Edit
from truekernel.source import Node, Tree, apply_edits

Category = Literal["expression", "statement"]

_EXPRESSIONS = frozenset(
    {
        "assignment_expression",
        "binary_expression",
        "call_expression",
        "cast_expression",
        "char_literal",
        "comma_expression",
        "conditional_expression",
        "false",
        "field_expression",
        "identifier",
        "number_literal",
        "parenthesized_expression",
        "pointer_expression",
        "qualified_identifier",
        "sizeof_expression",
        "subscript_expression",
        "true",
        "unary_expression",
        "update_expression",
    }
)
_STATEMENTS = frozenset(
    {
        "break_statement",
        "compound_statement",
        "continue_statement",
        "do_statement",
        "expression_statement",
        "for_statement",
        "if_statement",
        "return_statement",
        "switch_statement",
        "while_statement",
    }
)
_CLOSED = frozenset(
    {
        "argument_list",
        "condition_clause",
        "expression_statement",
        "for_statement",
        "init_declarator",
        "initializer_list",
        "parenthesized_expression",
        "return_statement",
        "subscript_argument_list",
    }
)
_OPEN = frozenset(
    {
        "assignment_expression",
        "binary_expression",
        "cast_expression",
        "comma_expression",
        "conditional_expression",
        "unary_expression",
    }
)
_CONSTANT = frozenset(
    {
        "alignas_qualifier",
        "alignas_specifier",
        "array_declarator",
        "attribute_declaration",
        "attribute_specifier",
        "bitfield_clause",
        "concept_definition",
        "decltype",
        "enumerator",
        "field_declaration",
        "gnu_asm_expression",
        "noexcept",
        "parameter_declaration",
        "parameter_list",
        "requires_clause",
        "static_assert_declaration",
        "template_argument_list",
        "template_parameter_list",
    }
)
_BINARY_STRENGTH = {
    "*": 14, "/": 14, "%": 14, "+": 13, "-": 13, "<<": 12, ">>": 12, "<": 10, ">": 10, "<=": 10, ">=": 10,
    "==": 9, "!=": 9, "&": 8, "^": 7, "|": 6, "&&": 5, "||": 4,
}  # fmt: skip
_KIND_STRENGTH = {
    "call_expression": 18,
    "subscript_expression": 18,
    "field_expression": 18,
    "update_expression": 17,
    "unary_expression": 16,
    "pointer_expression": 16,
    "cast_expression": 16,
    "sizeof_expression": 16,
    "conditional_expression": 3,
    "assignment_expression": 3,
    "comma_expression": 1,
}
_FUNCTION_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(", re.MULTILINE)
_LONGEST_BLOCK = 2000
"""Bytes of a compound statement beyond which a copy of its own compiles as fast."""


@dataclass(frozen=True, slots=True)
class Host:
    """A place that is switched: byte span, 1-based line of its start, and what it is."""

    start: int
    end: int
    line: int
    category: Category


@dataclass(frozen=True, slots=True)
class Arm:
    """What one variant puts at a host."""

    host: Host
    text: str


class Hosts:
    """Finds hosts in one source. `macros`: names of function-like macros, in whose arguments nothing is switched; `contracts`:
    whether a*b + c is contracted, so that a product must not be taken away from its sum."""

    def __init__(self, source: str, *, macros: Iterable[str] = (), contracts: bool = True) -> None:
        self._tree = Tree(source)
        self._macros = frozenset(macros) | frozenset(_FUNCTION_MACRO.findall(source))
        self._contracts = contracts
        self._fixed = _names_in_constants(self._tree)

    def arms(self, edits: Sequence[Edit]) -> tuple[Arm, ...] | None:
        """The arms of a variant that makes `edits`; None when they can't be switched at run time."""
        nodes: list[Node] = []
        for edit in edits:
            node = next(self._candidates(edit), None)
            if node is None:
                return None
            nodes.append(node)
        while True:
            groups = _outermost(nodes, edits)
            grown = [self._fitting(node, inside) for node, inside in groups]
            if any(node is None for node in grown):
                return None
            nodes = [node for node in grown if node is not None]
            if all(new is old for new, (old, _) in zip(nodes, groups, strict=True)):
                return tuple(self._arm(node, inside) for node, inside in groups)
            nodes = [next(n for n in nodes if n.start <= e.start and e.end <= n.end) for e in edits]

    def _arm(self, node: Node, edits: Sequence[Edit]) -> Arm:
        category: Category = "statement" if node.kind in _STATEMENTS else "expression"
        return Arm(Host(node.start, node.end, node.line, category), _replaced(node, edits))

    def _fitting(self, node: Node, edits: Sequence[Edit]) -> Node | None:
        """`node`, or the nearest one around it, whose text after `edits` means in its place what it means alone."""
        for candidate in self._upwards(node):
            if self._fits(candidate, _replaced(candidate, edits)):
                return candidate
        return None

    def _candidates(self, edit: Edit) -> Iterator[Node]:
        node = self._tree.root
        while True:
            inner = next(
                (c for c in node.children if c.start <= edit.start and edit.end <= c.end and c.end > c.start), None
            )
            if inner is None:
                break
            node = inner
        yield from self._upwards(node)

    def _upwards(self, node: Node) -> Iterator[Node]:
        """Possible hosts from `node` upwards, within the body of its function."""
        chain = [node, *node.ancestors]
        body = next((k for k, n in enumerate(chain) if _is_body(n)), None)
        if body is None or any(n.kind == "ERROR" for n in chain):
            return
        for k, candidate in enumerate(chain[:body]):
            above = chain[k + 1 : body + 1]
            if self._is_place(candidate) and not any(self._is_constant(n, candidate) for n in above):
                yield candidate

    def _is_place(self, node: Node) -> bool:
        parent = node.parent
        if parent is None or self._tree.touches_directive(node.start, node.end):
            return False
        if node.kind in _STATEMENTS:
            return _is_switchable_statement(node)
        if node.kind not in _EXPRESSIONS:
            return False
        if parent.kind == "assignment_expression":
            return node.field_name == "right"
        if parent.kind == "cast_expression":
            return node.field_name == "value"
        if parent.kind == "for_statement":
            return node.field_name in ("condition", "update")
        if parent.kind == "init_declarator":
            return node.field_name == "value"
        if parent.kind == "conditional_expression" or parent.kind in _OPEN or parent.kind in _CLOSED:
            return node.field_name != "operator"
        return parent.kind == "pointer_expression" and parent.text.startswith("*")

    def _is_constant(self, above: Node, candidate: Node) -> bool:
        """Whether something inside `above` must be constant, or must not be split."""
        if above.kind in _CONSTANT:
            return True
        if above.kind == "case_statement":
            value = above.field("value")
            return value is not None and value.start <= candidate.start < value.end
        if above.kind == "call_expression":
            called = above.field("function")
            return called is not None and called.text in self._macros
        if above.kind == "if_statement" and any(c.text == "constexpr" for c in above.children):
            condition = above.field("condition")
            return condition is not None and condition.start <= candidate.start < condition.end
        if above.kind == "declaration":
            words = {
                c.text
                for c in above.children
                if c.kind in ("storage_class_specifier", "type_qualifier", "__shared__", "__constant__")
            }
            if words & {"constexpr", "static", "__constant__", "extern"}:
                return True
            return any(n.text in self._fixed for d in above.find("init_declarator") for n in d.children[:1])
        return above.kind == "sizeof_expression"

    def _fits(self, node: Node, text: str) -> bool:
        if node.kind in _STATEMENTS:
            return _stands_as_statements(node, text)
        inner = _as_expression(text)
        if (
            inner is None
            or inner.kind == "comma_expression"
            or ("[" in text and "]" in text and inner.find("lambda_expression"))
        ):
            return False
        parent = node.parent
        assert parent is not None
        least = 3 if parent.kind == "assignment_expression" else _strength(node)
        if parent.kind not in _CLOSED and _strength(inner) < least:
            return False
        return not (self._contracts and _in_sum(node) and (self._is_product(inner) or self._is_product(node)))

    def _is_product(self, node: Node) -> bool:
        while node.kind == "parenthesized_expression" or (
            node.kind == "unary_expression" and node.text.startswith("-")
        ):
            node = node.named_children[-1]
        if node.kind == "call_expression":
            called = node.field("function")
            return called is not None and called.text in self._macros
        return (node.kind == "binary_expression" and _operator(node) == "*") or (
            node.kind == "identifier" and node.text in self._macros
        )


def _names_in_constants(tree: Tree) -> frozenset[str]:
    """Names that stand where only constants may, directly or by way of an initialiser."""
    places = [
        n
        for n in tree.nodes
        if n.kind in ("template_argument_list", "array_declarator", "static_assert_declaration", "enumerator")
    ]
    places += [v for n in tree.find("case_statement") if (v := n.field("value")) is not None]
    names = {n.text for place in places for n in place.find("identifier", "type_identifier")}
    for start, end in tree.directives:
        line = tree.data[start:end].decode(errors="replace")
        if "pragma" in line:
            names.update(re.findall(r"[A-Za-z_]\w*", line))
    declared = [(d.children[0].text, d) for d in tree.find("init_declarator") if d.children]
    while True:
        more = {n.text for name, d in declared if name in names for n in d.find("identifier")} - names
        if not more:
            return frozenset(names)
        names |= more


def _is_body(node: Node) -> bool:
    return node.kind == "compound_statement" and node.parent is not None and node.parent.kind == "function_definition"


def _is_switchable_statement(node: Node) -> bool:
    parent = node.parent
    assert parent is not None
    if parent.kind == "lambda_expression":
        return False
    before = parent.children[: next(k for k, c in enumerate(parent.children) if c is node)]
    if before and before[-1].kind.startswith("preproc"):
        return False  # a pragma belongs to the loop that follows it
    if node.find("case_statement", "labeled_statement") and node.kind != "switch_statement":
        return False
    if node.kind == "compound_statement" and node.end - node.start > _LONGEST_BLOCK:
        return False
    return not any("__shared__" in d.text for d in node.find("declaration"))


def _replaced(node: Node, edits: Sequence[Edit]) -> str:
    shifted = [Edit(e.start - node.start, e.end - node.start, e.replacement) for e in edits]
    return apply_edits(node.text, shifted)


def _outermost(nodes: Sequence[Node], edits: Sequence[Edit]) -> list[tuple[Node, list[Edit]]]:
    """Nodes that no other one holds, each with the edits inside it."""
    groups: list[tuple[Node, list[Edit]]] = []
    for node in sorted(set(nodes), key=lambda n: (n.start, -n.end)):
        if not any(g.start <= node.start and node.end <= g.end for g, _ in groups):
            groups.append((node, [e for e in edits if node.start <= e.start and e.end <= node.end]))
    return groups


def _as_expression(text: str) -> Node | None:
    """The expression that `text` is, or None."""
    tree = Tree(f"__global__ void f() {{ ({text}); }}")
    if tree.errors:
        return None
    body = tree.find("compound_statement")
    statements = body[0].named_children if body else []
    if len(statements) != 1 or statements[0].kind != "expression_statement":
        return None
    outer = statements[0].named_children
    if len(outer) != 1 or outer[0].kind != "parenthesized_expression" or outer[0].end != statements[0].end - 1:
        return None
    inner = outer[0].named_children
    return inner[0] if len(inner) == 1 and inner[0].kind in _EXPRESSIONS else None


def _stands_as_statements(node: Node, text: str) -> bool:
    tree = Tree(f"__global__ void f() {{ {text}\n}}")
    body = tree.find("compound_statement")
    if tree.errors or not body or body[0].parent is not tree.functions[0] or len(tree.functions) != 1:
        return False
    inside = body[0].named_children
    if any(n.kind not in _STATEMENTS or not _splittable(n) for n in inside):
        return False
    parent = node.parent
    assert parent is not None
    if parent.kind == "if_statement" and parent.field("alternative") is not None and node.field_name == "consequence":
        return bool(inside) and inside[-1].kind in ("compound_statement", "expression_statement")
    in_block = parent.kind in ("compound_statement", "case_statement")
    return in_block or len(inside) == 1


def _splittable(node: Node) -> bool:
    return not node.find("labeled_statement", "goto_statement") and not any(
        "__shared__" in d.text for d in node.find("declaration")
    )


def _operator(node: Node) -> str:
    operator = node.field("operator")
    return operator.text if operator is not None else ""


def _strength(node: Node) -> int:
    if node.kind == "binary_expression":
        return _BINARY_STRENGTH.get(_operator(node), 0)
    return _KIND_STRENGTH.get(node.kind, 20)


def _in_sum(node: Node) -> bool:
    """Whether the value of `node` is added to something in the same expression."""
    parent = node.parent
    while parent is not None and (
        parent.kind == "parenthesized_expression" or (parent.kind == "unary_expression" and parent.text.startswith("-"))
    ):
        node, parent = parent, parent.parent
    if parent is None:
        return False
    if parent.kind == "assignment_expression":
        return node.field_name == "right" and _operator(parent) in ("+=", "-=")
    return parent.kind == "binary_expression" and _operator(parent) in ("+", "-")
