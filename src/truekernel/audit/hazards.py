"""Faults that no output shows: overwritten red zones, and what a sanitised execution proves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truekernel.audit.records import Hazard, MutantRecord
from truekernel.execution import simt
from truekernel.model import Configuration, Execution
from truekernel.trial.stage import Plans, Request

if TYPE_CHECKING:
    from truekernel.audit.setup import ProblemSetup

SANITISED_CASES = 3
"""Sanitised executions cost several times a plain one: the first few cases of the witness search are tried."""
_FAULTS = ("out_of_bounds", "race", "uninitialised_read", "barrier_divergence", "deadlock", "misaligned", "trap")


def hazards_of(setup: ProblemSetup, record: MutantRecord, plans: Plans, source: str) -> tuple[Hazard, ...]:
    """Red zones that plain executions found overwritten and, for a mutant without a witness, faults of a sanitised build."""
    found = [
        Hazard(outcome="out_of_bounds", message=text, schedule=e.configuration.schedule)
        for e in record.executions
        for text in e.hazards
    ]
    if record.witness is None:
        found += sanitised(setup, source, plans)
    unique = {(h.outcome, h.line, h.buffer, h.message if h.line is None else ""): h for h in reversed(found)}
    return tuple(reversed(unique.values()))


def sanitised(setup: ProblemSetup, source: str, plans: Plans) -> list[Hazard]:
    """Faults that the checked build shows on the first cases of the witness search."""
    library = simt.compile_single(source, plans.kernels, simt.Options(checked=True))
    if isinstance(library, simt.CompileFailure):
        return []
    requests: list[Request] = [
        (case_id, Configuration("gpu", checked=True))
        for case_id in dict.fromkeys(case_id for case_id, _ in setup.witness_requests)
    ][:SANITISED_CASES]
    executions = setup.stage.execute(library, 0, plans, requests)
    setup.stage.server.release(library)
    library.close()
    return [_hazard(e) for e in executions if e.outcome.status in _FAULTS]


def _hazard(execution: Execution) -> Hazard:
    where = execution.outcome.where
    return Hazard(
        outcome=execution.outcome.status,
        message=execution.outcome.message,
        schedule=execution.configuration.schedule,
        thread=where.thread,
        block=where.block,
        line=where.line,
        buffer=where.buffer,
        offset=where.offset,
    )
