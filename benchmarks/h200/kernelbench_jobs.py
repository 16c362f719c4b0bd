"""Which candidates `kernelbench_equality.py` compares: exported, with what both sides need to know of them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Any

MOST_ELEMENTS = 24_000_000
"""Batch axes are halved until inputs and outputs have at most so many elements: the original draws its inputs on one processor."""


def equality_jobs(found: Any, wanted: int, honest: int) -> Iterator[dict[str, Any]]:
    """`wanted` mutants of other classes in each turn over the bound problems, and `honest` programs and rewrites that keep the meaning."""
    from truekernel import corpus, mutation
    from truekernel.export import Subject

    programs = [p for p in corpus.programs().values() if p.problem in found.bound]
    first = {p.problem: p for p in sorted(programs, key=lambda p: rank(p.name))}
    turns: list[list[tuple[str, Subject]]] = []
    right: list[tuple[str, Subject]] = []
    for number, program in enumerate(sorted(first.values(), key=lambda p: rank(p.name))):
        by_class: dict[str, Any] = {}
        for mutant in sorted(mutation.mutants(program, mutation.rules().values()), key=lambda m: rank(m.id)):
            by_class.setdefault(mutant.made_by[0].rule_class, mutant)
        order = sorted(by_class.items(), key=lambda item: rank(program.name + item[0]))
        turns.append([(kind, subject(program, mutant)) for kind, mutant in order])
        benign = sorted(mutation.mutants(program, mutation.benign_rules().values()), key=lambda m: rank(m.id))
        right.append(("honest", subject(program, benign[0]) if benign and number % 2 else Subject.of(program)))
    mixed = [queue[turn] for turn in range(max(map(len, turns))) for queue in turns if turn < len(queue)]
    for queue, most in ((mixed, wanted), (right, honest)):
        count = 0
        for kind, one in queue:
            job = export(found, one, kind, scaled=True) if count < most else None
            if job is not None:
                count += 1
                yield job


def subject(program: Any, mutant: Any) -> Any:
    from truekernel.export import Subject

    rule = mutant.made_by[0].rule
    return Subject(
        mutant.id, f"{program.name}: {rule}", program.problem, mutant.source, mutant.plan_source, mutant.flags
    )


def export(found: Any, one: Any, kind: str, *, scaled: bool) -> dict[str, Any] | None:
    """A job for a worker: texts of both files and what our side needs to know; None for a mutant that can't be launched at all."""
    from truekernel import corpus
    from truekernel.corpus.kernelbench.module_text import changed_text
    from truekernel.errors import PlanError
    from truekernel.export.bound import bound_model_new

    problem = corpus.problems()[one.problem]
    adapted = found.loaded.adapted[problem.kernelbench]
    link = found.bound[one.problem].reference
    if scaled and elements(problem, shrunk(problem, link)) > 4 * MOST_ELEMENTS:
        return None
    axes = shrunk(problem, link) if scaled else problem.official_axes()
    official = axes == problem.official_axes()
    try:
        candidate = bound_model_new(one, problem, adapted, axes)
    except PlanError:
        return None
    text = adapted.file.path.read_text()
    half = problem.tensors[0].dtype
    return {
        "id": one.id,
        "title": one.title,
        "kind": kind,
        "problem": problem.name,
        "file": str(adapted.file.path),
        "level": problem.kernelbench,
        "number": (adapted.file.level, adapted.file.number, adapted.file.title),
        "found": adapted.description.model_dump_json(),
        "axes": axes,
        "scaled": not official,
        "reference": text if official else changed_text(text, link.their_axes(axes)),
        "candidate": candidate,
        "precision": {"float16": "fp16", "bfloat16": "bf16"}.get(half, "fp32"),
        "integers": any(spec.dtype == "int64" and spec.domain.kind == "index" for spec in problem.inputs),
    }


def shrunk(problem: Any, link: Any) -> dict[str, int]:
    """Official sizes with batch axes halved until the tensors have few enough elements for many candidates."""
    axes: dict[str, int] = problem.official_axes()
    named = {expression for _, expression in link.constants}
    free = [n for n, axis in problem.axes.items() if axis.kind in ("batch", "spatial") and n in named]
    while elements(problem, axes) > MOST_ELEMENTS:
        can = [n for n in free if problem.axes[n].kind == "batch" and axes[n] > 2] or [n for n in free if axes[n] > 64]
        if not can:
            break
        longest = max(can, key=lambda name: axes[name])
        axes[longest] = (axes[longest] + 1) // 2
    return axes


def elements(problem: Any, axes: dict[str, int]) -> int:
    from truekernel.model.lengths import lengths

    shapes = [spec.shape for spec in (*problem.tensors, *problem.outputs)]
    return sum(math.prod(lengths(shape, axes)) for shape in shapes)


def rank(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
