"""Axis expressions of tensor shapes ("H - K + 1") evaluated for given axis lengths."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from truekernel.errors import BadInputError
from truekernel.model.problem import Axes

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Div: lambda a, b: a / b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: lambda a, b: a**b,
}
_CALLS: dict[str, Callable[..., Any]] = {"sqrt": math.sqrt, "min": min, "max": max}


def evaluate(expression: str | float, axes: Axes) -> float:
    """Value of an arithmetic expression over axis names: + - * / // % ** and sqrt, min, max.

    Raises BadInputError for an unknown name or any other syntax.
    """
    if not isinstance(expression, str):
        return expression
    return _value(_parse(expression), expression, axes)


def length(expression: str | int, axes: Axes) -> int:
    """One entry of a shape as a number of elements, 0 or more."""
    value = evaluate(expression, axes)
    if value != int(value) or value < 0:
        raise BadInputError(
            f"shape entry '{expression}' is {value} for axes {dict(axes)}: lengths are whole and not negative"
        )
    return int(value)


def shape(entries: Iterable[str | int], axes: Axes) -> tuple[int, ...]:
    """A tensor's shape for given axis lengths."""
    return tuple(length(entry, axes) for entry in entries)


@lru_cache(maxsize=1024)
def _parse(expression: str) -> ast.expr:
    try:
        return ast.parse(expression, mode="eval").body
    except SyntaxError:
        raise BadInputError(f"'{expression}' is not an arithmetic expression over axis names") from None


def _value(node: ast.expr, expression: str, axes: Axes) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.Name) and node.id in axes:
        return axes[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](_value(node.left, expression, axes), _value(node.right, expression, axes))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, expression, axes)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS and not node.keywords:
        return _CALLS[node.func.id](*(_value(argument, expression, axes) for argument in node.args))
    raise BadInputError(f"'{expression}' uses something else than axes {sorted(axes)} and + - * / // % ** sqrt min max")
