"""Faults of barriers within a block: missing, misplaced, or not reached by all threads."""

from __future__ import annotations

from collections.abc import Iterator

from truekernel.model import Edit
from truekernel.mutation.rule import Example, rule
from truekernel.mutation.statements import (
    LOOPS,
    base_name,
    before_loop,
    for_loop,
    group_kind,
    in_block,
    neighbours,
    only_call,
    reads_memory,
    writes_memory,
)
from truekernel.source.edits import insert_after, insert_before, remove_statement, replace
from truekernel.source.query import callee
from truekernel.source.tree import Node, Tree

MUTGPU = "MUTGPU, ICST 2020"
SIMULEE = "synchronisation bugs of Wu et al., ICSE 2020"


def barriers(tree: Tree) -> list[Node]:
    """Statements of device code that are a barrier of the whole block."""
    return [node for node in tree.device("expression_statement") if _is_barrier(node)]


def _is_barrier(statement: Node) -> bool:
    call = only_call(statement)
    if call is None:
        return False
    return callee(call) == "__syncthreads" or (callee(call) == "sync" and group_kind(call) == "block")


def _holds_barrier(node: Node) -> bool:
    return any(_is_barrier(inner) for inner in node.find("expression_statement"))


def _leaves(node: Node) -> bool:
    return bool(node.find("return_statement", "break_statement", "continue_statement", "goto_statement"))


@rule(
    "barrier-removed",
    "sync",
    source=f"operator catalogue S01, S02; sync_removal of {MUTGPU}",
    examples=(
        Example("s[0] = x[0]; __syncthreads(); y[0] = s[1];", "s[0] = x[0]; ; y[0] = s[1];"),
        Example("__syncwarp();", None),
        Example("// __syncthreads();\ny[0] = x[0];", None),
    ),
)
def barrier_removed(tree: Tree) -> Iterator[Edit]:
    """One barrier of the block is missing."""
    for barrier in barriers(tree):
        yield remove_statement(barrier)


@rule(
    "all-barriers-removed",
    "sync",
    source=f"operator catalogue S01; {SIMULEE}",
    examples=(
        Example("__syncthreads(); y[0] = s[1]; __syncthreads();", "; y[0] = s[1]; ;"),
        Example("__syncthreads(); y[0] = s[1];", None),
    ),
)
def all_barriers_removed(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """All barriers of a function that has several are missing."""
    for function in tree.device_functions:
        inside = [barrier for barrier in barriers(tree) if barrier.function is function]
        if len(inside) > 1:
            yield tuple(remove_statement(barrier) for barrier in inside)


@rule(
    "barrier-to-warp-barrier",
    "sync",
    source="operator catalogue S05",
    examples=(
        Example("__syncthreads();", "__syncwarp();"),
        Example("__syncthreads_or(n);", None),
    ),
)
def barrier_to_warp_barrier(tree: Tree) -> Iterator[Edit]:
    """The block's barrier only joins the threads of a warp."""
    for barrier in barriers(tree):
        yield replace(barrier, "__syncwarp();")


@rule(
    "barrier-to-fence",
    "sync",
    source=f"a fence taken for a barrier; {SIMULEE}",
    examples=(
        Example("__syncthreads();", "__threadfence_block();"),
        Example("__threadfence();", None),
    ),
)
def barrier_to_fence(tree: Tree) -> Iterator[Edit]:
    """A memory fence, which waits for nobody, stands in the place of a barrier."""
    for barrier in barriers(tree):
        yield replace(barrier, "__threadfence_block();")


@rule(
    "barrier-before-last-write",
    "sync",
    source="operator catalogue S03",
    examples=(
        Example("s[0] = x[0]; __syncthreads();", "__syncthreads(); s[0] = x[0]; ;"),
        Example("int i = n; __syncthreads();", None),
    ),
)
def barrier_before_last_write(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """A barrier comes before the write that it should follow."""
    for barrier in barriers(tree):
        before, _ = neighbours(barrier)
        if before is None or before.kind == "declaration" or not writes_memory(before):
            continue
        if not _holds_barrier(before) and not _leaves(before):
            yield before_loop(before, barrier.text), remove_statement(barrier)


@rule(
    "barrier-after-first-read",
    "sync",
    source="operator catalogue S03",
    examples=(
        Example("__syncthreads(); y[0] = s[1]; y[1] = s[0];", "; y[0] = s[1]; __syncthreads(); y[1] = s[0];"),
        Example("__syncthreads(); return;", None),
    ),
)
def barrier_after_first_read(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """A barrier comes after the read that it should precede."""
    for barrier in barriers(tree):
        _, after = neighbours(barrier)
        if after is not None and reads_memory(after) and not _holds_barrier(after) and not _leaves(after):
            yield remove_statement(barrier), insert_after(after, f" {barrier.text}")


@rule(
    "barrier-inside-guard",
    "sync",
    source="operator catalogue S04; divergent barriers of Wu et al., ICSE 2020",
    examples=(
        Example("if (n > m) { s[0] = 1; } __syncthreads();", "if (n > m) { s[0] = 1; __syncthreads(); } ;"),
        Example("if (n > m) s[0] = 1;\n__syncthreads();", "if (n > m) { s[0] = 1; __syncthreads(); }\n;"),
        Example("if (n > m) s[0] = 1; else s[0] = 2; __syncthreads();", None),
    ),
)
def barrier_inside_guard(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """A barrier slips into the guarded branch before it, so threads outside the guard never arrive."""
    for barrier in barriers(tree):
        before, _ = neighbours(barrier)
        if before is None or before.kind != "if_statement" or before.field("alternative") is not None:
            continue
        branch = before.field("consequence")
        if branch is None or _leaves(branch):
            continue
        if branch.kind == "compound_statement":
            yield Edit(branch.end - 1, branch.end - 1, f"{barrier.text} "), remove_statement(barrier)
        else:
            yield insert_before(branch, "{ "), insert_after(branch, f" {barrier.text} }}"), remove_statement(barrier)


@rule(
    "barrier-for-first-warp-only",
    "sync",
    source="operator catalogue S04; divergent barriers of Wu et al., ICSE 2020",
    examples=(
        Example("{ __syncthreads(); }", "{ if (threadIdx.x < 32) __syncthreads(); }"),
        Example("if (n) __syncthreads(); else y[0] = 1;", None),
    ),
)
def barrier_for_first_warp_only(tree: Tree) -> Iterator[Edit]:
    """Only the first warp reaches a barrier."""
    for barrier in barriers(tree):
        if in_block(barrier):
            yield insert_before(barrier, "if (threadIdx.x < 32) ")


@rule(
    "barrier-after-loop",
    "sync",
    source="operator catalogue S02, S17",
    examples=(
        Example(
            "for (int t = 0; t < n; ++t) { y[0] = s[t]; __syncthreads(); }",
            "for (int t = 0; t < n; ++t) { y[0] = s[t]; ; } __syncthreads();",
        ),
        Example("for (int t = 0; t < n; ++t) { __syncthreads(); y[0] = s[t]; }", None),
    ),
)
def barrier_after_loop(tree: Tree) -> Iterator[tuple[Edit, ...]]:
    """The barrier at the end of each pass of a loop runs once, after the loop."""
    for barrier in barriers(tree):
        loop = barrier.parent.parent if barrier.parent is not None else None
        if loop is None or loop.kind not in LOOPS or not in_block(loop):
            continue
        if neighbours(barrier)[1] is None and in_block(barrier):
            yield remove_statement(barrier), insert_after(loop, f" {barrier.text}")


@rule(
    "barrier-skipped-on-first-pass",
    "sync",
    source="operator catalogue S02; a guard against a redundant first barrier that guards the wrong one",
    examples=(
        Example(
            "for (int t = 0; t < n; ++t) { s[0] = x[t]; __syncthreads(); y[t] = s[1]; }",
            "for (int t = 0; t < n; ++t) { s[0] = x[t]; if (t != 0) __syncthreads(); y[t] = s[1]; }",
        ),
        Example("while (n > 0) { __syncthreads(); --n; }", None),
    ),
)
def barrier_skipped_on_first_pass(tree: Tree) -> Iterator[Edit]:
    """A barrier in a loop does nothing in the first pass."""
    for barrier in barriers(tree):
        nearest = barrier.enclosing(*LOOPS)
        loop = for_loop(nearest) if nearest is not None else None
        if loop is not None and in_block(barrier) and not loop.start.find("call_expression"):
            yield insert_before(barrier, f"if ({loop.variable} != {_operand(loop.start)}) ")


def _operand(node: Node) -> str:
    return node.text if node.kind in ("number_literal", "identifier", "field_expression") else f"({node.text})"


@rule(
    "early-exit-before-barrier",
    "sync",
    source=f"operator catalogue S04; out-of-range threads that return before a barrier, {SIMULEE}",
    examples=(
        Example(
            "int i = threadIdx.x; s[i] = 0; __syncthreads(); if (i < n) y[i] = s[0];",
            "int i = threadIdx.x; if (!(i < n)) return; s[i] = 0; __syncthreads(); if (i < n) y[i] = s[0];",
        ),
        Example("int i = threadIdx.x; s[i] = 0; __syncthreads(); if (i == 0) y[i] = s[0];", None),
        Example("int i = threadIdx.x; __syncthreads(); int k = s[i]; if (k < n) y[i] = 1;", None),
    ),
)
def early_exit_before_barrier(tree: Tree) -> Iterator[Edit]:
    """Threads that will write nothing leave at the top, before they have helped to load and before the barriers."""
    for function in tree.device_functions:
        body = function.field("body")
        if body is None or "__global__" not in function.text[: body.start - function.start] or not _holds_barrier(body):
            continue
        statements = body.named_children
        last = statements[-1] if statements else None
        guard = last.field("condition") if last is not None and last.kind == "if_statement" else None
        if last is None or guard is None or last.field("alternative") is not None or "==" in guard.text:
            continue
        first = next(
            (node for node in statements if node.kind != "declaration" and not node.kind.startswith("preproc")), last
        )
        declared = {
            base_name(d) for node in statements for d in node.find("init_declarator") if node.start < first.start
        }
        local = {base_name(d) for d in body.find("init_declarator")} - declared
        if not local & {name.text for name in guard.find("identifier")} and first is not last:
            yield insert_before(first, f"if (!{guard.text}) return; ")


@rule(
    "shared-made-private",
    "sync",
    source="share_removal of MUTGPU, ICST 2020",
    examples=(
        Example("__shared__ float s[32]; s[0] = x[0];", "float s[32]; s[0] = x[0];"),
        Example("extern __shared__ float s[];", None),
    ),
)
def shared_made_private(tree: Tree) -> Iterator[Edit]:
    """An array that the block shares becomes each thread's own."""
    for qualifier in tree.device("type_qualifier"):
        declaration = qualifier.parent
        if qualifier.text != "__shared__" or declaration is None or declaration.child("storage_class_specifier"):
            continue
        yield Edit(qualifier.start, qualifier.end + 1, "")
