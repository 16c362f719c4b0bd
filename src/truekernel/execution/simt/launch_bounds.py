"""`__launch_bounds__` of kernels: a GPU refuses a launch of more threads (CUDA programming guide, launch bounds)."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BOUNDS = re.compile(r"\b__launch_bounds__\s*\(")
_DEFINED = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]+)|\bconst(?:expr)?\b[\w\s]*?\b(\w+)\s*=\s*([^;,]+)[;,]", re.MULTILINE
)
_NAME = re.compile(r"\b(\w+)\s*\(")
_IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*")
_NESTED = 16
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}


def launch_bounds(source: str) -> dict[str, int]:
    """Greatest number of threads of a block by kernel, as far as numbers, macros and constants tell it; what depends on a template's parameter is left out."""
    text = _COMMENT.sub(" ", source)
    if "__launch_bounds__" not in text:
        return {}
    constants = {m[1] or m[3]: (m[2] or m[4]).strip() for m in _DEFINED.finditer(text)}
    found: dict[str, int] = {}
    for match in _BOUNDS.finditer(text):
        first, end = _first_argument(text, match.end())
        name = _NAME.search(text, end)
        value = _value(first, constants)
        if name and value is not None and value > 0:
            found[name[1]] = value
    return found


def _first_argument(text: str, start: int) -> tuple[str, int]:
    """The argument that starts at `start`, and where the list ends."""
    depth, comma = 1, None
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if text[place] == "," and depth == 1 and comma is None:
            comma = place
        if depth == 0:
            return text[start : place if comma is None else comma], place + 1
    return "", len(text)


def _value(expression: str, constants: Mapping[str, str]) -> int | None:
    for _ in range(_NESTED):
        expression, replaced = _IDENTIFIER.subn(lambda m: f"({constants.get(m[0], '?')})", expression)
        if not replaced:
            break
    try:
        return _evaluated(ast.parse(expression.replace("/", "//").strip(), mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError):
        return None


def _evaluated(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluated(node.left), _evaluated(node.right))
    raise ValueError(ast.dump(node))
