"""Faults of memory order: volatile, acquire and release, and the order of data, fence and flag."""

from __future__ import annotations

import re
from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.rule import Example, rule
from truekernel.mutation.statements import is_atomic, neighbours, only_call, writes_memory
from truekernel.source.edits import replace
from truekernel.source.query import callee
from truekernel.source.tree import Node, Tree

_FENCES = ("__threadfence", "__threadfence_block", "__threadfence_system")


@rule(
    "volatile-removed",
    "atomic",
    source="operator catalogue T12: a wait on a flag may never see it change",
    examples=(
        Example("while (*(volatile int*)c == 0) ;", "while (*(int*)c == 0) ;"),
        Example("__global__ void k(volatile float* y) { y[0] = 1; }", "__global__ void k(float* y) { y[0] = 1; }"),
        Example('asm volatile("membar.gl;");', None),
    ),
)
def volatile_removed(tree: Tree) -> Iterator[Edit]:
    """Memory that other threads write is read and written like a private variable."""
    for qualifier in tree.find("type_qualifier"):
        if qualifier.text == "volatile" and qualifier.in_device_code:
            yield Edit(qualifier.start, qualifier.end + 1, "")


def _orders(tree: Tree, order: str) -> list[Node]:
    """Names of a C++ memory order: `cuda::memory_order_acquire`, `std::memory_order::acquire`."""
    pattern = re.compile(rf"(?:\w+::)*memory_order(?:_|::){order}")
    named = tree.device("qualified_identifier", "identifier")
    return [
        n for n in named if pattern.fullmatch(n.text) and (n.parent is None or n.parent.kind != "qualified_identifier")
    ]


def _relaxed(tree: Tree, order: str) -> Iterator[Edit]:
    for name in _orders(tree, order):
        yield replace(name, name.text.replace(order, "relaxed"))


@rule(
    "acquire-to-relaxed",
    "atomic",
    source="operator catalogue T09; MC Mutants, ASPLOS 2023",
    examples=(
        Example("while (!f.load(cuda::memory_order_acquire)) ;", "while (!f.load(cuda::memory_order_relaxed)) ;"),
        Example("while (!f.load(cuda::memory_order_relaxed)) ;", None),
    ),
)
def acquire_to_relaxed(tree: Tree) -> Iterator[Edit]:
    """A load that should see what came before the store orders nothing."""
    yield from _relaxed(tree, "acquire")


@rule(
    "release-to-relaxed",
    "atomic",
    source="operator catalogue T10; MC Mutants, ASPLOS 2023",
    examples=(
        Example("f.store(1, cuda::std::memory_order_release);", "f.store(1, cuda::std::memory_order_relaxed);"),
        Example("f.store(1, cuda::memory_order_seq_cst);", None),
    ),
)
def release_to_relaxed(tree: Tree) -> Iterator[Edit]:
    """A store that should publish what came before it orders nothing."""
    yield from _relaxed(tree, "release")


@rule(
    "sequential-to-relaxed",
    "atomic",
    source="operator catalogue T11; MC Mutants, ASPLOS 2023",
    examples=(
        Example("f.store(1, cuda::memory_order_seq_cst);", "f.store(1, cuda::memory_order_relaxed);"),
        Example("f.store(1, cuda::memory_order_release);", None),
    ),
)
def sequential_to_relaxed(tree: Tree) -> Iterator[Edit]:
    """A sequentially consistent access orders nothing."""
    yield from _relaxed(tree, "seq_cst")


def _fences(tree: Tree) -> list[Node]:
    found = []
    for statement in tree.device("expression_statement"):
        call = only_call(statement)
        if call is not None and callee(call) in _FENCES:
            found.append(statement)
    return found


def _signals(statement: Node) -> bool:
    """Whether a statement may be read by other threads as a signal: an atomic or a store."""
    return any(map(is_atomic, statement.find("call_expression"))) or writes_memory(statement)


@rule(
    "fence-after-flag",
    "atomic",
    source="operator catalogue T13",
    examples=(
        Example("y[0] = 1; __threadfence(); atomicAdd(c, 1);", "y[0] = 1; atomicAdd(c, 1); __threadfence();"),
        Example("y[0] = 1; __threadfence(); n = 1;", None),
    ),
)
def fence_after_flag(tree: Tree) -> Iterator[tuple[Edit, Edit]]:
    """The fence that should order data before a flag comes after the flag."""
    for fence in _fences(tree):
        _, after = neighbours(fence)
        if after is not None and after.kind != "declaration" and _signals(after):
            yield replace(fence, after.text), replace(after, fence.text)


@rule(
    "flag-before-data",
    "atomic",
    source="operator catalogue T13; SentryWard and litmus tests of message passing",
    examples=(
        Example("y[0] = 1; __threadfence(); atomicAdd(c, 1);", "atomicAdd(c, 1); __threadfence(); y[0] = 1;"),
        Example("n = 1; __threadfence(); atomicAdd(c, 1);", None),
    ),
)
def flag_before_data(tree: Tree) -> Iterator[tuple[Edit, Edit]]:
    """A flag is set before the data that it announces."""
    for fence in _fences(tree):
        before, after = neighbours(fence)
        if before is None or after is None or "declaration" in (before.kind, after.kind):
            continue
        if writes_memory(before) and _signals(after):
            yield replace(before, after.text), replace(after, before.text)


@rule(
    "wait-on-flag-removed",
    "atomic",
    source="operator catalogue T13, Y11: a block goes on before its predecessor has published",
    examples=(
        Example("while (ready[n] == 0) { } y[0] = x[n];", "; y[0] = x[n];"),
        Example("while (n > 0) { --n; }", None),
    ),
)
def wait_on_flag_removed(tree: Tree) -> Iterator[Edit]:
    """A loop that waits for another thread's flag is missing."""
    for loop in tree.device("while_statement"):
        body, condition = loop.field("body"), loop.field("condition")
        idle = body is not None and (body.text.strip(" {};\n\t\r") == "" or "__nanosleep" in body.text)
        if (
            idle
            and condition is not None
            and condition.find("subscript_expression", "pointer_expression", "call_expression")
        ):
            yield Edit(loop.start, loop.end, ";")
