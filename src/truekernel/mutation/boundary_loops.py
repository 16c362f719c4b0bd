"""Boundary faults of loops: where they start and end, what they start with, how many tiles there are."""

from __future__ import annotations

import re
from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.patterns import (
    Loop,
    index_binaries,
    is_index,
    is_infinite,
    is_value,
    loops,
    number,
    shuffles,
    token,
)
from truekernel.mutation.rule import Example, rule
from truekernel.source.edits import insert_after, remove_statement, replace
from truekernel.source.query import arguments, bare, callee, mentions, operands, operator, same
from truekernel.source.tree import Node, Tree

_REMAINDER = re.compile(r"\* ?4\b|& ?~ ?[137]|tail|rem|left|done|[vn]4|vec|aligned|quad|packed|wide", re.IGNORECASE)


def _upward(tree: Tree) -> Iterator[Loop]:
    return (loop for loop in loops(tree) if loop.upward and not shuffles(loop.node))


@rule(
    "loop-runs-once-more",
    "boundary",
    source="conditional boundary operator of MUTGPU, ICST 2020; operator catalogue B01, B09",
    examples=(
        Example("for (int i = 0; i < n; ++i) y[i] = x[i];", "for (int i = 0; i <= n; ++i) y[i] = x[i];"),
        Example("if (n < m) y[0] = x[0];", None),
    ),
)
def loop_runs_once_more(tree: Tree) -> Iterator[Edit]:
    """A loop goes on to its bound instead of ending before it."""
    for loop in _upward(tree):
        if operator(loop.condition) == "<":
            yield replace(token(loop.condition), "<=")


@rule(
    "loop-ends-early",
    "boundary",
    source="operator catalogue B07, B08 (the last element or tile is skipped)",
    examples=(
        Example("for (int i = 0; i < n; ++i) y[i] = x[i];", "for (int i = 0; i < n - 1; ++i) y[i] = x[i];"),
        Example("for (int i = 0; i <= n; ++i) y[i] = x[i];", "for (int i = 0; i < n; ++i) y[i] = x[i];"),
        Example("if (n < m) y[0] = x[0];", None),
    ),
)
def loop_ends_early(tree: Tree) -> Iterator[Edit]:
    """A loop leaves out its last element."""
    for loop in _upward(tree):
        if operator(loop.condition) == "<=":
            yield replace(token(loop.condition), "<")
        elif operator(loop.condition) == "<":
            yield insert_after(loop.bound, " - 1")


@rule(
    "loop-starts-late",
    "boundary",
    source="operator catalogue B06",
    examples=(
        Example("for (int i = 0; i < n; ++i) y[i] = x[i];", "for (int i = 1; i < n; ++i) y[i] = x[i];"),
        Example(
            "for (int i = threadIdx.x; i < n; i += 32) y[i] = x[i];",
            "for (int i = threadIdx.x + 1; i < n; i += 32) y[i] = x[i];",
        ),
        Example("if (n < m) y[0] = x[0];", None),
    ),
)
def loop_starts_late(tree: Tree) -> Iterator[Edit]:
    """A loop leaves out its first element."""
    for loop in _upward(tree):
        value = number(loop.start)
        if value is not None and loop.start.text.isdigit():
            yield replace(loop.start, str(int(value) + 1))
        elif value is None and is_index(loop.start) and loop.start.kind != "conditional_expression":
            yield insert_after(loop.start, " + 1")


@rule(
    "loop-skips-every-second",
    "boundary",
    source="operator catalogue B06, H17",
    examples=(
        Example("for (int i = m; i < n; i += 32) y[i] = x[i];", "for (int i = m; i < n; i += 2 * (32)) y[i] = x[i];"),
        Example("for (int i = 0; i < n; ++i) y[i] = x[i];", "for (int i = 0; i < n; i += 2) y[i] = x[i];"),
        Example("int i = n; i += 32; y[i] = 0.0f;", None),
        Example("for (int k = 0; k < n; k += 16) y[k] = x[k];", None),
    ),
)
def loop_skips_every_second(tree: Tree) -> Iterator[Edit]:
    """A loop moves on by twice its step (loops over tiles have a rule of their own)."""
    for loop in _upward(tree):
        if loop.step.kind == "assignment_expression" and operator(loop.step) == "+=":
            step = operands(loop.step)[1]
            if number(loop.start) is None:
                yield replace(step, f"2 * ({step.text})")
        elif loop.step.kind == "update_expression" and "++" in loop.step.text:
            yield replace(loop.step, f"{loop.variable} += 2")


@rule(
    "reduction-stops-early",
    "boundary",
    source="operator catalogue W05, for trees in shared memory",
    examples=(
        Example(
            "for (int s = n / 2; s > 0; s >>= 1) y[0] += x[s];", "for (int s = n / 2; s > 1; s >>= 1) y[0] += x[s];"
        ),
        Example("for (int s = 0; s < n; ++s) y[0] += x[s];", None),
    ),
)
def reduction_stops_early(tree: Tree) -> Iterator[Edit]:
    """A tree reduction, or another loop that counts down, leaves out its last step."""
    for loop in loops(tree):
        value = number(loop.bound)
        if operator(loop.condition) in (">", ">=") and value is not None and not shuffles(loop.node):
            yield replace(loop.bound, str(int(value) + 1))


@rule(
    "reduction-starts-late",
    "boundary",
    source="operator catalogue W04, for trees in shared memory",
    examples=(
        Example(
            "for (int s = n / 2; s > 0; s >>= 1) y[0] += x[s];", "for (int s = n / 4; s > 0; s >>= 1) y[0] += x[s];"
        ),
        Example("for (int s = n; s > 0; --s) y[0] += x[s];", None),
    ),
)
def reduction_starts_late(tree: Tree) -> Iterator[Edit]:
    """A tree reduction leaves out its first step."""
    for loop in loops(tree):
        start = bare(loop.start)
        if operator(loop.condition) not in (">", ">=") or shuffles(loop.node) or start.kind != "binary_expression":
            continue
        right = operands(start)[1]
        if operator(start) == "/" and right.text == "2":
            yield replace(right, "4")
        elif operator(start) == ">>" and right.text == "1":
            yield replace(right, "2")


def _ceilings(tree: Tree) -> Iterator[tuple[Node, str, str]]:
    """Quotients rounded up: expression, dividend, divisor. `(a + b - 1) / b`, `(a + 31) / 32`, `ceil_div(a, b)`."""
    for node in index_binaries(tree, "/", ">>"):
        left, right = operands(node)
        total = bare(left)
        if total.kind != "binary_expression":
            continue
        divisor = number(right) if operator(node) == "/" else 2.0 ** (number(right) or 0.0)
        addend = operands(total)[1]
        if operator(total) == "+" and divisor is not None and number(addend) == divisor - 1.0:
            yield node, operands(total)[0].text, str(int(divisor))
        elif operator(total) == "-" and number(addend) == 1.0:
            inner = bare(operands(total)[0])
            if inner.kind == "binary_expression" and operator(inner) == "+" and same(operands(inner)[1], right):
                yield node, operands(inner)[0].text, right.text
        elif operator(total) == "+" and _is_one_less(addend, right):
            yield node, operands(total)[0].text, right.text
    for call in tree.device("call_expression"):
        if re.search(r"ceil_?div|div_?up|div_?ceil", callee(call), re.IGNORECASE) and len(arguments(call)) == 2:
            first, second = arguments(call)
            yield call, first.text, second.text


def _is_one_less(node: Node, divisor: Node) -> bool:
    """Whether `node` is `(divisor - 1)`."""
    node = bare(node)
    if node.kind != "binary_expression" or operator(node) != "-":
        return False
    left, right = operands(node)
    return same(left, divisor) and number(right) == 1.0


@rule(
    "floor-for-ceil",
    "boundary",
    source="operator catalogue A21, B08 (the last, partial tile is skipped)",
    examples=(
        Example("int t = (n + 31) / 32;", "int t = ((n) / (32));"),
        Example("for (int k = 0; k < n; k += 16) y[k] = x[k];", "for (int k = 0; k + (16) <= n; k += 16) y[k] = x[k];"),
        Example("int t = n / 32;", None),
    ),
)
def floor_for_ceil(tree: Tree) -> Iterator[Edit]:
    """The number of tiles is rounded down instead of up: a last, partial tile is left out."""
    for node, dividend, divisor in _ceilings(tree):
        yield replace(node, f"(({dividend}) / ({divisor}))")
    for loop in _upward(tree):
        if number(loop.start) == 0.0 and loop.step.kind == "assignment_expression" and operator(loop.condition) == "<":
            step = operands(loop.step)[1]
            if operator(loop.step) == "+=" and not mentions(step, "blockDim", "gridDim"):
                condition = f"{loop.variable} + ({step.text}) <= {loop.bound.text}"
                yield replace(loop.condition, condition)


@rule(
    "one-tile-too-many",
    "boundary",
    source="operator catalogue B09",
    examples=(
        Example("int t = (n + m - 1) / m;", "int t = ((n) / (m) + 1);"),
        Example("int n4 = n / 4;", "int n4 = (n / 4 + 1);"),
        Example("int t = threadIdx.x / 32;", None),
    ),
)
def one_tile_too_many(tree: Tree) -> Iterator[Edit]:
    """There is one tile, or one group of elements, too many."""
    for node, dividend, divisor in _ceilings(tree):
        yield replace(node, f"(({dividend}) / ({divisor}) + 1)")
    for node in index_binaries(tree, "/"):
        left, right = operands(node)
        whole = node.parent is not None and node.parent.kind in ("init_declarator", "conditional_expression")
        if whole and left.kind == "identifier" and (right.text.isdigit() or right.text.isupper()) and _is_length(left):
            yield replace(node, f"({node.text} + 1)")


def _is_length(name: Node) -> bool:
    """Whether a name is a parameter of the function: a length, not the index of a thread."""
    function = name.function
    given = function.find("parameter_declaration") if function is not None else []
    return any(names[-1].text == name.text for parameter in given if (names := parameter.find("identifier")))


@rule(
    "drop-remainder-loop",
    "boundary",
    source="PaddlePaddle 53654 and TensorFlow 108244: the tail of the vectorised path is missing; operator catalogue B19",
    examples=(
        Example(
            "for (int i = n * 4 + threadIdx.x; i < m; i += 32) y[i] = x[i];",
            ";",
        ),
        Example("for (int i = threadIdx.x; i < m; i += 32) y[i] = x[i];", None),
    ),
)
def drop_remainder_loop(tree: Tree) -> Iterator[Edit]:
    """What a vectorised loop leaves over is not computed."""
    for loop in loops(tree):
        if loop.upward and number(loop.start) is None and _REMAINDER.search(loop.start.text):
            yield remove_statement(loop.node)
    for node in tree.device("if_statement"):
        clause = node.field("condition")
        names = clause.find("identifier") if clause is not None else []
        if any(re.search(r"tail|rem", name.text) for name in names) and node.field("alternative") is None:
            yield remove_statement(node)


def _extrema(tree: Tree) -> Iterator[Node]:
    """Infinities (and largest numbers) with which a running maximum or minimum starts."""
    for node in tree.device("init_declarator", "assignment_expression", "return_statement"):
        value = (
            node.field("value")
            or node.field("right")
            or node.child("unary_expression", "identifier", "call_expression")
        )
        if value is None:
            continue
        parts = value.named_children if value.kind == "initializer_list" else [value]
        yield from (part for part in parts if is_infinite(part))


@rule(
    "extremum-starts-at-zero",
    "boundary",
    source="KernelBench-Verified: a minimum with a wrong initial value (facebookresearch/kernel_bench_verified); operator catalogue B14",
    examples=(
        Example("float m = -INFINITY; m = fmaxf(m, x[0]);", "float m = 0.0f; m = fmaxf(m, x[0]);"),
        Example("float m = 0.0f; m = fmaxf(m, x[0]);", None),
    ),
)
def extremum_starts_at_zero(tree: Tree) -> Iterator[Edit]:
    """A maximum or minimum starts at zero, which is right for values of one sign only."""
    for value in _extrema(tree):
        yield replace(value, "0.0f")


@rule(
    "extremum-starts-at-smallest",
    "boundary",
    source="operator catalogue B15 (FLT_MIN, the smallest positive number, for the most negative)",
    examples=(
        Example("float m = -INFINITY; m = fmaxf(m, x[0]);", "float m = 1.17549435e-38f; m = fmaxf(m, x[0]);"),
        Example("float m = 0.0f;", None),
    ),
)
def extremum_starts_at_smallest(tree: Tree) -> Iterator[Edit]:
    """A maximum starts at the smallest positive number, taken for the most negative."""
    for value in _extrema(tree):
        yield replace(value, "1.17549435e-38f")


@rule(
    "accumulator-starts-wrong",
    "boundary",
    source="KernelBench-Verified: zero for the initial state; operator catalogue M25",
    examples=(
        Example("float s = 0.0f; s += x[0];", "float s = 1.0f; s += x[0];"),
        Example("float p = 1.0f; p *= x[0];", "float p = 0.0f; p *= x[0];"),
        Example("int i = 0; y[i] = x[0];", None),
    ),
)
def accumulator_starts_wrong(tree: Tree) -> Iterator[Edit]:
    """A sum starts at one instead of zero, or a product at zero instead of one."""
    for node in tree.device("init_declarator", "assignment_expression"):
        if node.kind == "assignment_expression" and operator(node) != "=":
            continue
        value = node.field("value") or node.field("right")
        parts = value.named_children if value is not None and value.kind == "initializer_list" else [value]
        for part in parts:
            if part is not None and part.kind == "number_literal" and number(part) in (0.0, 1.0) and is_value(part):
                old, new = ("0", "1") if number(part) == 0.0 else ("1", "0")
                yield replace(part, part.text.replace(old, new, 1))
