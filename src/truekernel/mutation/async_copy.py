"""Faults of asynchronous copies and pipelines: waits, commits, stages, buffers, phases."""

from __future__ import annotations

import re
from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.rule import Example, rule
from truekernel.mutation.statements import LOOPS, call_statements, calls, for_loops, initial_value
from truekernel.source.edits import remove_statement, replace
from truekernel.source.query import arguments, bare, callee, operands, operator
from truekernel.source.tree import Node, Tree
from truekernel.source.types import declared_type

_COPIES = ("__pipeline_memcpy_async", "memcpy_async", "cp_async", "cp_async_bulk")
_WAITS = (
    "__pipeline_wait_prior",
    "consumer_wait",
    "wait_prior",
    "wait",
    "arrive_and_wait",
    "cp_async_wait",
    "cp_async_wait_all",
    "barrier_wait",
)
_COMMITS = ("__pipeline_commit", "producer_commit", "cp_async_commit", "cp_async_fence")
_STAGE = re.compile(
    r"(?:stage|buf|slot|ping|pong|cur|next|read|write|load|store|phase|parity)\w*|\w+_(?:stage|buf|buffer|slot|idx|phase)",
    re.IGNORECASE,
)


@rule(
    "async-wait-leaves-one-more",
    "async",
    source="operator catalogue Y01",
    examples=(
        Example("__pipeline_wait_prior(1);", "__pipeline_wait_prior((1) + 1);"),
        Example("cg::wait(block);", None),
    ),
)
def async_wait_leaves_one_more(tree: Tree) -> Iterator[Edit]:
    """A wait lets one more copy be under way than it may."""
    for call in calls(tree, "__pipeline_wait_prior"):
        for depth in arguments(call)[:1]:
            yield replace(depth, f"({depth.text}) + 1")
    for call in calls(tree, "wait_prior", "pipeline_consumer_wait_prior", "cp_async_wait"):
        function = call.field("function")
        listed = function.find("template_argument_list")[:1] if function is not None else []
        for depth in (child for arguments_ in listed for child in arguments_.named_children[:1]):
            yield replace(depth, f"({depth.text}) + 1")


@rule(
    "async-wait-removed",
    "async",
    source="operator catalogue Y02",
    examples=(
        Example("__pipeline_wait_prior(0); y[0] = s[0];", "; y[0] = s[0];"),
        Example("pipe.consumer_wait();", ";"),
        Example("__pipeline_commit();", None),
    ),
)
def async_wait_removed(tree: Tree) -> Iterator[Edit]:
    """Copied data is used without waiting for the copy."""
    for statement in call_statements(tree, *_WAITS):
        yield remove_statement(statement)


@rule(
    "async-commit-removed",
    "async",
    source="operator catalogue Y03",
    examples=(
        Example("__pipeline_commit();", ";"),
        Example("pipe.producer_commit();", ";"),
        Example("__pipeline_wait_prior(0);", None),
    ),
)
def async_commit_removed(tree: Tree) -> Iterator[Edit]:
    """Copies are not closed into a group, so waits count wrongly."""
    for statement in call_statements(tree, *_COMMITS):
        yield remove_statement(statement)


@rule(
    "async-copy-half-size",
    "async",
    source="operator catalogue Y09, H10 for asynchronous copies",
    examples=(
        Example("__pipeline_memcpy_async(&s[0], &x[0], 16);", "__pipeline_memcpy_async(&s[0], &x[0], (16) / 2);"),
        Example("memcpy(s, x, 16);", None),
    ),
)
def async_copy_half_size(tree: Tree) -> Iterator[Edit]:
    """An asynchronous copy moves half of the bytes."""
    for call in calls(tree, *_COPIES):
        given = arguments(call)
        place = 3 if len(given) > 3 and callee(call) == "memcpy_async" else 2
        if len(given) > place:
            yield replace(given[place], f"({given[place].text}) / 2")


@rule(
    "producer-does-not-acquire",
    "async",
    source="operator catalogue Y11",
    examples=(
        Example("pipe.producer_acquire();", ";"),
        Example("pipe.producer_commit();", None),
    ),
)
def producer_does_not_acquire(tree: Tree) -> Iterator[Edit]:
    """A producer fills a stage without waiting until it is empty."""
    for statement in call_statements(tree, "producer_acquire"):
        yield remove_statement(statement)


@rule(
    "consumer-does-not-release",
    "async",
    source="operator catalogue Y16: hangs when the stages run out",
    examples=(
        Example("pipe.consumer_release();", ";"),
        Example("pipe.consumer_wait();", None),
    ),
)
def consumer_does_not_release(tree: Tree) -> Iterator[Edit]:
    """A consumer does not hand its stage back."""
    for statement in call_statements(tree, "consumer_release"):
        yield remove_statement(statement)


@rule(
    "consumer-releases-before-reading",
    "async",
    source="operator catalogue Y12",
    examples=(
        Example(
            "pipe.consumer_wait(); y[0] = s[0]; pipe.consumer_release();",
            "pipe.consumer_wait(); pipe.consumer_release(); y[0] = s[0]; ;",
        ),
        Example("y[0] = s[0]; pipe.consumer_release();", None),
    ),
)
def consumer_releases_before_reading(tree: Tree) -> Iterator[tuple[Edit, Edit]]:
    """A consumer hands its stage back before it has read it."""
    for release in call_statements(tree, "consumer_release"):
        siblings = release.parent.named_children if release.parent is not None else []
        waits = [node for node in siblings if "consumer_wait" in node.text and node.end <= release.start]
        if waits and siblings.index(release) > siblings.index(waits[-1]) + 1:
            yield Edit(waits[-1].end, waits[-1].end, f" {release.text}"), remove_statement(release)


def _is_stage(name: str) -> bool:
    return _STAGE.fullmatch(name) is not None


def _cycles(value: Node) -> tuple[Node, Node, str] | None:
    """A step through stages, `(s + 1) % STAGES`, `s ^ 1`, `1 - s`: expression, what is stepped, operator."""
    value = bare(value)
    if value.kind != "binary_expression":
        return None
    left, right = operands(value)
    if operator(value) in ("%", "^", "&"):
        return value, left, operator(value)
    if operator(value) == "-" and left.text == "1" and right.kind == "identifier":
        return value, right, "-"
    return None


@rule(
    "stage-not-advanced",
    "async",
    source="operator catalogue Y05",
    examples=(
        Example(
            "for (int i = 0; i < n; ++i) { y[i] = s[buf]; buf ^= 1; }",
            "for (int i = 0; i < n; ++i) { y[i] = s[buf]; ; }",
        ),
        Example("while (n--) stage = (stage + 1) % STAGES;", "while (n--) ;"),
        Example("while (n--) m = m + 1;", None),
    ),
)
def stage_not_advanced(tree: Tree) -> Iterator[Edit]:
    """A pipeline stays at its first stage."""
    for statement in tree.device("expression_statement"):
        inside = statement.named_children
        if len(inside) != 1 or inside[0].kind != "assignment_expression" or statement.enclosing(*LOOPS) is None:
            continue
        target, value = operands(inside[0])
        steps = operator(inside[0]) in ("^=", "%=") or (operator(inside[0]) == "=" and _cycles(value) is not None)
        if target.kind == "identifier" and ((steps and _is_stage(target.text)) or _alternates(target)):
            yield remove_statement(statement)


def _alternates(name: Node) -> bool:
    """Whether a variable is the number of one of two buffers: flipped by `^ 1` or `1 -`, computed as a remainder by two, or a copy of such."""
    found = declared_type(name)
    if found is None or not found.integral or name.function is None:
        return False
    value = initial_value(name)
    if value is not None:
        return _flips(value)
    for node in name.function.find("assignment_expression"):
        target, right = operands(node)
        if target.text != name.text:
            continue
        copied = initial_value(right) if right.kind == "identifier" else right
        if operator(node) == "^=" or (operator(node) == "=" and copied is not None and _flips(copied)):
            return True
    return False


def _flips(value: Node) -> bool:
    step = _cycles(value)
    return step is not None and (step[2] == "-" or operands(step[0])[1].text.rstrip("uU") in ("2", "1"))


def _buffer_indices(tree: Tree) -> Iterator[tuple[Node, Node]]:
    """Subscripts of shared buffers by the number of one of two: index expression, and the identifier that alternates."""
    for node in tree.device("subscript_argument_list"):
        index = bare(node.named_children[0]) if len(node.named_children) == 1 else node
        names = index.find("identifier")
        if len(names) == 1 and (index is names[0] or _cycles(index) is not None) and _alternates(names[0]):
            yield index, names[0]


@rule(
    "double-buffer-swapped",
    "async",
    source="operator catalogue Y06",
    examples=(
        Example(
            "int cur = n % 2; y[0] = s[cur][0] + s[1 - cur][0];",
            (
                "int cur = n % 2; y[0] = s[(1 - cur)][0] + s[1 - cur][0];",
                "int cur = n % 2; y[0] = s[cur][0] + s[cur][0];",
            ),
        ),
        Example("int cur = n + 2; y[0] = s[cur][0];", None),
    ),
)
def double_buffer_swapped(tree: Tree) -> Iterator[Edit]:
    """The buffer that is being filled is read, or the one that is being read is filled."""
    for index, name in _buffer_indices(tree):
        yield replace(index, f"(1 - {name.text})" if index is name else name.text)


@rule(
    "double-buffer-fixed",
    "async",
    source="operator catalogue Y05, Y06",
    examples=(
        Example("int cur = n % 2; y[0] = s[cur][0];", "int cur = n % 2; y[0] = s[0][0];"),
        Example("y[0] = s[n][0];", None),
    ),
)
def double_buffer_fixed(tree: Tree) -> Iterator[Edit]:
    """One of two buffers is always used."""
    for index, _ in _buffer_indices(tree):
        yield replace(index, "0")


@rule(
    "stage-count-one-short",
    "async",
    source="operator catalogue Y04",
    examples=(
        Example("stage = (stage + 1) % STAGES;", "stage = (stage + 1) % (STAGES - 1);"),
        Example("int lane = n % 32;", None),
    ),
)
def stage_count_one_short(tree: Tree) -> Iterator[Edit]:
    """A pipeline walks through one stage less than it has."""
    for node in tree.device("binary_expression"):
        if operator(node) != "%":
            continue
        left, right = operands(node)
        names = [name.text for name in left.find("identifier")]
        if "STAGE" in right.text.upper() or (right.text == "2" and any(map(_is_stage, [*names, *_assigned_to(node)]))):
            yield replace(right, f"({right.text} - 1)")


def _assigned_to(node: Node) -> list[str]:
    """Name of the variable that takes the value of `node`, if any."""
    for ancestor in node.ancestors:
        if ancestor.kind in ("init_declarator", "assignment_expression"):
            target = ancestor.field("declarator") or ancestor.field("left")
            return [target.text] if target is not None else []
        if ancestor.kind != "parenthesized_expression":
            return []
    return []


@rule(
    "prologue-one-stage-short",
    "async",
    source="operator catalogue Y13",
    examples=(
        Example(
            "for (int s = 0; s < STAGES - 1; ++s) { __pipeline_memcpy_async(&t[s], &x[s], 16); __pipeline_commit(); }",
            "for (int s = 0; s < STAGES - 1 - 1; ++s) { __pipeline_memcpy_async(&t[s], &x[s], 16); __pipeline_commit(); }",
        ),
        Example(
            "for (int s = 0; s < n; ++s) { __pipeline_wait_prior(0); __pipeline_memcpy_async(&t[s], &x[s], 16); }", None
        ),
    ),
)
def prologue_one_stage_short(tree: Tree) -> Iterator[Edit]:
    """One stage less than needed is filled before the main loop."""
    for loop in for_loops(tree):
        names = {callee(call) for call in loop.body.find("call_expression")}
        if names & set(_COPIES) and not names & set(_WAITS) and loop.condition.kind == "binary_expression":
            bound = operands(loop.condition)[1]
            if operator(loop.condition) == "<":
                yield replace(bound, f"{bound.text} - 1")


@rule(
    "phase-not-flipped",
    "async",
    source="operator catalogue Y07",
    examples=(
        Example("phase ^= 1;", ";"),
        Example("token ^= 1;", None),
    ),
)
def phase_not_flipped(tree: Tree) -> Iterator[Edit]:
    """A wait goes on for the phase of a barrier that is already over."""
    for statement in tree.device("expression_statement"):
        inside = statement.named_children
        if len(inside) == 1 and inside[0].kind == "assignment_expression" and operator(inside[0]) in ("^=", "="):
            target, value = operands(inside[0])
            flips = operator(inside[0]) == "^=" or _cycles(value) is not None or value.text.startswith("!")
            if flips and re.search(r"phase|parity", target.text, re.IGNORECASE):
                yield remove_statement(statement)


@rule(
    "arrival-count-off-by-one",
    "async",
    source="operator catalogue Y08: hangs, or does not wait",
    examples=(
        Example("init(&bar, blockDim.x);", "init(&bar, (blockDim.x) - 1);"),
        Example("init(n);", None),
    ),
)
def arrival_count_off_by_one(tree: Tree) -> Iterator[Edit]:
    """A barrier object expects one thread less than arrive."""
    for call in calls(tree, "init", "__mbarrier_init", "mbarrier_init"):
        given = arguments(call)
        if len(given) == 2 and ("bar" in given[0].text.lower() or callee(call) != "init"):
            yield replace(given[1], f"({given[1].text}) - 1")
