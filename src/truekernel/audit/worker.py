"""One problem of an audit, done in a worker process: set up, honest variants, then its mutants chunk by chunk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from truekernel import checkers as checker_room
from truekernel import memory, mutation
from truekernel.audit import builds
from truekernel.audit.builds import Compilation
from truekernel.audit.plan import known_programs
from truekernel.audit.records import MutantRecord
from truekernel.audit.setup import ProblemSetup, set_up
from truekernel.audit.trials import run_chunk
from truekernel.model import Mutant
from truekernel.trial.bindings import rebound
from truekernel.trial.devices import device

CHUNK = 48
"""Mutants whose schema shares translation units, and that are stored together."""


def audit_problem(job: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The work of a pool job.

    `job`: problem, bound_to (the file of a KernelBench checkout that states it, or None), programs (own_programs: documents of those that are not in the corpus), mutants {program: [ids]}, rules, checkers, device, workers, known {mutant id: code hash of those stored already}. Yields
    {"kind": problem | honest | mutant, "records": {key: document}}; what a resumed job yields again has the same content.
    """
    import torch

    torch.set_num_threads(1)
    memory.begin()
    checkers = checker_room.resolve(job["checkers"])
    programs = known_programs(job["own_programs"])
    where = device(job["device"], job["workers"], sanitise=job["sanitise"])
    problem = rebound(job["problem"], job["bound_to"])
    setup = set_up(problem, [programs[name] for name in job["programs"]], checkers, where)
    with setup, memory.settled():
        any(setup.stage.watch(base.library, base.plans, setup.requests[0][0]) for base in setup.bases.values())
        yield {"kind": "problem", "records": {setup.problem.name: setup.record.document()}}
        yield {"kind": "honest", "records": {record.id: record.document() for record in setup.honest}}
        rules = [mutation.rules()[rule] for rule in job["rules"]]
        chunks = [
            (name, chunk)
            for name in job["programs"]
            for chunk in _chunks(mutation.mutants(programs[name], rules), set(job["mutants"].get(name, ())))
        ]
        yield from _mutants(setup, chunks, job["known"])


def _chunks(mutants: Sequence[Mutant], wanted: set[str]) -> list[list[Mutant]]:
    """Chunks always hold the same mutants, so that a resumed run decides duplicates as an undisturbed one does."""
    chosen = [mutant for mutant in mutants if mutant.id in wanted]
    return [chosen[at : at + CHUNK] for at in range(0, len(chosen), CHUNK)]


def _mutants(
    setup: ProblemSetup, chunks: Sequence[tuple[str, list[Mutant]]], known: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Records of all mutants that are not known, chunk by chunk."""
    seen: dict[str, dict[str, str]] = defaultdict(dict)

    def left(chunk: Sequence[Mutant]) -> list[Mutant]:
        return [mutant for mutant in chunk if mutant.id not in known]

    def compiled(item: tuple[str, list[Mutant]]) -> Compilation:
        return builds.compiled(setup, item[0], left(item[1]))

    for (program, chunk), compilation in builds.ahead(chunks, compiled, setup.device.ahead):
        for mutant in chunk:
            if known.get(mutant.id):
                seen[program].setdefault(known[mutant.id], mutant.id)
        if left(chunk):
            records: list[MutantRecord] = run_chunk(setup, program, left(chunk), seen[program], compilation)
            yield {"kind": "mutant", "records": {record.id: record.document() for record in records}}
