"""Rewrites of launch plans that keep a program's meaning: other block and grid sizes where the kernel is written for any."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.plans import LaunchCall, launch_calls, resolved, strides
from truekernel.mutation.rule import Example, rule
from truekernel.source.edits import replace
from truekernel.source.python_ast import PlanNode, PlanTree

_WHOLE = 'THREADS = 128\nrun.launch(f"k<{THREADS}>", rows, THREADS, (x, y))\n'


def _block_constants(plan: PlanTree) -> list[tuple[PlanNode, int]]:
    """Module constants that are the one-dimensional block of launches whose kernel takes them as a template argument: value and number.

    No other launch may use the constant as its block without telling its kernel.
    """
    found = []
    launches = launch_calls(plan)
    for assignment in plan.find(ast.Assign):
        syntax = assignment.syntax
        if not isinstance(syntax, ast.Assign) or assignment.parent is not None or len(syntax.targets) != 1:
            continue
        name, value = syntax.targets[0], syntax.value
        if not isinstance(name, ast.Name) or not isinstance(value, ast.Constant) or not isinstance(value.value, int):
            continue
        users = [launch for launch in launches if name.id in _names(launch)]
        if users and all(_told(launch, name.id) for launch in users):
            found.append((plan.of(value), value.value))
    return found


def _names(launch: LaunchCall) -> set[str]:
    parts = [*launch.block, launch.kernel]
    return {part.id for node in parts for part in ast.walk(node.syntax) if isinstance(part, ast.Name)}


def _told(launch: LaunchCall, name: str) -> bool:
    """Whether a launch's block is just this constant, and its kernel's first or only mention of it is a whole template argument."""
    alone = len(launch.block) == 1 and isinstance(launch.block[0].syntax, ast.Name)
    return alone and re.search(rf"[<,]\s*\{{{name}\}}\s*[,>]", launch.kernel.text) is not None


@rule(
    "block-constant-halved",
    "benign",
    source="meaning-preserving rewrite: a kernel that takes its block size as a template argument is written for any",
    file="py",
    examples=(
        Example(_WHOLE, _WHOLE.replace("= 128", "= 64")),
        Example('THREADS = 128\nrun.launch("k", rows, THREADS, (x, y))\n', None),
    ),
)
def block_constant_halved(plan: PlanTree) -> Iterator[Edit]:
    """Blocks have half as many threads, and the kernel knows (other roundings in sums)."""
    for value, number in _block_constants(plan):
        if number >= 64 and number % 64 == 0:
            yield replace(value, str(number // 2))


@rule(
    "block-constant-doubled",
    "benign",
    source="meaning-preserving rewrite: a kernel that takes its block size as a template argument is written for any",
    file="py",
    examples=(
        Example(_WHOLE, _WHOLE.replace("= 128", "= 256")),
        Example(_WHOLE.replace("128", "1024"), None),
    ),
)
def block_constant_doubled(plan: PlanTree) -> Iterator[Edit]:
    """Blocks have twice as many threads, and the kernel knows (other roundings in sums)."""
    for value, number in _block_constants(plan):
        if number % 32 == 0 and number <= 256:
            yield replace(value, str(2 * number))


@rule(
    "strided-grid-halved",
    "benign",
    source="meaning-preserving rewrite: a kernel whose grid has an upper limit strides over it, so it is right for any grid",
    file="py",
    examples=(
        Example(
            'run.launch("k", min(n // 64, 1024), 64, (x, y))',
            'run.launch("k", max(min(n // 64, 1024) // 2, 1), 64, (x, y))',
        ),
        Example('run.launch("k", n // 64, 64, (x, y))', None),
    ),
)
def strided_grid_halved(plan: PlanTree) -> Iterator[tuple[Edit, ...]]:
    """Grids with an upper limit have half as many blocks (other roundings in sums)."""
    edits = []
    for launch in launch_calls(plan):
        for axis in launch.grid:
            limited = resolved(plan, axis)
            syntax = limited.syntax
            if strides(axis) and isinstance(syntax, ast.Call) and ast.unparse(syntax.func) == "min":
                edits.append(replace(limited, f"max({limited.text} // 2, 1)"))
    if edits:
        yield tuple(dict.fromkeys(edits))
