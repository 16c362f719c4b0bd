"""CUDA C++ text as a tree with exact spans, independent of the parser behind it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from truekernel.errors import SourceError
from truekernel.source.masking import masked

if TYPE_CHECKING:
    import tree_sitter

_OPAQUE = frozenset(
    {
        "comment",
        "string_literal",
        "raw_string_literal",
        "char_literal",
        "system_lib_string",
        "preproc_arg",
        "user_defined_literal",
    }
)
_FIXED = frozenset(
    {
        "template_argument_list",
        "template_parameter_list",
        "static_assert_declaration",
        "alignas_qualifier",
        "sizeof_expression",
    }
)
_DIRECTIVE = re.compile(rb"^[ \t]*#(?:[^\n\\]|\\\r?\n|\\[^\n])*", re.MULTILINE)
_LOST = 0.5


class Node:
    """A node of a `Tree`.

    `kind`: the grammar's name ("binary_expression", "call_expression", "for_statement", "identifier"; operators and punctuation
    are nodes whose kind is their text: "+", "&&", "("). `start`, `end`: byte span in the UTF-8 text. `named`: False for operators,
    keywords and punctuation. `field_name`: the role in its parent ("left", "operator", "right", "condition", "body", ...).
    """

    __slots__ = ("children", "end", "field_name", "kind", "named", "parent", "start", "tree")

    def __init__(
        self, tree: Tree, kind: str, start: int, end: int, named: bool, parent: Node | None, field_name: str | None
    ) -> None:
        self.tree = tree
        self.kind = kind
        self.start = start
        self.end = end
        self.named = named
        self.parent = parent
        self.field_name = field_name
        self.children: list[Node] = []

    def __repr__(self) -> str:
        return f"<{self.kind} {self.line}:{self.column} {self.text[:40]!r}>"

    @property
    def text(self) -> str:
        """The node's own text, from the source as written (never from the parser's masked copy)."""
        return self.tree.data[self.start : self.end].decode()

    @property
    def line(self) -> int:
        """1-based line of the start."""
        return self.tree.position(self.start)[0]

    @property
    def column(self) -> int:
        """1-based column of the start, in characters."""
        return self.tree.position(self.start)[1]

    @property
    def named_children(self) -> list[Node]:
        """Children without operators, punctuation, keywords and comments."""
        return [child for child in self.children if child.named and child.kind != "comment"]

    def field(self, name: str) -> Node | None:
        """The first child in the role `name`, or None."""
        return next((child for child in self.children if child.field_name == name), None)

    def child(self, *kinds: str) -> Node | None:
        """The first child of one of `kinds`, or None."""
        return next((child for child in self.children if child.kind in kinds), None)

    def walk(self) -> Iterator[Node]:
        """This node and everything below it, in the order of the text."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def find(self, *kinds: str) -> list[Node]:
        """The nodes of `kinds` in this subtree (itself included), in the order of the text; all nodes without `kinds`."""
        return [node for node in self.walk() if not kinds or node.kind in kinds]

    @property
    def ancestors(self) -> Iterator[Node]:
        """Parent, grandparent, ... up to the root."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def enclosing(self, *kinds: str) -> Node | None:
        """The nearest ancestor of one of `kinds`, or None."""
        return next((node for node in self.ancestors if node.kind in kinds), None)

    @property
    def function(self) -> Node | None:
        """The `function_definition` around this node (a lambda counts as part of the function that holds it), or None."""
        return next((node for node in self.ancestors if node.kind == "function_definition"), None)

    @property
    def statement(self) -> Node | None:
        """The nearest statement or declaration that is this node or holds it, or None."""
        node: Node | None = self
        while node is not None:
            if node.kind == "declaration" or node.kind.endswith("_statement"):
                return node
            node = node.parent
        return None

    @property
    def in_device_code(self) -> bool:
        """Whether this node lies in a `__global__` or `__device__` function: its signature, attributes and body."""
        return any(is_device_function(node) for node in self.ancestors if node.kind == "function_definition")


class Tree:
    """A parsed CUDA source. `text` and `data` (its UTF-8 bytes) are the source as written; `path` names it in errors.
    `errors`: the nodes where the grammar lost its way (kind "ERROR", or "MISSING" for a token that it had to invent).
    `answers`: what others found out about this tree and want to ask only once."""

    def __init__(self, text: str, path: str = "<text>") -> None:
        self.text = text
        self.path = path
        self.data = text.encode()
        self.answers: dict[str, Any] = {}
        self._lines = [0, *(match.end() for match in re.finditer(rb"\n", self.data))]
        self.root, self.errors = _convert(self, _parser().parse(masked(self.data)))

    def position(self, offset: int) -> tuple[int, int]:
        """1-based line and column (in characters) of a byte offset."""
        line = bisect_right(self._lines, offset)
        start = self._lines[line - 1]
        return line, len(self.data[start:offset].decode(errors="replace")) + 1

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, in the order of the text."""
        return tuple(self.root.walk())

    def find(self, *kinds: str) -> list[Node]:
        """All nodes of `kinds`, host code included, in the order of the text."""
        return [node for node in self.nodes if node.kind in kinds]

    @cached_property
    def functions(self) -> tuple[Node, ...]:
        """All function definitions."""
        return tuple(self.find("function_definition"))

    @cached_property
    def device_functions(self) -> tuple[Node, ...]:
        """Definitions of `__global__` and `__device__` functions (also `__host__ __device__`)."""
        return tuple(node for node in self.functions if is_device_function(node))

    @cached_property
    def _device(self) -> dict[str, list[Node]]:
        by_kind: dict[str, list[Node]] = {}
        roots = [function.field("body") for function in self.device_functions]
        seen: set[int] = set()
        stack = [root for root in reversed(roots) if root is not None]
        stack[:0] = reversed(_constants(self))
        while stack:
            node = stack.pop()
            if node.kind in _OPAQUE or node.kind in _FIXED or node.kind == "ERROR" or id(node) in seen:
                continue
            if node.parent is not None and node.parent.kind == "array_declarator" and node.field_name == "size":
                continue
            seen.add(id(node))
            if not self.touches_directive(node.start, node.end) or node.children:
                by_kind.setdefault(node.kind, []).append(node)
            stack.extend(reversed(node.children))
        for nodes in by_kind.values():
            nodes.sort(key=lambda node: (node.start, -node.end))
        return by_kind

    def device(self, *kinds: str) -> list[Node]:
        """The nodes of `kinds` that a rewrite of device code may touch, in the order of the text.

        They lie in bodies of device functions, or are initialisers of namespace-scope constants that device code names; not in
        comments, strings, directives, template arguments, array extents, `static_assert`, `sizeof`, or places that did not parse.
        """
        if len(kinds) == 1:
            return list(self._device.get(kinds[0], ()))
        found = [node for kind in kinds for node in self._device.get(kind, ())]
        return sorted(found, key=lambda node: (node.start, -node.end))

    @cached_property
    def directives(self) -> tuple[tuple[int, int], ...]:
        """Byte spans of preprocessor directives, continuation lines included."""
        opaque = [(n.start, n.end) for n in self.nodes if n.kind in _OPAQUE and n.kind != "preproc_arg"]
        spans = []
        for match in _DIRECTIVE.finditer(self.data):
            sharp = self.data.index(b"#", match.start())
            if not any(start < sharp < end for start, end in opaque):
                spans.append((match.start(), match.end()))
        return tuple(spans)

    def touches_directive(self, start: int, end: int) -> bool:
        """Whether bytes [start, end) touch a preprocessor directive."""
        return _touches(self.directives, start, end)

    @cached_property
    def protected(self) -> tuple[tuple[int, int], ...]:
        """Byte spans that no rewrite may touch: comments, strings (inline assembly apart), directives, and what did not parse."""
        spans = [(n.start, n.end) for n in self.nodes if n.kind == "comment" or (n.kind in _OPAQUE and not _in_asm(n))]
        spans += [(n.start, max(n.end, n.start + 1)) for n in self.errors]
        return tuple(sorted([*spans, *self.directives]))

    def may_edit(self, start: int, end: int) -> bool:
        """Whether bytes [start, end) are free of everything that `protected` lists."""
        return not _touches(self.protected, start, end)

    @property
    def skipped_bytes(self) -> int:
        """Number of bytes that did not parse and are therefore left alone."""
        spans = sorted((node.start, node.end) for node in self.errors)
        total = reach = 0
        for start, end in spans:
            total += max(0, end - max(start, reach))
            reach = max(reach, end)
        return total


def parse_cuda(text: str, path: str = "<text>") -> Tree:
    """Parse CUDA C++ text.

    Attributes that the grammar can't read are blanked in the parser's copy only, so spans are those of `text`. Small local errors are
    kept in `Tree.errors`. Raises SourceError (file, line, column) when the text is not CUDA at all: no function parses, or
    more than half of it lies in errors.
    """
    tree = Tree(text, path)
    solid = len(tree.data.split()) and sum(len(word) for word in tree.data.split())
    first = tree.errors[0] if tree.errors else None
    whole = [n for n in tree.functions if n.enclosing("ERROR") is None]
    if not whole or (solid and tree.skipped_bytes > _LOST * solid):
        line, column = (first.line, first.column) if first else (1, 1)
        why = "this does not parse as CUDA C++" if first else "no function found: this is not a CUDA source"
        raise SourceError(path, line, column, why)
    return tree


def has_errors(text: str) -> bool:
    """Whether the grammar finds anything wrong in `text`; cheaper than `parse_cuda`."""
    return bool(_parser().parse(masked(text.encode())).root_node.has_error)


def is_device_function(node: Node) -> bool:
    """Whether a `function_definition` is marked `__global__` or `__device__`."""
    head = node.field("body") or node
    return any(
        child.kind in ("__global__", "__device__") or child.text in ("__global__", "__device__")
        for child in node.children
        if child.start < head.start or head is node
    )


def function_name(node: Node) -> str:
    """Name of a `function_definition` ("" when it has none)."""
    declarator = node.field("declarator")
    while declarator is not None and declarator.kind not in ("identifier", "field_identifier", "qualified_identifier"):
        inner = declarator.field("declarator") or declarator.child("function_declarator", "identifier", "operator_name")
        if inner is None or inner.kind == "operator_name":
            return inner.text if inner else ""
        declarator = inner
    return declarator.text if declarator is not None else ""


def _constants(tree: Tree) -> list[Node]:
    """Initialisers of namespace-scope variables that device code names."""
    used = {n.text for function in tree.device_functions for n in function.walk() if n.kind == "identifier"}
    found = []
    for declaration in tree.find("declaration"):
        if declaration.function is not None or declaration.enclosing("ERROR", "parameter_list"):
            continue
        for declarator in declaration.children:
            name = declarator.field("declarator") if declarator.kind == "init_declarator" else None
            value = declarator.field("value")
            if name is not None and value is not None and any(n.text in used for n in name.find("identifier")):
                found.append(value)
    return found


def _in_asm(node: Node) -> bool:
    return node.enclosing("gnu_asm_expression", "asm_statement") is not None


def _touches(spans: tuple[tuple[int, int], ...], start: int, end: int) -> bool:
    for low, high in spans:
        if low >= max(end, start + 1):
            return False
        if start < high and (end > low or (start == end and start > low)):
            return True
    return False


@lru_cache(maxsize=1)
def _parser() -> tree_sitter.Parser:
    import tree_sitter
    import tree_sitter_cuda

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))


def _convert(tree: Tree, parsed: Any) -> tuple[Node, tuple[Node, ...]]:
    """Copy the parser's tree into ours."""
    cursor = parsed.walk()
    errors: list[Node] = []

    def make(parent: Node | None) -> Node:
        theirs = cursor.node
        kind = "MISSING" if theirs.is_missing else theirs.type
        node = Node(tree, kind, theirs.start_byte, theirs.end_byte, theirs.is_named, parent, cursor.field_name)
        if parent is not None:
            parent.children.append(node)
        if kind in ("ERROR", "MISSING"):
            errors.append(node)
        return node

    root = node = make(None)
    while True:
        if cursor.goto_first_child():
            node = make(node)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return root, tuple(errors)
            assert node.parent is not None
            node = node.parent
        node = make(node.parent)
