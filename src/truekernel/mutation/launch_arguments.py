"""Faults of what the host hands over: buffers, scalars, order and number of launches."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.plans import created, integers, is_handle, launch_calls, reals, resolved, returned_names
from truekernel.mutation.rule import Example, rule
from truekernel.source.edits import insert_after, replace
from truekernel.source.python_ast import PlanNode, PlanTree

MUTGPU = "MUTGPU, ICST 2020"
_TWO = 'a = inputs["x"]\nt = run.empty((n,), "float32")\ny = run.empty((n,), "float32")\n'
_SUM = "y = run.zeros((n,), 'float32')\nrun.launch('k', n, 64, (x, y))"
_TWO += 'run.launch("first", n, 64, (a, t, n))\nrun.launch("second", n, 64, (t, y, n))\nreturned = y\n'


@rule(
    "zeros-to-empty",
    "launch",
    source="operator catalogue T15: a sum into memory that nobody has set to zero",
    file="py",
    examples=(
        Example('y = run.zeros((n,), "float32")', 'y = run.empty((n,), "float32")'),
        Example('y = run.empty((n,), "float32")', None),
    ),
)
def zeros_to_empty(plan: PlanTree) -> Iterator[Edit]:
    """A buffer that is accumulated into holds what was there before."""
    for call in plan.calls("zeros"):
        assert isinstance(call.syntax, ast.Call)
        name = plan.of(call.syntax.func)
        yield replace(name, "run.empty")


def _statements(plan: PlanTree) -> list[PlanNode]:
    """Launches that are statements, when a plan has several."""
    found = [launch.statement for launch in launch_calls(plan) if launch.statement is not None]
    return found if len(found) > 1 else []


@rule(
    "launch-dropped",
    "launch",
    source="operator catalogue Y18; a kernel of several is never launched",
    file="py",
    examples=(
        Example(
            _TWO,
            (
                _TWO.replace('run.launch("first", n, 64, (a, t, n))', "pass"),
                _TWO.replace('run.launch("second", n, 64, (t, y, n))', "pass"),
            ),
        ),
        Example('run.launch("k", n, 64, (x, y))', None),
    ),
)
def launch_dropped(plan: PlanTree) -> Iterator[Edit]:
    """One of several launches is missing."""
    for statement in _statements(plan):
        yield replace(statement, "pass")


@rule(
    "launches-swapped",
    "launch",
    source="operator catalogue Y18",
    file="py",
    examples=(
        Example(
            'run.launch("a", n, 64, (x, t))\nrun.launch("b", n, 64, (t, y))',
            'run.launch("b", n, 64, (t, y))\nrun.launch("a", n, 64, (x, t))',
        ),
        Example('run.launch("a", n, 64, (x, t))', None),
    ),
)
def launches_swapped(plan: PlanTree) -> Iterator[tuple[Edit, Edit]]:
    """Two launches that follow each other are made in the wrong order."""
    found = _statements(plan)
    for first, second in itertools.pairwise(found):
        if first.text != second.text:
            yield replace(first, second.text), replace(second, first.text)


@rule(
    "launch-repeated",
    "launch",
    source="operator catalogue S14, A22: sums and counters that start from the first launch's results",
    file="py",
    examples=(
        Example(_SUM, f"{_SUM}; run.launch('k', n, 64, (x, y))"),
        Example(_SUM.replace("zeros", "empty"), None),
    ),
)
def launch_repeated(plan: PlanTree) -> Iterator[Edit]:
    """A kernel that adds to what it finds, or counts up from it, is launched twice."""
    for launch in launch_calls(plan):
        summed = any(ast.unparse(resolved(plan, node).syntax).startswith("run.zeros(") for node in launch.args)
        if launch.statement is not None and summed:
            yield insert_after(launch.statement, f"; {launch.statement.text}")


@rule(
    "length-argument-minus-one",
    "launch",
    source=f"a stale length; alloc_decrement of {MUTGPU}",
    file="py",
    examples=(
        Example('run.launch("k", g, 64, (inputs["x"], n, 0.5))', 'run.launch("k", g, 64, (inputs["x"], n - 1, 0.5))'),
        Example('run.launch("k", g, 64, (inputs["x"], 0.5))', None),
    ),
)
def length_argument_minus_one(plan: PlanTree) -> Iterator[Edit]:
    """An integer argument (a length, a stride, a count) is one too small."""
    for launch in launch_calls(plan):
        for node in integers(plan, launch):
            yield replace(node, f"{node.text} - 1")


@rule(
    "length-argument-plus-one",
    "launch",
    source=f"a stale length; alloc_increment of {MUTGPU}",
    file="py",
    examples=(
        Example('run.launch("k", g, 64, (inputs["x"], n, 0.5))', 'run.launch("k", g, 64, (inputs["x"], n + 1, 0.5))'),
        Example('run.launch("k", g, 64, (inputs["x"],))', None),
    ),
)
def length_argument_plus_one(plan: PlanTree) -> Iterator[Edit]:
    """An integer argument (a length, a stride, a count) is one too large."""
    for launch in launch_calls(plan):
        for node in integers(plan, launch):
            yield replace(node, f"{node.text} + 1")


def _exchanged(nodes: list[PlanNode], all_arguments: list[PlanNode]) -> Iterator[tuple[Edit, Edit]]:
    """Neighbours among the arguments, exchanged."""
    for first, second in itertools.pairwise(nodes):
        if all_arguments.index(second) == all_arguments.index(first) + 1 and first.text != second.text:
            yield replace(first, second.text), replace(second, first.text)


@rule(
    "length-arguments-swapped",
    "launch",
    source="operator catalogue I04 on the host: invisible for square problems",
    file="py",
    examples=(
        Example('run.launch("k", g, 64, (inputs["x"], m, n))', 'run.launch("k", g, 64, (inputs["x"], n, m))'),
        Example('run.launch("k", g, 64, (inputs["x"], n, n))', None),
    ),
)
def length_arguments_swapped(plan: PlanTree) -> Iterator[tuple[Edit, Edit]]:
    """Two integer arguments that follow each other are exchanged."""
    for launch in launch_calls(plan):
        yield from _exchanged(integers(plan, launch), launch.args)


@rule(
    "buffers-swapped",
    "launch",
    source=f"alloc_swap of {MUTGPU}",
    file="py",
    examples=(
        Example(
            'run.launch("k", g, 64, (inputs["x"], inputs["w"], n))',
            'run.launch("k", g, 64, (inputs["w"], inputs["x"], n))',
        ),
        Example('run.launch("k", g, 64, (inputs["x"], n))', None),
    ),
)
def buffers_swapped(plan: PlanTree) -> Iterator[tuple[Edit, Edit]]:
    """Two buffers that follow each other in the argument list are exchanged."""
    for launch in launch_calls(plan):
        yield from _exchanged([node for node in launch.args if is_handle(plan, node)], launch.args)


@rule(
    "later-launch-reads-other-buffer",
    "launch",
    source="operator catalogue I22, Y18: a later kernel is given the first one's input instead of its result",
    file="py",
    examples=(
        Example(_TWO, _TWO.replace("64, (t, y, n)", "64, (a, y, n)")),
        Example('t = run.empty((n,), "float32")\nrun.launch("k", g, 64, (inputs["x"], t, n))', None),
    ),
)
def later_launch_reads_other_buffer(plan: PlanTree) -> Iterator[Edit]:
    """A later kernel reads the buffer that an earlier one read, not the one that it wrote."""
    launches = launch_calls(plan)
    for place, launch in enumerate(launches):
        for node in launch.args:
            if not is_handle(plan, node) or isinstance(resolved(plan, node).syntax, ast.Subscript):
                continue
            for earlier in launches[:place]:
                if node.text in {other.text for other in earlier.args} and earlier.args[0].text != node.text:
                    if is_handle(plan, earlier.args[0]):
                        yield replace(node, earlier.args[0].text)
                    break


@rule(
    "workspace-one-element-short",
    "launch",
    source=f"alloc_decrement of {MUTGPU}",
    file="py",
    examples=(
        Example(
            'def launch(run, inputs, axes):\n    t = run.empty((m, n), "float32")\n    return y\n',
            'def launch(run, inputs, axes):\n    t = run.empty((m, max(n - 1, 1)), "float32")\n    return y\n',
        ),
        Example('def launch(run, inputs, axes):\n    y = run.empty((m, n), "float32")\n    return y\n', None),
    ),
)
def workspace_one_element_short(plan: PlanTree) -> Iterator[Edit]:
    """A buffer for intermediate results lacks the last element of its last axis."""
    outputs = returned_names(plan)
    for name, call in created(plan, "empty", "zeros"):
        shape = call.argument(0, "shape")
        if name in outputs or shape is None or not isinstance(shape.syntax, ast.Tuple) or not shape.elements:
            continue
        last = shape.elements[-1]
        if last.text != "1":
            yield replace(last, f"max({last.text} - 1, 1)")


@rule(
    "scale-argument-dropped",
    "launch",
    source="operator catalogue M06, A05 on the host: attention without 1/sqrt(d), Sarkar, arXiv:2606.20128",
    file="py",
    examples=(
        Example(
            'run.launch("k", g, 64, (inputs["x"], n, 1.0 / d**0.5))', 'run.launch("k", g, 64, (inputs["x"], n, 1.0))'
        ),
        Example('run.launch("k", g, 64, (inputs["x"], n, 0.5))', None),
    ),
)
def scale_argument_dropped(plan: PlanTree) -> Iterator[Edit]:
    """A factor that the host computes (a mean's reciprocal count, attention's scale) is one."""
    for launch in launch_calls(plan):
        for node in reals(plan, launch):
            if isinstance(resolved(plan, node).syntax, ast.BinOp):
                yield replace(node, "1.0")


@rule(
    "epsilon-argument-dropped",
    "launch",
    source="operator catalogue M09 on the host",
    file="py",
    examples=(
        Example('run.launch("k", g, 64, (inputs["x"], n, 1e-5))', 'run.launch("k", g, 64, (inputs["x"], n, 0.0))'),
        Example('run.launch("k", g, 64, (inputs["x"], n, 0.5))', None),
    ),
)
def epsilon_argument_dropped(plan: PlanTree) -> Iterator[Edit]:
    """A small number that keeps a quotient finite is zero."""
    for launch in launch_calls(plan):
        yield from (replace(node, "0.0") for node in reals(plan, launch) if 0.0 < _value(plan, node) <= 1e-3)


@rule(
    "real-argument-off",
    "launch",
    source="operator catalogue A07, A08, M10 on the host",
    file="py",
    examples=(
        Example(
            'run.launch("k", g, 64, (inputs["x"], n, 1e-5))', 'run.launch("k", g, 64, (inputs["x"], n, 1e-5 * 10.0))'
        ),
        Example(
            'run.launch("k", g, 64, (inputs["x"], n, 0.5))', 'run.launch("k", g, 64, (inputs["x"], n, 0.5 * 1.001))'
        ),
        Example('run.launch("k", g, 64, (inputs["x"], n))', None),
    ),
)
def real_argument_off(plan: PlanTree) -> Iterator[Edit]:
    """A real argument is a thousandth too large, a small one (an epsilon) ten times."""
    for launch in launch_calls(plan):
        for node in reals(plan, launch):
            small = 0.0 < _value(plan, node) <= 1e-3
            operand = node.text if isinstance(node.syntax, ast.Constant | ast.Name) else f"({node.text})"
            yield replace(node, f"{operand} * {'10.0' if small else '1.001'}")


def _value(plan: PlanTree, node: PlanNode) -> float:
    """Value of a literal argument, 0 for others."""
    syntax = resolved(plan, node).syntax
    return float(syntax.value) if isinstance(syntax, ast.Constant) and isinstance(syntax.value, int | float) else 0.0
