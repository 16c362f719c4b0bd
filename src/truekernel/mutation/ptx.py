"""Faults of inline PTX, by rules that read its instructions: asynchronous copies, barriers, proxies, matrix loads, approximations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from truekernel.model import Edit
from truekernel.mutation.rule import Example, rule
from truekernel.source.edits import remove_statement
from truekernel.source.tree import Node, Tree

PTX = "PTX instruction set"


def assemblies(tree: Tree) -> list[Node]:
    """Inline assembly in device code."""
    return tree.device("gnu_asm_expression", "asm_statement")


def instructions(assembly: Node) -> list[Node]:
    """String literals that hold the instructions of an inline assembly: those before its first colon."""
    first = next((child.start for child in assembly.children if child.kind.endswith("_operand_list")), assembly.end)
    return [node for node in assembly.find("string_literal") if node.start < first]


def _matches(tree: Tree, pattern: str) -> Iterator[tuple[Node, re.Match[str]]]:
    for assembly in assemblies(tree):
        for literal in instructions(assembly):
            for match in re.finditer(pattern, literal.text):
                yield literal, match


def _rewritten(tree: Tree, pattern: str, new: Callable[[re.Match[str]], str]) -> Iterator[Edit]:
    """Replace the first group of each match of `pattern` in instruction text."""
    for literal, match in _matches(tree, pattern):
        start = literal.start + len(literal.text[: match.start(1)].encode())
        yield Edit(start, start + len(match[1].encode()), new(match))


def _removed(tree: Tree, pattern: str) -> Iterator[Edit]:
    """Remove statements whose only instruction matches `pattern`."""
    for assembly in assemblies(tree):
        text = " ".join(literal.text.strip('"') for literal in instructions(assembly))
        alone = text.replace("\\n", " ").replace("\\t", " ").strip().rstrip(";")
        statement = assembly.statement
        if statement is not None and ";" not in alone and re.match(pattern, alone):
            yield remove_statement(statement)


@rule(
    "ptx-copy-wait-leaves-one-more",
    "async",
    source=f"operator catalogue Y01; {PTX}, cp.async.wait_group",
    examples=(
        Example('asm volatile("cp.async.wait_group 1;\\n" ::);', 'asm volatile("cp.async.wait_group 2;\\n" ::);'),
        Example('asm volatile("cp.async.wait_all;\\n" ::);', None),
    ),
)
def ptx_copy_wait_leaves_one_more(tree: Tree) -> Iterator[Edit]:
    """cp.async.wait_group or wgmma.wait_group lets one more group be under way than it may."""
    yield from _rewritten(tree, r"wait_group(?:\.read|\.sync\.aligned)*\s+(\d+)", lambda match: str(int(match[1]) + 1))
    for assembly in assemblies(tree):
        if not any(re.search(r"wait_group[\w.]*\s+%0", literal.text) for literal in instructions(assembly)):
            continue
        for operand in assembly.find("gnu_asm_input_operand")[:1]:
            value = operand.field("value")
            if value is not None:
                yield Edit(value.start, value.end, f"({value.text}) + 1")


@rule(
    "ptx-copy-wait-removed",
    "async",
    source=f"operator catalogue Y02; {PTX}, cp.async.wait_group, cp.async.wait_all, mbarrier.try_wait",
    examples=(
        Example('asm volatile("cp.async.wait_all;\\n" ::);', ";"),
        Example('asm volatile("cp.async.commit_group;\\n" ::);', None),
    ),
)
def ptx_copy_wait_removed(tree: Tree) -> Iterator[Edit]:
    """A wait for copies or matrix products under way is missing."""
    yield from _removed(tree, r"(?:cp\.async(?:\.bulk)?|wgmma)\.wait_(?:group|all)")


@rule(
    "ptx-copy-commit-removed",
    "async",
    source=f"operator catalogue Y03; {PTX}, cp.async.commit_group",
    examples=(
        Example('asm volatile("cp.async.commit_group;\\n" ::);', ";"),
        Example('asm volatile("cp.async.wait_all;\\n" ::);', None),
    ),
)
def ptx_copy_commit_removed(tree: Tree) -> Iterator[Edit]:
    """Copies or matrix products under way are not closed into a group."""
    yield from _removed(tree, r"(?:cp\.async(?:\.bulk)?|wgmma)\.commit_group")


@rule(
    "ptx-copy-half-size",
    "async",
    source=f"operator catalogue Y09; {PTX}, cp.async",
    examples=(
        Example(
            'asm volatile("cp.async.ca.shared.global [%0], [%1], 16;\\n" :: "r"(n), "l"(x));',
            'asm volatile("cp.async.ca.shared.global [%0], [%1], 8;\\n" :: "r"(n), "l"(x));',
        ),
        Example('asm volatile("cp.async.wait_all;\\n" ::);', None),
    ),
)
def ptx_copy_half_size(tree: Tree) -> Iterator[Edit]:
    """cp.async moves half of the bytes (cp.async.cg, which moves 16 only, becomes cp.async.ca)."""
    yield from _rewritten(
        tree, r"cp\.async\.ca\.[\w.:]*\s+\[[^\]]+\],\s*\[[^\]]+\],\s*(16|8)\b", lambda match: str(int(match[1]) // 2)
    )


@rule(
    "ptx-proxy-fence-removed",
    "async",
    source=f"operator catalogue Y10, Y15; {PTX}, fence.proxy.async, fence.mbarrier_init",
    examples=(
        Example('asm volatile("fence.proxy.async.shared::cta;\\n" ::: "memory");', ";"),
        Example('asm volatile("membar.gl;\\n" ::: "memory");', None),
    ),
)
def ptx_proxy_fence_removed(tree: Tree) -> Iterator[Edit]:
    """Writes to shared memory are not made visible to the copy engine, or a barrier's initialisation to others."""
    yield from _removed(tree, r"fence\.(?:proxy\.async|mbarrier_init)")


@rule(
    "ptx-product-fence-removed",
    "async",
    source=f"operator catalogue Y17; {PTX}, wgmma.fence",
    examples=(
        Example('asm volatile("wgmma.fence.sync.aligned;\\n" ::: "memory");', ";"),
        Example('asm volatile("fence.proxy.async;\\n" ::: "memory");', None),
    ),
)
def ptx_product_fence_removed(tree: Tree) -> Iterator[Edit]:
    """Registers are not ordered before an asynchronous matrix product reads them."""
    yield from _removed(tree, r"wgmma\.fence")


@rule(
    "ptx-expected-bytes-short",
    "async",
    source=f"operator catalogue Y09: hangs; {PTX}, mbarrier.arrive.expect_tx",
    examples=(
        Example(
            'asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(n), "r"(m));',
            'asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(n), "r"((m) - 16));',
        ),
        Example('asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(n));', None),
    ),
)
def ptx_expected_bytes_short(tree: Tree) -> Iterator[Edit]:
    """A barrier expects 16 bytes less than the copy brings."""
    for assembly in assemblies(tree):
        if any("expect_tx" in literal.text for literal in instructions(assembly)):
            operands = assembly.find("gnu_asm_input_operand")
            value = operands[-1].field("value") if operands else None
            if value is not None:
                yield Edit(value.start, value.end, f"({value.text}) - 16")


@rule(
    "ptx-named-barrier-swapped",
    "sync",
    source=f"operator catalogue S11; {PTX}, bar.sync",
    examples=(
        Example('asm volatile("bar.sync 1, 64;" ::: "memory");', 'asm volatile("bar.sync 2, 64;" ::: "memory");'),
        Example('asm volatile("membar.gl;" ::: "memory");', None),
    ),
)
def ptx_named_barrier_swapped(tree: Tree) -> Iterator[Edit]:
    """Threads wait at another named barrier than their partners."""
    yield from _rewritten(
        tree,
        r"\b(?:bar|barrier)(?:\.cta)?\.(?:sync|arrive)(?:\.aligned)?\s+(\d+)\b",
        lambda match: str(int(match[1]) + 1),
    )


@rule(
    "ptx-named-barrier-count-off",
    "sync",
    source=f"operator catalogue S12: hangs, or does not wait; {PTX}, bar.sync",
    examples=(
        Example('asm volatile("bar.sync 1, 64;" ::: "memory");', 'asm volatile("bar.sync 1, 96;" ::: "memory");'),
        Example('asm volatile("bar.sync 0;" ::: "memory");', None),
    ),
)
def ptx_named_barrier_count_off(tree: Tree) -> Iterator[Edit]:
    """A named barrier expects a warp more than arrives."""
    pattern = r"\b(?:bar|barrier)(?:\.cta)?\.(?:sync|arrive)(?:\.aligned)?\s+[%\w]+\s*,\s*(\d+)\b"
    yield from _rewritten(tree, pattern, lambda match: str(int(match[1]) + 32))


@rule(
    "ptx-fence-removed",
    "atomic",
    source=f"operator catalogue S15; {PTX}, membar, fence",
    examples=(
        Example('asm volatile("membar.gl;" ::: "memory");', ";"),
        Example('asm volatile("fence.proxy.async;" ::: "memory");', None),
    ),
)
def ptx_fence_removed(tree: Tree) -> Iterator[Edit]:
    """A memory fence written in PTX is missing."""
    yield from _removed(tree, r"membar\.|fence\.(?:acq_rel|sc)")


@rule(
    "ptx-order-relaxed",
    "atomic",
    source=f"operator catalogue T09, T10; {PTX}, memory consistency model",
    examples=(
        Example(
            'asm volatile("ld.acquire.gpu.b32 %0, [%1];" : "=r"(n) : "l"(x));',
            'asm volatile("ld.relaxed.gpu.b32 %0, [%1];" : "=r"(n) : "l"(x));',
        ),
        Example('asm volatile("ld.relaxed.gpu.b32 %0, [%1];" : "=r"(n) : "l"(x));', None),
    ),
)
def ptx_order_relaxed(tree: Tree) -> Iterator[Edit]:
    """A load that acquires or a store that releases orders nothing."""
    yield from _rewritten(tree, r"\b(?:ld|st|atom|red)\.(acquire|release|acq_rel)\b", lambda _: "relaxed")


@rule(
    "ptx-matrix-load-not-transposed",
    "launch",
    source=f"operator catalogue H04; {PTX}, ldmatrix",
    examples=(
        Example(
            'asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0}, [%1];" : "=r"(n) : "r"(m));',
            'asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0}, [%1];" : "=r"(n) : "r"(m));',
        ),
        Example('asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0}, [%1];" : "=r"(n) : "r"(m));', None),
    ),
)
def ptx_matrix_load_not_transposed(tree: Tree) -> Iterator[Edit]:
    """ldmatrix loads a fragment without transposing it."""
    yield from _rewritten(tree, r"ldmatrix[\w.]*?(\.trans)\b", lambda _: "")


@rule(
    "ptx-approximation",
    "precision",
    source=f"operator catalogue P11, P12; {PTX}, rcp, sqrt, div",
    examples=(
        Example('asm("rcp.rn.f32 %0, %1;" : "=f"(v) : "f"(u));', 'asm("rcp.approx.f32 %0, %1;" : "=f"(v) : "f"(u));'),
        Example('asm("rcp.approx.f32 %0, %1;" : "=f"(v) : "f"(u));', None),
    ),
)
def ptx_approximation(tree: Tree) -> Iterator[Edit]:
    """A reciprocal, root or quotient written in PTX is approximate."""
    yield from _rewritten(tree, r"\b(?:rcp|sqrt|div)\.(rn)(?:\.ftz)?\.f32", lambda _: "approx")
