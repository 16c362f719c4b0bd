"""Faults that no output shows: overwritten red zones, and what a sanitised execution proves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from truekernel.audit import builds
from truekernel.audit.builds import Build
from truekernel.audit.records import Hazard, MutantRecord
from truekernel.audit.setup import Base, ProblemSetup
from truekernel.model import Configuration, Execution, Mutant
from truekernel.trial.devices import Source, Watched
from truekernel.trial.stage import Request

SANITISED_CASES = 3
"""Sanitised executions cost several times a plain one: the first few cases of the witness search are tried."""
_FAULTS = ("out_of_bounds", "race", "uninitialised_read", "barrier_divergence", "deadlock", "misaligned", "trap")


def add_hazards(
    setup: ProblemSetup,
    base: Base,
    mutants: Sequence[Mutant],
    own: Mapping[str, Build],
    records: dict[str, MutantRecord],
) -> None:
    """Put into the records of `mutants` the red zones that plain executions found overwritten and, for those without a witness, the
    faults that a sanitised build shows. `own`: the mutants compiled alone."""
    quiet = [mutant for mutant in mutants if records[mutant.id].witness is None]
    if setup.device.sanitises:
        faults = _sanitised(setup, base, quiet, own)
    else:
        faults = _by_tool(setup, [m for m in mutants if m in quiet or _survives(records[m.id])], own)
    for mutant in mutants:
        record = records[mutant.id]
        found = [
            Hazard(outcome=text.partition(": ")[0], message=text.partition(": ")[2], schedule=e.configuration.schedule)
            for e in record.executions
            for text in e.hazards
        ]
        found += faults.get(mutant.id, [])
        unique = {(h.outcome, h.line, h.buffer, h.message if h.line is None else ""): h for h in reversed(found)}
        if unique:
            records[mutant.id] = record.model_copy(update={"hazards": tuple(reversed(unique.values()))})


def _sanitised(
    setup: ProblemSetup, base: Base, mutants: Sequence[Mutant], own: Mapping[str, Build]
) -> dict[str, list[Hazard]]:
    """Faults that the checked build shows on the first cases of the witness search."""
    checked = builds.shared(setup.device, base, mutants, checked=True)
    plans = {mutant.id: own[mutant.id].plans for mutant in mutants}
    checked |= builds.alone(
        setup.device, [mutant for mutant in mutants if mutant.id not in checked], plans, checked=True
    )[0]
    cases = list(dict.fromkeys(case_id for case_id, _ in setup.witness_requests))[:SANITISED_CASES]
    requests: list[Request] = [(case_id, Configuration("gpu", checked=True)) for case_id in cases]
    found = {}
    for name, build in checked.items():
        executions = setup.stage.execute(build.library, build.variant, build.plans, requests)
        found[name] = [_hazard(e) for e in executions if e.outcome.status in _FAULTS]
    builds.drop(setup, checked)
    return found


def _survives(record: MutantRecord) -> bool:
    """Whether some checker accepts it."""
    return record.survivor_confirmed is not None or bool(record.accepted_by)


def _by_tool(setup: ProblemSetup, mutants: Sequence[Mutant], own: Mapping[str, Build]) -> dict[str, list[Hazard]]:
    """What the device's own tool shows on the first cases of the witness search, where it was asked for."""
    cases = list(dict.fromkeys(case_id for case_id, _ in setup.witness_requests))[:SANITISED_CASES]
    watched = [
        Watched(
            Source(mutant.source, own[mutant.id].plans.kernels),
            tuple(own[mutant.id].plans.by_case[case_id] for case_id in cases),
            tuple(setup.stage.prepared[case_id].inputs for case_id in cases),
            setup.problem.mutates,
        )
        for mutant in mutants
    ]
    found = setup.device.by_tool(watched) if watched else []
    return {
        mutant.id: [
            Hazard(
                outcome=fault.status,
                message=fault.message,
                schedule="gpu",
                thread=fault.where.thread,
                block=fault.where.block,
                line=fault.where.line,
                buffer=fault.where.buffer,
                offset=fault.where.offset,
            )
            for fault in faults
        ]
        for mutant, faults in zip(mutants, found, strict=False)
    }


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
