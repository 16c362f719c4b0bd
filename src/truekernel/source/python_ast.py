"""Launch-plan text (Python) as a syntax tree with byte-exact spans."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from truekernel.errors import SourceError


class PlanNode:
    """A node of a `PlanTree`. `syntax`: the `ast` node; `start`, `end`: byte span in the UTF-8 text."""

    __slots__ = ("end", "parent", "plan", "start", "syntax")

    def __init__(self, plan: PlanTree, syntax: ast.expr | ast.stmt, parent: PlanNode | None) -> None:
        self.plan = plan
        self.syntax = syntax
        self.parent = parent
        self.start = plan.offset(syntax.lineno, syntax.col_offset)
        self.end = plan.offset(syntax.end_lineno or syntax.lineno, syntax.end_col_offset or syntax.col_offset)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.line}:{self.column} {self.text[:40]!r}>"

    @property
    def kind(self) -> str:
        """Class name of the `ast` node ("Call", "BinOp", ...)."""
        return type(self.syntax).__name__

    @property
    def text(self) -> str:
        """The node's own text."""
        return self.plan.data[self.start : self.end].decode()

    @property
    def line(self) -> int:
        """1-based line of the start."""
        return self.plan.position(self.start)[0]

    @property
    def column(self) -> int:
        """1-based column of the start, in characters."""
        return self.plan.position(self.start)[1]

    @property
    def ancestors(self) -> Iterator[PlanNode]:
        """Parent, grandparent, ... up to the statement at the top."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def argument(self, position: int, name: str) -> PlanNode | None:
        """The argument of this call given at `position` or by keyword `name`; None when it is left to its default."""
        assert isinstance(self.syntax, ast.Call)
        for keyword in self.syntax.keywords:
            if keyword.arg == name:
                return self.plan.of(keyword.value)
        return self.plan.of(self.syntax.args[position]) if position < len(self.syntax.args) else None

    @property
    def elements(self) -> list[PlanNode]:
        """Elements of a tuple or list; otherwise the node alone (a one-dimensional grid is an int or a tuple)."""
        if isinstance(self.syntax, ast.Tuple | ast.List):
            return [self.plan.of(item) for item in self.syntax.elts]
        return [self]


class PlanTree:
    """A parsed launch plan. `text` and `data` (its UTF-8 bytes) are the plan as written."""

    def __init__(self, text: str, path: str = "<plan>") -> None:
        self.text = text
        self.path = path
        self.data = text.encode()
        self._lines = [0, *(match.end() for match in re.finditer(rb"\r\n|\r|\n", self.data))]
        try:
            self.module = ast.parse(text)
        except SyntaxError as error:
            raise SourceError(path, error.lineno or 1, error.offset or 1, error.msg) from None
        except ValueError as error:
            raise SourceError(path, 1, 1, str(error)) from None

    def offset(self, line: int, column: int) -> int:
        """Byte offset of a 1-based line and a 0-based column in bytes, as `ast` gives them."""
        return self._lines[line - 1] + column

    def position(self, offset: int) -> tuple[int, int]:
        """1-based line and column (in characters) of a byte offset."""
        line = sum(start <= offset for start in self._lines)
        return line, len(self.data[self._lines[line - 1] : offset].decode(errors="replace")) + 1

    @cached_property
    def nodes(self) -> tuple[PlanNode, ...]:
        """All statements and expressions, in the order of the text."""
        found: list[PlanNode] = []

        def visit(syntax: ast.AST, parent: PlanNode | None) -> None:
            if isinstance(syntax, ast.expr | ast.stmt):
                parent = PlanNode(self, syntax, parent)
                found.append(parent)
            for child in ast.iter_child_nodes(syntax):
                visit(child, parent)

        visit(self.module, None)
        return tuple(sorted(found, key=lambda node: (node.start, -node.end)))

    @cached_property
    def _by_syntax(self) -> dict[ast.AST, PlanNode]:
        return {node.syntax: node for node in self.nodes}

    def of(self, syntax: ast.expr | ast.stmt) -> PlanNode:
        """The node of an `ast` node of this tree."""
        return self._by_syntax[syntax]

    def find(self, *kinds: type[ast.AST]) -> list[PlanNode]:
        """All nodes of the `ast` classes `kinds`."""
        return [node for node in self.nodes if isinstance(node.syntax, kinds)]

    def calls(self, method: str, receiver: str = "run") -> list[PlanNode]:
        """Calls of `receiver.method(...)`, such as `run.launch(...)`."""
        return [
            node
            for node in self.find(ast.Call)
            if isinstance(node.syntax, ast.Call)
            and isinstance(node.syntax.func, ast.Attribute)
            and node.syntax.func.attr == method
            and isinstance(node.syntax.func.value, ast.Name)
            and node.syntax.func.value.id == receiver
        ]

    def body(self, function: str = "launch") -> list[PlanNode]:
        """All nodes inside the function of that name, itself excluded."""
        return [
            node
            for node in self.nodes
            if any(isinstance(a.syntax, ast.FunctionDef) and a.syntax.name == function for a in node.ancestors)
        ]


def parse_plan(text: str, path: str = "<plan>") -> PlanTree:
    """Parse a launch plan. Raises SourceError with line and column when it is not Python."""
    return PlanTree(text, path)
