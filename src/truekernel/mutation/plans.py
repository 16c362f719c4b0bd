"""Shapes of launch plans that rules look for: launches, their geometry and arguments, and where names come from."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from truekernel.source.python_ast import PlanNode, PlanTree


@dataclass(frozen=True, slots=True)
class LaunchCall:
    """A call `run.launch(kernel, grid, block, args, shared=...)`. `grid`, `block`, `args`: their elements, looked up where the call
    names a variable that holds a tuple; numbers stay as they are named here, so that an edit changes this use alone. `statement`: the expression statement, where the call is one."""

    call: PlanNode
    statement: PlanNode | None
    kernel: PlanNode
    grid: list[PlanNode]
    block: list[PlanNode]
    args: list[PlanNode]
    shared: PlanNode | None


def launch_calls(plan: PlanTree) -> list[LaunchCall]:
    """All launches of a plan, in the order of the text; calls that lack an argument are left out."""
    found = []
    for call in plan.calls("launch"):
        given = [call.argument(place, name) for place, name in enumerate(("kernel", "grid", "block", "args"))]
        kernel, grid, block, args = given
        if kernel is None or grid is None or block is None or args is None:
            continue
        parent = call.parent
        statement = parent if parent is not None and isinstance(parent.syntax, ast.Expr) else None
        axes, threads, handed = (_listed(plan, node) for node in (grid, block, args))
        found.append(LaunchCall(call, statement, kernel, axes, threads, handed, call.argument(4, "shared")))
    return found


def _listed(plan: PlanTree, node: PlanNode) -> list[PlanNode]:
    """Elements of a tuple that is written here or held by a variable; any other expression alone, as it stands here."""
    whole = resolved(plan, node)
    return whole.elements if isinstance(whole.syntax, ast.Tuple | ast.List) else [node]


def resolved(plan: PlanTree, node: PlanNode) -> PlanNode:
    """What a variable was assigned, when it is assigned once; otherwise `node`."""
    if isinstance(node.syntax, ast.Name):
        values = [
            assignment.syntax.value
            for assignment in plan.find(ast.Assign)
            if isinstance(assignment.syntax, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == node.text for target in assignment.syntax.targets)
        ]
        if len(values) == 1:
            return plan.of(values[0])
    return node


def is_handle(plan: PlanTree, node: PlanNode) -> bool:
    """Whether an expression is a buffer: `inputs[name]`, what `run.empty` or `run.zeros` gave, or a part of one."""
    syntax = resolved(plan, node).syntax
    if isinstance(syntax, ast.Subscript):
        return isinstance(syntax.value, ast.Name) and syntax.value.id == "inputs"
    if isinstance(syntax, ast.Call) and isinstance(syntax.func, ast.Attribute):
        owner = syntax.func.value
        if isinstance(owner, ast.Name) and owner.id == "run":
            return syntax.func.attr in ("empty", "zeros")
        return syntax.func.attr == "offset"
    return False


def is_real(plan: PlanTree, node: PlanNode) -> bool:
    """Whether a scalar argument is a real number: a literal with a point, or the result of a true division."""
    syntax = resolved(plan, node).syntax
    if isinstance(syntax, ast.UnaryOp):
        syntax = syntax.operand
    if isinstance(syntax, ast.Constant):
        return isinstance(syntax.value, float)
    return any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div) for part in ast.walk(syntax))


def strides(node: PlanNode) -> bool:
    """Whether an axis of a grid has an upper limit (`min(..., 1024)`): the kernel then strides over the grid and is right for any."""
    return any(
        isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "min"
        for part in ast.walk(resolved(node.plan, node).syntax)
    )


def integers(plan: PlanTree, launch: LaunchCall) -> list[PlanNode]:
    """Integer scalar arguments of a launch."""
    return [
        node
        for node in launch.args
        if not is_handle(plan, node) and not is_real(plan, node) and not isinstance(node.syntax, ast.Starred)
    ]


def reals(plan: PlanTree, launch: LaunchCall) -> list[PlanNode]:
    """Real scalar arguments of a launch."""
    return [node for node in launch.args if not is_handle(plan, node) and is_real(plan, node)]


def created(plan: PlanTree, *methods: str) -> list[tuple[str, PlanNode]]:
    """Variables that hold what `run.<method>(...)` gave: name and call."""
    found = []
    for method in methods:
        for call in plan.calls(method):
            parent = call.parent
            if (
                parent is not None
                and isinstance(parent.syntax, ast.Assign)
                and isinstance(parent.syntax.targets[0], ast.Name)
            ):
                found.append((parent.syntax.targets[0].id, call))
    return sorted(found, key=lambda item: item[1].start)


def returned_names(plan: PlanTree) -> set[str]:
    """Names in `return` statements: the outputs."""
    return {part.id for node in plan.find(ast.Return) for part in ast.walk(node.syntax) if isinstance(part, ast.Name)}


def rounded_up(node: PlanNode) -> tuple[PlanNode, PlanNode] | None:
    """Dividend and divisor of a quotient that is rounded up: `(n + b - 1) // b`, `(n + 31) // 32`, `-(-n // b)`; otherwise None."""
    syntax, plan = node.syntax, node.plan
    if isinstance(syntax, ast.UnaryOp) and isinstance(syntax.op, ast.USub):
        inner = syntax.operand
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.FloorDiv) and isinstance(inner.left, ast.UnaryOp):
            return plan.of(inner.left.operand), plan.of(inner.right)
        return None
    if (
        not isinstance(syntax, ast.BinOp)
        or not isinstance(syntax.op, ast.FloorDiv)
        or not isinstance(syntax.left, ast.BinOp)
    ):
        return None
    up, divisor = syntax.left, syntax.right
    if isinstance(up.op, ast.Sub) and _is_number(up.right, 1) and isinstance(up.left, ast.BinOp):
        if isinstance(up.left.op, ast.Add) and ast.dump(up.left.right) == ast.dump(divisor):
            return plan.of(up.left.left), plan.of(divisor)
        return None
    if isinstance(up.op, ast.Add) and isinstance(divisor, ast.Constant) and isinstance(divisor.value, int):
        return (plan.of(up.left), plan.of(divisor)) if _is_number(up.right, divisor.value - 1) else None
    return None


def _is_number(syntax: ast.expr, value: int) -> bool:
    return isinstance(syntax, ast.Constant) and syntax.value == value
