"""A chunk of one program's mutants: build, execute, search witnesses, confirm on the mutant compiled alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from truekernel.audit.callables import ask
from truekernel.audit.hazards import hazards_of
from truekernel.audit.records import MutantRecord, Witness, WorstElement
from truekernel.audit.setup import Base, ProblemSetup
from truekernel.audit.verdicts import State
from truekernel.checkers import accepts
from truekernel.errors import PlanError
from truekernel.execution import simt
from truekernel.model import Execution, Mutant
from truekernel.numerics import Expected
from truekernel.numerics.formats import to_float64
from truekernel.numerics.statistics import errors
from truekernel.trial.stage import Plans, Request
from truekernel.trial.witness import HonestRange, proves_wrong

Built = Literal["schema", "batch", "alone"]


@dataclass(frozen=True, slots=True)
class Build:
    """A mutant that can be executed: variant of a library, with its launch plans."""

    library: simt.Library
    variant: int
    plans: Plans
    how: Built


def run_chunk(setup: ProblemSetup, program: str, mutants: Sequence[Mutant], seen: dict[str, str]) -> list[MutantRecord]:
    """Records of `mutants`, in their order. `seen`: code hash -> first mutant that has it; what this chunk finds is added."""
    base = setup.bases[program]
    plans, records = _plans(setup, base, mutants)
    alone, failures = _alone(plans, mutants)
    left: list[tuple[Mutant, simt.Library, str]] = []
    for mutant in mutants:
        if mutant.id in records:
            continue
        if mutant.id in failures:
            records[mutant.id] = _still(setup, mutant, "stillborn", compile_error=failures[mutant.id])
            continue
        code = f"{alone[mutant.id].code_hash()}:{plans[mutant.id].digest}"
        if code == base.code_hash:
            records[mutant.id] = _still(setup, mutant, "identical", code_hash=code)
        elif seen.setdefault(code, mutant.id) != mutant.id:
            records[mutant.id] = _still(setup, mutant, "duplicate", code_hash=code, duplicate_of=seen[code])
        else:
            left.append((mutant, alone[mutant.id], code))
    shared = _shared(base, [mutant for mutant, _, _ in left])
    for mutant, library, code in left:
        own = Build(library, 0, plans[mutant.id], "alone")
        records[mutant.id] = _run(setup, base, mutant, shared.get(mutant.id, own), own, code)
        if plans[mutant.id].digest != base.plans.digest:
            setup.stage.release(plans[mutant.id])
    for library in {b.library.path: b.library for b in shared.values()}.values():
        _drop(setup, library)
    for library in alone.values():
        _drop(setup, library)
    return [records[mutant.id] for mutant in mutants]


def _drop(setup: ProblemSetup, library: simt.Library) -> None:
    setup.stage.server.release(library)
    library.close()


def _plans(
    setup: ProblemSetup, base: Base, mutants: Sequence[Mutant]
) -> tuple[dict[str, Plans], dict[str, MutantRecord]]:
    """Launch plans of each mutant; records of those whose plan can't be recorded."""
    plans: dict[str, Plans] = {}
    records: dict[str, MutantRecord] = {}
    for mutant in mutants:
        if mutant.file == "cu":
            plans[mutant.id] = base.plans
            continue
        try:
            plans[mutant.id] = setup.stage.plans(mutant.source, mutant.plan_source)
        except PlanError as error:
            records[mutant.id] = _still(setup, mutant, "stillborn", compile_error=str(error))
    return plans, records


def _alone(plans: dict[str, Plans], mutants: Sequence[Mutant]) -> tuple[dict[str, simt.Library], dict[str, str]]:
    """Each mutant compiled alone, or the compiler's first line."""
    libraries: dict[str, simt.Library] = {}
    failures: dict[str, str] = {}
    for mutant in mutants:
        if mutant.id in plans:
            result = simt.compile_single(mutant.source, plans[mutant.id].kernels, simt.Options())
            if isinstance(result, simt.CompileFailure):
                failures[mutant.id] = str(result)
            else:
                libraries[mutant.id] = result
    return libraries, failures


def _shared(base: Base, mutants: Sequence[Mutant]) -> dict[str, Build]:
    """Mutants of the .cu text in shared translation units: a schema for expressions and statements, a batch for the rest."""
    numbered = {number: mutant for number, mutant in enumerate(mutants, start=1) if mutant.file == "cu"}
    if not numbered:
        return {}
    kernels = base.plans.kernels
    schema = simt.compile_schema(
        base.program.source, kernels, {n: m.edits for n, m in numbered.items()}, simt.Options()
    )
    builds = {
        numbered[number].id: Build(library, number, base.plans, "schema") for number, library in schema.members.items()
    }
    rest = {number: numbered[number].source for number in schema.leftovers}
    if rest:
        for number, library in simt.compile_batch(rest, kernels, simt.Options()).members.items():
            builds[numbered[number].id] = Build(library, number, base.plans, "batch")
    return builds


def _run(setup: ProblemSetup, base: Base, mutant: Mutant, build: Build, own: Build, code: str) -> MutantRecord:
    """Everything about one unique mutant. What the shared build shows must repeat on the mutant alone; else all is redone there."""
    shown = _executed(setup, base, mutant, build, code)
    record = _repeats(setup, shown, own)
    if record is None:
        shown = _executed(setup, base, mutant, own, code)
        record = _repeats(setup, shown, own)
    # What does not repeat even alone (a race that the host decides) stays as it was seen, unconfirmed.
    return _finished(setup, record or shown, own, mutant.source, confirmed=record is not None)


def _executed(setup: ProblemSetup, base: Base, mutant: Mutant, build: Build, code: str) -> MutantRecord:
    executions = _suites(setup, build)
    witness, tried = _search(setup, build)
    both = [*executions, *tried]
    observed = any(base.hashes[e.case_id, e.configuration] != e.output_hash for e in both if e.outcome.status == "ok")
    opinions = ask(setup, build.library, build.variant, build.plans)
    statuses = {e.outcome.status for e in both}
    worst = max((e.statistics["worst"] for e in both if e.outcome.status == "ok"), default=0.0)
    return MutantRecord(
        **_identity(setup, mutant),
        status="ran",
        code_hash=code,
        built=build.how,
        executions=tuple(executions),
        witness=witness,
        quarantine="" if witness else "masked" if observed else "unobserved",
        worst=None if witness else worst,
        host_differs="host_differs" in statuses,
        infrastructure="infrastructure" in statuses,
        **opinions.fields(),
    )


def _suites(setup: ProblemSetup, build: Build) -> list[Execution]:
    """The suites of all checkers, in one process where that goes well. A timeout ends a suite, not those of other checkers."""
    executions = setup.stage.execute(build.library, build.variant, build.plans, setup.requests)
    done = len(executions)
    if done < len(setup.requests):
        asked = set(setup.requests[:done])
        for name in setup.checkers:
            suite = setup.suite_requests(name)
            left = [r for r in suite if r not in asked]
            asked.update(left)
            if left and setup.requests[done - 1] not in suite:
                executions += setup.stage.execute(build.library, build.variant, build.plans, left)
    return executions


def _search(setup: ProblemSetup, build: Build) -> tuple[Witness | None, list[Execution]]:
    """The first execution of the witness search that proves the mutant wrong, and all executions that were tried."""
    tried: list[Execution] = []
    # Most mutants fall to the first case; the rest then run in one go, which costs one process.
    for requests in (setup.witness_requests[:1], setup.witness_requests[1:4], setup.witness_requests[4:]):
        for execution in setup.stage.execute(build.library, build.variant, build.plans, requests):
            tried.append(execution)
            honest = setup.ranges[execution.case_id, execution.configuration]
            why = proves_wrong(execution, honest)
            if why:
                return _witness(execution, honest, why), tried
    return None, tried


def _witness(execution: Execution, honest: HonestRange, why: str) -> Witness:
    return Witness(
        case_id=execution.case_id,
        schedule=execution.configuration.schedule,
        schedule_seed=execution.configuration.schedule_seed,
        why=why,
        status=execution.outcome.status,
        worst=execution.statistics.get("worst"),
        honest_worst=honest.worst,
        output_hash=execution.output_hash,
        element=None,
        confirmed=False,
    )


def states(setup: ProblemSetup, record: MutantRecord) -> dict[str, State]:
    """What each checker says of a record."""
    seen = {(e.case_id, e.configuration): e for e in record.executions}
    verdicts: dict[str, State] = {}
    for name, checker in setup.checkers.items():
        if checker.needs_outputs:
            verdicts[name] = (
                "accept" if name in record.accepted_by else "reject" if name in record.rejected_by else "undetermined"
            )
            continue
        verdicts[name] = accepts(checker, setup.suites[name], seen).verdict
    return verdicts


def _repeats(setup: ProblemSetup, record: MutantRecord, own: Build) -> MutantRecord | None:
    """The record, confirmed, when the mutant alone gives the witness again and the same bits on the cases of every checker that accepts it."""
    accepted = [name for name, state in states(setup, record).items() if state == "accept"]
    requests = list(dict.fromkeys(r for name in accepted for r in setup.suite_requests(name)))
    if requests:
        seen = {(e.case_id, e.configuration): e for e in record.executions}
        again = setup.stage.execute(own.library, own.variant, own.plans, requests)
        if len(again) < len(requests) or any(_differ(seen[e.case_id, e.configuration], e) for e in again):
            return None
    if record.witness is not None:
        return _confirmed(setup, record, own)
    tried = setup.stage.execute(own.library, own.variant, own.plans, setup.witness_requests)
    return None if any(proves_wrong(e, setup.ranges[e.case_id, e.configuration]) for e in tried) else record


def _confirmed(setup: ProblemSetup, record: MutantRecord, own: Build) -> MutantRecord | None:
    """The record with its witness confirmed on the mutant alone and the worst element named; None when it shows something else."""
    witness = record.witness
    assert witness is not None
    request = _request_of(setup, witness)
    ((execution, tensors),) = setup.stage.outputs(own.library, own.variant, own.plans, [request])
    if execution.outcome.status != witness.status or execution.output_hash != witness.output_hash:
        return None
    element = worst_element(tensors, setup.stage.prepared[request[0]].expected) if tensors is not None else None
    return record.model_copy(update={"witness": witness.model_copy(update={"element": element, "confirmed": True})})


def _differ(one: Execution, other: Execution) -> bool:
    return one.outcome.status != other.outcome.status or one.output_hash != other.output_hash


def _request_of(setup: ProblemSetup, witness: Witness) -> Request:
    return next(
        (case_id, c)
        for case_id, c in setup.witness_requests
        if case_id == witness.case_id and c.schedule == witness.schedule and c.schedule_seed == witness.schedule_seed
    )


def _finished(setup: ProblemSetup, record: MutantRecord, own: Build, source: str, *, confirmed: bool) -> MutantRecord:
    """The record with what is asked of the mutant alone: its worst element, hazards, and what other seeds would have caught."""
    verdicts = states(setup, record)
    accepted = [name for name, state in verdicts.items() if state == "accept"]
    reseeded: dict[str, bool] = {}
    if record.witness is not None:
        for name in accepted:
            if name in setup.reseeded:
                requests = setup.reseeded[name]
                executions = setup.stage.execute(own.library, own.variant, own.plans, requests)
                judge = setup.checkers[name].judge
                reseeded[name] = any(
                    judge(setup.stage.prepared[e.case_id].case, [e]).verdict == "reject" for e in executions
                )
    return record.model_copy(
        update={
            "survivor_confirmed": confirmed if accepted else None,
            "reseeded": reseeded,
            "hazards": hazards_of(setup, record, own.plans, source),
        }
    )


def worst_element(outputs: Sequence[torch.Tensor], expected: Sequence[Expected]) -> WorstElement | None:
    """Where the error is largest, in error scales; elements whose NaN/Inf class is wrong come first. None without elements."""
    best: tuple[float, WorstElement] | None = None
    for output, want in zip(outputs, expected, strict=True):
        if not want.elements:
            continue
        error, _, differs = errors(output, want)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(error == 0, 0.0, np.abs(error) / to_float64(want.scale))
        ratio = np.where(differs, math.inf, ratio)
        place = int(np.argmax(ratio))
        if best is None or ratio[place] > best[0]:
            index = tuple(int(i) for i in np.unravel_index(place, want.shape))
            got, truth = float(to_float64(output)[place]), float(to_float64(want.truth)[place])
            element = WorstElement(output=want.name, index=index, got=_number(got), truth=_number(truth))
            best = float(ratio[place]), element
    return None if best is None else best[1]


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _identity(setup: ProblemSetup, mutant: Mutant) -> dict[str, Any]:
    return {
        "id": mutant.id,
        "program": mutant.program,
        "problem": setup.problem.name,
        "file": mutant.file,
        "made_by": mutant.made_by,
        "diff": mutant.diff,
    }


def _still(setup: ProblemSetup, mutant: Mutant, status: str, **more: str) -> MutantRecord:
    return MutantRecord.model_validate({**_identity(setup, mutant), "status": status, **more})
