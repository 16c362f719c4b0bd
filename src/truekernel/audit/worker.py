"""One problem of an audit, done in a worker process: set up, honest variants, then its mutants chunk by chunk."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from truekernel import checkers as checker_room
from truekernel import mutation
from truekernel.audit.plan import known_programs
from truekernel.audit.records import MutantRecord
from truekernel.audit.setup import ProblemSetup, set_up
from truekernel.audit.trials import run_chunk
from truekernel.model import Mutant
from truekernel.trial.bindings import rebound
from truekernel.trial.devices import device

_MMAP_THRESHOLD, _LARGE = -3, 4 << 20
"""glibc's mallopt: memory of that size and more goes back to the system when it is freed. Left alone, the limit rises with use, and a worker of many problems came to hold two gigabytes of holes."""
CHUNK = 48
"""Mutants whose schema shares translation units, and that are stored together."""


def audit_problem(job: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The work of a pool job.

    `job`: problem, bound_to (the file of a KernelBench checkout that states it, or None), programs (own_programs: documents of those that are not in the corpus), mutants {program: [ids]}, rules, checkers, device, workers, known {mutant id: code hash of those stored already}. Yields
    {"kind": problem | honest | mutant, "records": {key: document}}; what a resumed job yields again has the same content.
    """
    import torch

    torch.set_num_threads(1)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").mallopt(_MMAP_THRESHOLD, _LARGE)
    checkers = checker_room.resolve(job["checkers"])
    programs = known_programs(job["own_programs"])
    where = device(job["device"], job["workers"], sanitise=job["sanitise"])
    problem = rebound(job["problem"], job["bound_to"])
    setup = set_up(problem, [programs[name] for name in job["programs"]], checkers, where)
    with setup, _settled():
        any(setup.stage.watch(base.library, base.plans, setup.requests[0][0]) for base in setup.bases.values())
        yield {"kind": "problem", "records": {setup.problem.name: setup.record.document()}}
        yield {"kind": "honest", "records": {record.id: record.document() for record in setup.honest}}
        for name in job["programs"]:
            wanted = set(job["mutants"].get(name, ()))
            rules = [mutation.rules()[rule] for rule in job["rules"]]
            mutants = [m for m in mutation.mutants(programs[name], rules) if m.id in wanted]
            yield from _program(setup, name, mutants, job["known"])


@contextlib.contextmanager
def _settled() -> Iterator[None]:
    """What a set-up made lives as long as its problem: the garbage collector need not look at it meanwhile. Afterwards its memory goes back to the system."""
    gc.freeze()
    _give_back()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.collect()
        _give_back()


def _give_back() -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _program(
    setup: ProblemSetup, program: str, mutants: Sequence[Mutant], known: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Chunks always hold the same mutants, so that a resumed run decides duplicates as an undisturbed one does."""
    seen: dict[str, str] = {}
    pending = iter(mutants)
    while chunk := list(islice(pending, CHUNK)):
        for mutant in chunk:
            if known.get(mutant.id):
                seen.setdefault(known[mutant.id], mutant.id)
        left = [mutant for mutant in chunk if mutant.id not in known]
        if left:
            records: list[MutantRecord] = run_chunk(setup, program, left, seen)
            yield {"kind": "mutant", "records": {record.id: record.document() for record in records}}
