"""`__launch_bounds__` of kernels: a GPU refuses a launch of more threads (CUDA programming guide, launch bounds)."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence

from truekernel.source.signatures import pieces

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BOUNDS = re.compile(r"\b__launch_bounds__\s*\(")
_DEFINED = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]+)|\bconst(?:expr)?\b[\w\s]*?\b(\w+)\s*=\s*([^;,]+)[;,]", re.MULTILINE
)
_TEMPLATE = re.compile(r"\btemplate\s*<(.*)>", re.DOTALL)
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


def launch_bounds(source: str, kernels: Sequence[str]) -> list[int]:
    """Greatest number of threads of a block for each kernel expression ("scale", "row_sum<float, 128>"), as far as numbers, macros, constants and template arguments tell it; 0 where they do not."""
    text = _COMMENT.sub(" ", source)
    if "__launch_bounds__" not in text:
        return [0] * len(kernels)
    constants = {m[1] or m[3]: (m[2] or m[4]).strip() for m in _DEFINED.finditer(text)}
    bounded: dict[str, tuple[str, list[str]]] = {}
    for match in _BOUNDS.finditer(text):
        first, end = _first_argument(text, match.end())
        if name := _NAME.search(text, end):
            bounded[name[1]] = first, _template_parameters(text[: match.start()])
    return [_bound(kernel, bounded, constants) for kernel in kernels]


def _bound(kernel: str, bounded: Mapping[str, tuple[str, list[str]]], constants: Mapping[str, str]) -> int:
    own, _, arguments = kernel.partition("<")
    expression, parameters = bounded.get(own.rpartition("::")[2].strip(), ("", []))
    given = pieces(arguments.rpartition(">")[0])
    known = dict(constants)
    for position, parameter in enumerate(parameters):
        declared, _, default = parameter.partition("=")
        if names := _IDENTIFIER.findall(declared):
            known[names[-1]] = given[position] if position < len(given) else default
    value = _value(expression, known)
    return value if value is not None and value > 0 else 0


def _template_parameters(before: str) -> list[str]:
    """Declarations of the parameters of the template that the declaration at the end of this text belongs to."""
    head = before[max(before.rfind(end) for end in ";}") + 1 :]
    match = _TEMPLATE.search(head)
    return pieces(match[1]) if match else []


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
