"""The small part of Python that launch plans are written in, with bounds on what one operation may cost.

Python can't be interrupted inside one operation, and `10**(10**9)` is one. So operators and built-in functions check the sizes of their
operands first. This keeps accidents and mutants from hanging an audit; it is no wall against attackers.
"""

from __future__ import annotations

import ast
import builtins
import math
import operator
import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from functools import lru_cache
from types import CodeType, FrameType, ModuleType
from typing import Any

from truekernel.errors import PlanError

FILE = "<launch plan>"
MOST_STEPS = 1_000_000
MOST_SECONDS = 20.0
"""Of processor time."""
MOST_ITEMS = 1_000_000
"""Entries of one sequence, and entries that built-in functions go through in all."""
MOST_BITS = 64
_BUILTINS = shlex.split(
    "abs bool dict float int isinstance len round str ArithmeticError AssertionError Exception KeyError TypeError ValueError True "
    "False None"
)
_CONSUMERS = shlex.split("all any divmod enumerate list map max min reversed set sorted tuple zip")
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.Mod: operator.mod,
}
_NO_METHODS = frozenset(
    shlex.split("center expandtabs extend format format_map join ljust replace rjust translate update zfill")
)
_FORMAT = re.compile(r"[^0-9]*(?:\d{1,3}(?:[,._]*\d{1,3})?)?\D*")
_OPERATE, _BOUND = "__operate", "__bound"


class Stopped(BaseException):
    """A plan went over its time or its steps; no `except` of the plan's own catches it."""


@lru_cache(maxsize=64)
def compiled(text: str) -> CodeType:
    """The plan's code, with bounds in it; a plan is executed for many shapes. Raises PlanError for what does not parse and for what plans can't use."""
    try:
        module = ast.parse(text, FILE)
        for node in ast.walk(module):
            why = _refused(node)
            if why:
                raise PlanError(f"launch plan, line {getattr(node, 'lineno', None)}: {why}")
        return compile(ast.fix_missing_locations(_Bounded().visit(module)), FILE, "exec")
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise PlanError(f"launch plan, line {line}: {getattr(error, 'msg', error)}") from None
    except (RecursionError, MemoryError):
        raise PlanError("launch plan: an expression is nested too deeply: write it in several steps") from None


def scope() -> dict[str, Any]:
    """The names that a plan sees at first."""
    budget = _Budget()
    allowed: dict[str, Any] = {name: getattr(builtins, name) for name in _BUILTINS}
    allowed |= {name: budget.charged(getattr(builtins, name)) for name in _CONSUMERS}
    types = {allowed[name]: getattr(builtins, name) for name in ("list", "tuple", "set")}
    allowed |= {
        "range": _range,
        "pow": lambda base, exponent: _operate("Pow", base, exponent),
        "sum": budget.charged(_sum),
        "isinstance": lambda value, kind: isinstance(value, _real(kind, types)),
        "__import__": _import,
    }
    return {"__builtins__": allowed, "__name__": "launch_plan", "math": math, _OPERATE: _operate, _BOUND: _bound}


class Watch:
    """Counts the plan's instructions as they run, so that a plan that never ends still ends."""

    def __init__(self) -> None:
        self._steps = 0
        self._end = time.process_time() + MOST_SECONDS

    def __call__(self, frame: FrameType, _event: str, _argument: object) -> Callable[..., Any] | None:
        """A trace function, see `sys.settrace`. Raises Stopped."""
        if frame.f_code.co_filename != FILE:
            return None
        frame.f_trace_opcodes = True
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise Stopped(f"does not end within {MOST_STEPS} steps")
        if not self._steps % 64 and time.process_time() > self._end:
            raise Stopped(f"does not end within {MOST_SECONDS:.0f} seconds")
        return self


def _refused(node: ast.AST) -> str:
    """Why a plan can't hold a node, or ""."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    if name.startswith("__") or (isinstance(node, ast.Attribute) and (name.startswith("_") or name in _NO_METHODS)):
        return f"'{name}' is not available in a launch plan"
    if isinstance(node, ast.ExceptHandler) and node.type is None:
        return "name the exceptions that 'except' takes"
    if isinstance(node, ast.Try | ast.TryStar) and node.finalbody:
        return "'finally' is not available in a launch plan"
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value.bit_length() > MOST_BITS:
        return f"a number has more than {MOST_BITS} bits"
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.slice, ast.Slice):
        return "assign to entries, not to slices"
    if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
        parts = node.format_spec.values if isinstance(node.format_spec, ast.JoinedStr) else []
        if not all(isinstance(part, ast.Constant) and _FORMAT.fullmatch(str(part.value)) for part in parts):
            return "widths in an f-string are constant, with at most three digits"
    return ""


class _Bounded(ast.NodeTransformer):
    """Puts a check around every operation whose result may be far larger than its operands."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _operation(node, node.op, node.left, node.right) if type(node.op) in _OPERATORS else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if type(node.op) not in _OPERATORS:
            return node
        loaded = ast.parse(ast.unparse(node.target), mode="eval").body
        for part in ast.walk(loaded):
            ast.copy_location(part, node)
        value = _operation(node, node.op, self.visit(loaded), node.value)
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        values: list[Any] = [
            self.generic_visit(value) if isinstance(value, ast.FormattedValue) else value for value in node.values
        ]
        return _call(node, _BOUND, [ast.copy_location(ast.JoinedStr(values), node)])

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        return ast.copy_location(ast.FormattedValue(self.visit(node.value), node.conversion, node.format_spec), node)

    def visit_List(self, node: ast.List) -> ast.AST:
        return self._display(node)

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        return self._display(node)

    def _display(self, node: ast.List | ast.Tuple) -> ast.AST:
        self.generic_visit(node)
        spread = isinstance(node.ctx, ast.Load) and any(isinstance(item, ast.Starred) for item in node.elts)
        return _call(node, _BOUND, [node]) if spread else node


def _operation(place: ast.AST, op: ast.operator, left: ast.expr, right: ast.expr) -> ast.expr:
    return _call(place, _OPERATE, [ast.Constant(type(op).__name__), left, right])


def _call(place: ast.AST, name: str, arguments: list[ast.expr]) -> ast.expr:
    return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), arguments, []), place)


def _operate(name: str, left: Any, right: Any) -> Any:
    """`left` and `right` joined by an operator, unless the result would be too large."""
    if isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length()
        too_large = (name == "Pow" and right > 0 and bits > 1 and (bits - 1) * right > MOST_BITS) or (
            name == "LShift" and right > MOST_BITS
        )
        result = None if too_large else _BY_NAME[name](left, right)
        if too_large or (isinstance(result, int) and result.bit_length() > MOST_BITS):
            raise PlanError(f"a number has more than {MOST_BITS} bits")
        return result
    if name == "Mod" and isinstance(left, str | bytes):
        raise PlanError("'%' makes no text in a launch plan: use an f-string")
    if name == "Mult":
        for many, count in ((left, right), (right, left)):
            if isinstance(many, Sized) and isinstance(count, int) and len(many) * count > MOST_ITEMS:
                raise PlanError(f"a sequence has {len(many) * count} entries: the limit is {MOST_ITEMS}")
    return _bound(_BY_NAME[name](left, right))


def _bound(value: Any) -> Any:
    if isinstance(value, Sized) and len(value) > MOST_ITEMS:
        raise PlanError(f"a sequence has {len(value)} entries: the limit is {MOST_ITEMS}")
    return value


def _range(*bounds: int) -> range:
    found = range(*bounds)
    first, last, step = found.start, found.stop, found.step
    if max(0, (last - first + step - (1 if step > 0 else -1)) // step) > MOST_ITEMS:
        raise PlanError(f"{found}: the limit is {MOST_ITEMS} entries")
    return found


def _sum(values: Iterable[Any], start: float = 0) -> Any:
    if not isinstance(start, int | float):
        raise PlanError("sum() adds numbers")
    return sum(values, start)


class _Budget:
    """Counts the entries that built-in functions go through."""

    def __init__(self) -> None:
        self._left = MOST_ITEMS

    def charged(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, counting the entries of its arguments."""

        def call(*arguments: Any, **named: Any) -> Any:
            return function(*map(self._counted, arguments), **named)

        return call

    def _counted(self, value: Any) -> Any:
        if isinstance(value, Sized):
            self._spend(len(value))
        elif isinstance(value, Iterator):
            return self._counting(value)
        return value

    def _counting(self, values: Iterator[Any]) -> Iterator[Any]:
        for value in values:
            self._spend(1)
            yield value

    def _spend(self, entries: int) -> None:
        self._left -= entries
        if self._left < 0:
            raise PlanError(f"built-in functions go through more than {MOST_ITEMS} entries")


def _real(kind: Any, types: dict[Any, type]) -> Any:
    if isinstance(kind, tuple):
        return tuple(_real(one, types) for one in kind)
    return range if kind is _range else types.get(kind, kind)


def _import(name: str, *_: object, **__: object) -> ModuleType:
    if name == "math":
        return math
    if name == "__future__":
        import __future__

        return __future__
    raise PlanError(f"import of '{name}': a launch plan may import math only")


_BY_NAME = {kind.__name__: function for kind, function in _OPERATORS.items()}
