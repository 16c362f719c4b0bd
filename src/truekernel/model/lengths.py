"""Arithmetic expressions over axis lengths: shapes ("H - K + 1") and scales ("1/sqrt(K)")."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from truekernel.errors import BadInputError
from truekernel.model.problem import Axes

OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
FUNCTIONS: dict[str, Callable[..., float]] = {"sqrt": math.sqrt, "min": min, "max": max}


@lru_cache(maxsize=4096)
def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        raise BadInputError(f"expression '{text}' does not parse: write arithmetic over axis names") from None


def evaluate(text: str, axes: Axes) -> float:
    """Value of an expression of axis names, numbers, + - * / // %, parentheses, sqrt, min and max.

    Raises BadInputError for anything else, for an unknown axis and for a division by zero.
    """
    try:
        return _value(_parse(text), axes, text)
    except (ZeroDivisionError, ValueError) as error:
        raise BadInputError(f"expression '{text}' has no value at {dict(axes)}: {error}") from None


def _value(node: ast.expr, axes: Mapping[str, int], text: str) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name) if name in axes:
            return axes[name]
        case ast.Name(id=name):
            raise BadInputError(f"expression '{text}' names no axis '{name}': axes are {', '.join(sorted(axes))}")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, axes, text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left, axes, text), _value(right, axes, text))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_value(arg, axes, text) for arg in args))
        case _:
            raise BadInputError(
                f"expression '{text}' uses what is not allowed: only + - * / // %, sqrt, min, max and axes"
            )


def lengths(shape: Sequence[str | int], axes: Axes) -> tuple[int, ...]:
    """Lengths of a shape whose entries are numbers, axis names or expressions. Raises BadInputError when one is not a whole number >= 0."""
    result = []
    for entry in shape:
        value = evaluate(entry, axes) if isinstance(entry, str) else entry
        if value != int(value) or value < 0:
            raise BadInputError(f"'{entry}' is {value} at {dict(axes)}: an axis length must be a whole number >= 0")
        result.append(int(value))
    return tuple(result)
