"""Faults of launch geometry: grid, block, dynamic shared memory, and template arguments that must agree with them."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.plans import launch_calls, resolved, rounded_up, strides
from truekernel.mutation.rule import Example, rule
from truekernel.source.edits import replace
from truekernel.source.python_ast import PlanNode, PlanTree

H15 = "operator catalogue H15"
H16 = "operator catalogue H16: block dimensions changed without the kernel's constant"


def _is_one(node: PlanNode) -> bool:
    return isinstance(node.syntax, ast.Constant) and node.syntax.value == 1


@rule(
    "grid-one-block-short",
    "launch",
    source=H15,
    file="py",
    examples=(
        Example(
            'run.launch("k", (m, n), 64, (x, y))',
            ('run.launch("k", (max(m - 1, 1), n), 64, (x, y))', 'run.launch("k", (m, max(n - 1, 1)), 64, (x, y))'),
        ),
        Example('run.launch("k", 1, 64, (x, y))', None),
    ),
)
def grid_one_block_short(plan: PlanTree) -> Iterator[Edit]:
    """The grid lacks its last block along an axis."""
    for launch in launch_calls(plan):
        for axis in launch.grid:
            if not _is_one(axis) and not strides(axis):
                yield replace(axis, f"max({axis.text} - 1, 1)")


@rule(
    "grid-one-block-too-many",
    "launch",
    source=H15,
    file="py",
    examples=(
        Example('run.launch("k", n // 64, 64, (x, y))', 'run.launch("k", n // 64 + 1, 64, (x, y))'),
        Example('run.launch("k", (n + 63) // 64, 64, (x, y))', None),
    ),
)
def grid_one_block_too_many(plan: PlanTree) -> Iterator[Edit]:
    """The grid has a block too many along an axis where each block has its own row, group or part (no guard expects it)."""
    for launch in launch_calls(plan):
        for axis in launch.grid:
            if rounded_up(resolved(plan, axis)) is None and not strides(axis):
                yield replace(axis, f"{axis.text} + 1")


@rule(
    "rounded-down-for-up",
    "launch",
    source="operator catalogue A21, B24",
    file="py",
    examples=(
        Example("grid = (n + BLOCK - 1) // BLOCK", "grid = max(n // BLOCK, 1)"),
        Example("grid = (4 * n + 31) // 32", "grid = max((4 * n) // 32, 1)"),
        Example("grid = min((n + BLOCK - 1) // BLOCK, 1024)", None),
    ),
)
def rounded_down_for_up(plan: PlanTree) -> Iterator[Edit]:
    """A number of blocks, tiles or parts is rounded down, so that the remainder is never computed."""
    for node in plan.find(ast.BinOp, ast.UnaryOp):
        sides = rounded_up(node)
        if sides is not None and not any(_is_minimum(ancestor) for ancestor in node.ancestors):
            dividend, divisor = (
                side.text if isinstance(side.syntax, ast.Name | ast.Constant) else f"({side.text})" for side in sides
            )
            yield replace(node, f"max({dividend} // {divisor}, 1)")


def _is_minimum(node: PlanNode) -> bool:
    return isinstance(node.syntax, ast.Call) and isinstance(node.syntax.func, ast.Name) and node.syntax.func.id == "min"


def _swapped(axes: list[PlanNode]) -> Iterator[tuple[Edit, Edit]]:
    for first, second in itertools.pairwise(axes):
        if first.text != second.text:
            yield replace(first, second.text), replace(second, first.text)


@rule(
    "grid-axes-swapped",
    "launch",
    source="operator catalogue I02, I04 on the host: invisible for square problems",
    file="py",
    examples=(
        Example('run.launch("k", (m, n), 64, (x, y))', 'run.launch("k", (n, m), 64, (x, y))'),
        Example('run.launch("k", (m, m), 64, (x, y))', None),
    ),
)
def grid_axes_swapped(plan: PlanTree) -> Iterator[tuple[Edit, Edit]]:
    """Two neighbouring axes of the grid are exchanged."""
    for launch in launch_calls(plan):
        yield from _swapped(launch.grid)


@rule(
    "block-axes-swapped",
    "launch",
    source="operator catalogue I02 on the host",
    file="py",
    examples=(
        Example('run.launch("k", n, (32, ROWS), (x, y))', 'run.launch("k", n, (ROWS, 32), (x, y))'),
        Example('run.launch("k", n, (16, 16), (x, y))', None),
    ),
)
def block_axes_swapped(plan: PlanTree) -> Iterator[tuple[Edit, Edit]]:
    """Two neighbouring axes of the block are exchanged."""
    for launch in launch_calls(plan):
        yield from _swapped(launch.block)


@rule(
    "grid-axis-collapsed",
    "launch",
    source="operator catalogue I09 on the host: invisible for a batch of one",
    file="py",
    examples=(
        Example('run.launch("k", (n, rows), 64, (x, y))', 'run.launch("k", (n, 1), 64, (x, y))'),
        Example('run.launch("k", n, 64, (x, y))', None),
    ),
)
def grid_axis_collapsed(plan: PlanTree) -> Iterator[Edit]:
    """An axis of the grid after the first (batch, rows, parts) has one block."""
    for launch in launch_calls(plan):
        for axis in launch.grid[1:]:
            if not _is_one(axis):
                yield replace(axis, "1")


@rule(
    "block-halved",
    "launch",
    source=H16,
    file="py",
    examples=(
        Example('run.launch("k", n, BLOCK, (x, y))', 'run.launch("k", n, max(BLOCK // 2, 1), (x, y))'),
        Example('run.empty((BLOCK,), "float32")', None),
    ),
)
def block_halved(plan: PlanTree) -> Iterator[Edit]:
    """A block has half as many threads along its first axis as grid and kernel expect."""
    for launch in launch_calls(plan):
        first = launch.block[0]
        yield replace(first, f"max({_factor(first)} // 2, 1)")


def _factor(node: PlanNode) -> str:
    return node.text if isinstance(node.syntax, ast.Name | ast.Constant) else f"({node.text})"


@rule(
    "block-of-one-warp",
    "launch",
    source=f"{H16}; lane = threadIdx.x holds for 32 threads only, known issue of tritllm-kernel",
    file="py",
    examples=(
        Example('run.launch("k", n, BLOCK, (x, y))', 'run.launch("k", n, 32, (x, y))'),
        Example('run.launch("k", n, (16, 16), (x, y))', None),
    ),
)
def block_of_one_warp(plan: PlanTree) -> Iterator[Edit]:
    """A one-dimensional block has 32 threads."""
    for launch in launch_calls(plan):
        if len(launch.block) == 1 and launch.block[0].text != "32":
            yield replace(launch.block[0], "32")


@rule(
    "shared-memory-halved",
    "launch",
    source="operator catalogue H12",
    file="py",
    examples=(
        Example('run.launch("k", n, 64, (x, y), shared=4 * n)', 'run.launch("k", n, 64, (x, y), shared=(4 * n) // 2)'),
        Example('run.launch("k", n, 64, (x, y))', None),
    ),
)
def shared_memory_halved(plan: PlanTree) -> Iterator[Edit]:
    """A launch asks for half of the dynamic shared memory that the kernel uses."""
    for launch in launch_calls(plan):
        if launch.shared is not None:
            yield replace(launch.shared, f"{_factor(launch.shared)} // 2")


@rule(
    "shared-memory-one-element-short",
    "launch",
    source="operator catalogue H12",
    file="py",
    examples=(
        Example(
            'run.launch("k", n, 64, (x, y), shared=4 * n)', 'run.launch("k", n, 64, (x, y), shared=max(4 * n - 4, 0))'
        ),
        Example('run.launch("k", n, 64, (x, y))', None),
    ),
)
def shared_memory_one_element_short(plan: PlanTree) -> Iterator[Edit]:
    """A launch asks for four bytes less dynamic shared memory than the kernel uses."""
    for launch in launch_calls(plan):
        if launch.shared is not None:
            yield replace(launch.shared, f"max({launch.shared.text} - 4, 0)")


@rule(
    "template-argument-halved",
    "launch",
    source=H16,
    file="py",
    examples=(
        Example(
            'run.launch(f"k<{TILE}, {BK}>", n, 64, (x, y))',
            (
                'run.launch(f"k<{(TILE) // 2}, {BK}>", n, 64, (x, y))',
                'run.launch(f"k<{TILE}, {(BK) // 2}>", n, 64, (x, y))',
            ),
        ),
        Example('run.launch("k<256>", n, 256, (x, y))', 'run.launch("k<128>", n, 256, (x, y))'),
        Example('run.launch("k", n, 64, (x, y))', None),
    ),
)
def template_argument_halved(plan: PlanTree) -> Iterator[Edit]:
    """A kernel is instantiated for half of the tile, block or depth that it is launched for."""
    for launch in launch_calls(plan):
        text, start = launch.kernel.text, launch.kernel.start
        for match in re.finditer(r"\{([^{}]+)\}|(?<=[<, ])(\d+)(?=\s*[,>])", text):
            if match[1] is not None:
                yield _within(text, start, match.span(1), f"({match[1]}) // 2")
            elif int(match[2]) > 1:
                yield _within(text, start, match.span(2), str(int(match[2]) // 2))


def _within(text: str, start: int, span: tuple[int, int], new: str) -> Edit:
    """An edit of characters [span) of `text`, which begins at byte `start`."""
    first = start + len(text[: span[0]].encode())
    return Edit(first, first + len(text[span[0] : span[1]].encode()), new)
