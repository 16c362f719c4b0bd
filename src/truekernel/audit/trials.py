"""A chunk of one program's mutants: compile each alone, execute the suites, search a witness, show survivors once more."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from truekernel.audit import builds
from truekernel.audit.builds import Build, Compilation
from truekernel.audit.callables import ask
from truekernel.audit.hazards import add_hazards
from truekernel.audit.records import MutantRecord, Witness, WorstElement
from truekernel.audit.setup import Base, ProblemSetup
from truekernel.audit.verdicts import State
from truekernel.checkers import accepts
from truekernel.execution.backend import NO_CEILING, Ceiling
from truekernel.export import Subject
from truekernel.model import Configuration, Execution, Mutant
from truekernel.numerics import Expected
from truekernel.numerics.formats import to_float64
from truekernel.numerics.statistics import errors
from truekernel.trial.stage import Request
from truekernel.trial.witness import HonestRange

STRAYING = ("index", "boundary")
"""Classes whose mutants often access what is not theirs."""
REPEATS = 20
"""Repetitions of a mutant on a GPU that does not give the same bits twice."""


def run_chunk(
    setup: ProblemSetup,
    program: str,
    mutants: Sequence[Mutant],
    seen: dict[str, str],
    compilation: Compilation | None = None,
) -> list[MutantRecord]:
    """Records of `mutants`, in their order. `seen`: code hash -> first mutant that has it; what this chunk finds is added. `compilation`: of these mutants, where it was made ahead."""
    base = setup.bases[program]
    records: dict[str, MutantRecord] = {}
    compilation = compilation or builds.compiled(setup, program, mutants)
    plans, own = compilation.plans, compilation.builds
    unique: list[tuple[Mutant, str]] = []
    for mutant in mutants:
        why = compilation.refused.get(mutant.id)
        if why is not None:
            records[mutant.id] = _still(setup, mutant, "stillborn", compile_error=why)
            continue
        code = f"{own[mutant.id].library.code_hash()}:{plans[mutant.id].digest}"
        if code == base.code_hash:
            records[mutant.id] = _still(setup, mutant, "identical", code_hash=code)
        elif seen.setdefault(code, mutant.id) != mutant.id:
            records[mutant.id] = _still(setup, mutant, "duplicate", code_hash=code, duplicate_of=seen[code])
        else:
            unique.append((mutant, code))
    if setup.device.name == "cuda":  # what may end a context comes last
        unique.sort(key=lambda pair: pair[0].made_by[0].rule_class in STRAYING)
    for mutant, code in unique:
        records[mutant.id] = _run(setup, base, mutant, own[mutant.id], code)
        if plans[mutant.id].digest != base.plans.digest:  # cases under plans of their own hold megabytes each
            setup.stage.release(plans[mutant.id])
    add_hazards(setup, base, [mutant for mutant, _ in unique], own, records)
    for plan in {p.digest: p for p in plans.values() if p.digest != base.plans.digest}.values():
        setup.stage.release(plan)
    builds.drop(setup, own)
    return [records[mutant.id] for mutant in mutants]


def _run(setup: ProblemSetup, base: Base, mutant: Mutant, own: Build, code: str) -> MutantRecord:
    """Everything about one unique mutant but its hazards. All of it is seen on the mutant compiled alone, which its identity needs anyway: suites on a shared
    build would cost that build as well, and a repetition of all that a checker accepts there."""
    gpu = setup.device.name == "cuda"
    wanted = setup.search(mutant.made_by[0].rule_class)
    executions, first = _suites_and_witnesses(setup, own, wanted[: _group_end(setup, base, own, 0, len(wanted))])
    repeated, again = _repeated(setup, executions, own)
    repeats: dict[str, tuple[int, int]] = {}
    if repeated is False and gpu:
        executions, repeated = _with_faults(executions, again)
        repeats = {} if repeated else _kills(setup, executions, own)
    # What does not repeat (it reads an address or a clock, say) stays as it was seen, unconfirmed.
    witness, tried = _search(setup, base, own, wanted, first)
    both = [*executions, *tried]
    observed = any(base.hashes[e.case_id, e.configuration] != e.output_hash for e in both if e.outcome.status == "ok")
    statuses = {e.outcome.status for e in both}
    record = MutantRecord(
        **_identity(setup, mutant),
        status="ran",
        code_hash=code,
        executions=tuple(executions),
        witness=witness,
        quarantine="" if witness else "masked" if observed else "unobserved",
        worst=None if witness else max((e.statistics["worst"] for e in both if e.outcome.status == "ok"), default=0.0),
        survivor_confirmed=repeated,
        repeats=repeats,
        host_differs="host_differs" in statuses,
        infrastructure="infrastructure" in statuses,
        **ask(setup, own, _subject(setup, mutant)).fields(),
    )
    return _survivor(setup, record, own) if "accept" in states(setup, record).values() else record


def _suites_and_witnesses(
    setup: ProblemSetup, own: Build, witnesses: Sequence[Request]
) -> tuple[list[Execution], list[Execution]]:
    """The suites of all checkers, and the first group of the witness search. A fault ends the suites that hold its case, not those of other checkers; the
    witness search is a series of its own. In one go: each request costs a process on a CPU, and a wait for its turn on a GPU."""
    requests = [*setup.requests, *witnesses]
    series = [*setup.series(setup.requests), *[1 << len(setup.checkers)] * len(witnesses)]
    ceilings = [*[NO_CEILING] * len(setup.requests), *map(setup.ranges.ceiling, witnesses)]
    found = setup.stage.execute(
        own.library, own.variant, own.plans, requests, series, ceilings=_heeded(setup, ceilings)
    )
    suites = set(setup.requests)
    return (
        [e for e in found if (e.case_id, e.configuration) in suites],
        [e for e in found if (e.case_id, e.configuration) not in suites],
    )


def _heeded(setup: ProblemSetup, ceilings: Sequence[Ceiling]) -> Sequence[Ceiling] | None:
    """Ceilings, for a device that stops there: a GPU has many executions under way at once."""
    return ceilings if setup.device.name == "cpu" else None


def _group_end(setup: ProblemSetup, base: Base, own: Build, start: int, count: int) -> int:
    """Where the group of the witness search that begins at `start` ends. A group costs one process. Where that stops at the first thing that may be a proof, and the cases are there,
    it holds all that is left; else it is as long as all before it: most mutants fall to the first cases, and little is executed in vain."""
    stops = setup.device.name == "cpu" and own.plans.digest == base.plans.digest
    return count if stops else min(count, max(1, 2 * start))


def _kills(setup: ProblemSetup, executions: Sequence[Execution], own: Build) -> dict[str, tuple[int, int]]:
    """For each checker that accepts a mutant which does not give the same bits twice: in how many of `REPEATS` repetitions it rejects."""
    accepted = [
        n for n, s in _judged(setup, {(e.case_id, e.configuration): e for e in executions}).items() if s == "accept"
    ]
    requests = list(dict.fromkeys(r for name in accepted for r in setup.suite_requests(name)))
    found = setup.stage.execute(own.library, own.variant, own.plans, requests * REPEATS)
    rounds = [found[at : at + len(requests)] for at in range(0, len(found), len(requests) or 1)]
    verdicts = [_judged(setup, {(e.case_id, e.configuration): e for e in some}) for some in rounds]
    return {name: (sum(v[name] == "reject" for v in verdicts), len(verdicts)) for name in accepted}


def _repeated(setup: ProblemSetup, executions: Sequence[Execution], own: Build) -> tuple[bool | None, list[Execution]]:
    """Whether the mutant gives the same bits again on the cases of every checker that accepts it; None when no checker does. And what was executed.

    Where the order of threads is asked for, the first case of each checker is enough: nothing but addresses and clocks can differ.
    """
    seen = {(e.case_id, e.configuration): e for e in executions}
    accepted = [name for name, state in _judged(setup, seen).items() if state == "accept"]
    tried = slice(None) if len(setup.device.schedules) == 1 else slice(1)
    requests = list(dict.fromkeys(r for name in accepted for r in setup.suite_requests(name)[tried]))
    if not requests:
        return None, []
    series = setup.series(requests)
    bare = setup.device.name == "cuda"  # what strays far ends the context now, as it would anywhere else
    again = setup.stage.execute(own.library, own.variant, own.plans, requests, series, bare=bare)
    same = len(again) == len(requests) and not any(_differ(seen[e.case_id, e.configuration], e) for e in again)
    return same, again


def _with_faults(executions: Sequence[Execution], again: Sequence[Execution]) -> tuple[list[Execution], bool]:
    """Executions with the faults that only a GPU without a sink shows, and whether these are all that differs."""
    found = {(e.case_id, e.configuration): e for e in again}
    both = [(e, found.get((e.case_id, e.configuration), e)) for e in executions]
    same = not any(_differ(first, second) for first, second in both if second.outcome.status == "ok")
    return [second if second.outcome.status != "ok" else first for first, second in both], same


def _search(
    setup: ProblemSetup, base: Base, own: Build, wanted: Sequence[Request], first: Sequence[Execution] = ()
) -> tuple[Witness | None, list[Execution]]:
    """The first of the `wanted` executions that proves the mutant wrong, and all that were tried. `first`: those of the first group, where they were made already."""
    tried: list[Execution] = []
    places = {request: place for place, request in enumerate(wanted)}
    start = 0
    while start < len(wanted):
        end = _group_end(setup, base, own, start, len(wanted))
        made = (first if start == 0 else ()) or _executed(setup, own, wanted[start:end])
        for execution in made:
            tried.append(execution)
            request = (execution.case_id, execution.configuration)
            if execution.output_hash and execution.output_hash == base.hashes[request]:
                continue  # an honest program does the same
            why, honest = setup.ranges.prove(execution)
            if why and (execution.outcome.status != "timeout" or _is_slow_again(setup, own, request)):
                return _witness(execution, honest, why), tried
        # What ended a group need not prove anything: the search goes on behind it.
        start = places[made[-1].case_id, made[-1].configuration] + 1 if made else end
    return None, tried


def _executed(setup: ProblemSetup, own: Build, requests: Sequence[Request]) -> list[Execution]:
    """Executions of the witness search, up to the first that may be a proof."""
    ceilings = _heeded(setup, [setup.ranges.ceiling(request) for request in requests])
    one_series = [1] * len(requests)
    return setup.stage.execute(own.library, own.variant, own.plans, requests, one_series, ceilings=ceilings)


def _is_slow_again(setup: ProblemSetup, own: Build, request: Request) -> bool:
    """Whether a mutant that ran out of time does so again: one whose time is near the limit proves nothing."""
    (again,) = setup.stage.execute(own.library, own.variant, own.plans, [request])
    return again.outcome.status == "timeout"


def _witness(execution: Execution, honest: HonestRange, why: str) -> Witness:
    return Witness(
        case_id=execution.case_id,
        schedule=execution.configuration.schedule,
        schedule_seed=execution.configuration.schedule_seed,
        fill=execution.configuration.fill,
        why=why,
        status=execution.outcome.status,
        worst=execution.statistics.get("worst"),
        honest_worst=honest.worst,
        honest_nonfinite=honest.nonfinite,
        output_hash=execution.output_hash,
        element=None,
        confirmed=True,
    )


def states(setup: ProblemSetup, record: MutantRecord) -> dict[str, State]:
    """What each checker says of a record."""
    verdicts = _judged(setup, {(e.case_id, e.configuration): e for e in record.executions})
    for name, checker in setup.checkers.items():
        if checker.needs_outputs:
            verdicts[name] = (
                "accept" if name in record.accepted_by else "reject" if name in record.rejected_by else "undetermined"
            )
    return verdicts


def _judged(setup: ProblemSetup, seen: Mapping[Request, Execution]) -> dict[str, State]:
    """Verdicts of the checkers that judge statistics."""
    return {
        name: accepts(checker, setup.suites[name], seen, setup.device.schedules).verdict
        for name, checker in setup.checkers.items()
        if not checker.needs_outputs
    }


def _survivor(setup: ProblemSetup, record: MutantRecord, own: Build) -> MutantRecord:
    """The record of a mutant that some checker accepts, with its witness shown once more and what other seeds would have caught."""
    witness = record.witness
    if witness is None:
        return record
    accepted = [name for name, state in states(setup, record).items() if state == "accept" and name in setup.reseeded]
    requests = list(dict.fromkeys(request for name in accepted for request in setup.reseeded[name]))
    series = [sum(1 << k for k, name in enumerate(accepted) if r in setup.reseeded[name]) for r in requests]
    found = setup.stage.execute(own.library, own.variant, own.plans, requests, series) if requests else []
    refused = {
        name
        for name in accepted
        for e in found
        if (e.case_id, e.configuration) in setup.reseeded[name]
        and setup.checkers[name].judge(setup.stage.prepared[e.case_id].case, [e]).verdict == "reject"
    }
    return record.model_copy(
        update={"witness": _shown_again(setup, witness, own), "reseeded": {name: name in refused for name in accepted}}
    )


def _shown_again(setup: ProblemSetup, witness: Witness, own: Build) -> Witness:
    """The witness with its worst element; unconfirmed when a second execution shows something else. One that ran out of time did so again before it became a witness."""
    if witness.status == "timeout":
        return witness
    request = (witness.case_id, Configuration(witness.schedule, witness.schedule_seed, witness.fill))
    ((execution, tensors),) = setup.stage.outputs(own.library, own.variant, own.plans, [request])
    if execution.outcome.status != witness.status or execution.output_hash != witness.output_hash:
        return witness.model_copy(update={"confirmed": False})
    element = worst_element(tensors, setup.stage.prepared[request[0]].expected) if tensors is not None else None
    return witness.model_copy(update={"element": element})


def _differ(one: Execution, other: Execution) -> bool:
    return one.outcome.status != other.outcome.status or one.output_hash != other.output_hash


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


def _subject(setup: ProblemSetup, mutant: Mutant) -> Subject:
    made = mutant.made_by[0]
    title = f"mutant of program {mutant.program}, made by {made.rule}"
    return Subject(mutant.id, title, setup.problem.name, mutant.source, mutant.plan_source)


def _still(setup: ProblemSetup, mutant: Mutant, status: str, **more: str) -> MutantRecord:
    return MutantRecord.model_validate({**_identity(setup, mutant), "status": status, **more})
