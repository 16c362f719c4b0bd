"""The text of a problem file: its whole-number constants, and the names that it defines when some of them are changed."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

WANTED = ("Model", "get_inputs", "get_init_inputs")


class NotAProblemError(Exception):
    """The file can't become a problem; the text says why in one line."""


def whole_constants(text: str) -> dict[str, int]:
    """Module-level constants that are written as whole numbers, by name: candidates for axes.

    `batch_size = 64`, `N = 2048 * 2`, and the entries of `input_shape = (64, 128)` as `input_shape_0` and `input_shape_1`. What is computed from other
    constants follows them and is not listed.
    """
    return {name: value for name, value, _ in _entries(ast.parse(text))}


def namespace(text: str, path: str | Path, lengths: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Execute the file with some constants set to other values; the names that it defines.

    Raises NotAProblemError when Model, get_inputs or get_init_inputs is missing, and whatever the file raises.
    """
    tree = _changed(text, str(path), lengths or {})
    module = types.ModuleType(f"kernelbench_{Path(path).stem}")
    module.__dict__["__file__"] = str(path)
    # Dataclasses and pickled classes look their module up by name.
    sys.modules[module.__name__] = module
    exec(compile(tree, str(path), "exec"), module.__dict__)
    missing = [name for name in WANTED if not callable(module.__dict__.get(name))]
    if missing:
        raise NotAProblemError(f"it defines no {' and no '.join(missing)}")
    return module.__dict__


def changed_text(text: str, lengths: Mapping[str, int]) -> str:
    """The file with some constants set to other values."""
    return ast.unparse(_changed(text, "<text>", lengths)) if lengths else text


def _changed(text: str, path: str, lengths: Mapping[str, int]) -> ast.Module:
    tree = ast.parse(text, path)
    for name, _, node in list(_entries(tree)):
        if name in lengths:
            _replace(tree, node, lengths[name])
    return tree


def _entries(tree: ast.Module) -> Iterator[tuple[str, int, ast.expr]]:
    """(name, value, expression) of each constant; the last assignment to a name stands for it."""
    found: dict[str, tuple[str, int, ast.expr]] = {}
    for statement in tree.body:
        for target, value in _assignments(statement):
            if isinstance(value, ast.Tuple | ast.List):
                parts = {f"{target}_{k}": part for k, part in enumerate(value.elts)}
            else:
                parts = {target: value}
            for name, part in parts.items():
                number = _whole(part)
                found.pop(name, None)
                if number is not None and number > 0:
                    found[name] = (name, number, part)
    yield from found.values()


def _assignments(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value is not None:
        yield statement.target.id, statement.value
    if not isinstance(statement, ast.Assign):
        return
    for target in statement.targets:
        if isinstance(target, ast.Name):
            yield target.id, statement.value
        elif isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            for one, value in zip(target.elts, statement.value.elts, strict=False):
                if isinstance(one, ast.Name):
                    yield one.id, value


def _whole(node: ast.expr) -> int | None:
    """Value of an expression of whole numbers alone."""
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _whole(left), _whole(right)
            if a is None or b is None:
                return None
            match op:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.FloorDiv() if b:
                    return a // b
                case ast.Pow() if 0 <= b <= 64:
                    return int(a**b)
                case ast.LShift() if 0 <= b <= 64:
                    return a << b
    return None


def _replace(tree: ast.Module, node: ast.expr, value: int) -> None:
    class Replacer(ast.NodeTransformer):
        def visit(self, visited: ast.AST) -> Any:
            if visited is node:
                return ast.copy_location(ast.Constant(value), node)
            return self.generic_visit(visited)

    Replacer().visit(tree)
