"""Is one candidate right? Our checker's own suite with secret seeds, the candidate behind walls, everything that decides in this process."""

from __future__ import annotations

import contextlib
import itertools
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal

import torch

from truekernel.checkers import Checker, checkers
from truekernel.checkers.vacuity import Prepared, passing_trivials
from truekernel.errors import BadInputError
from truekernel.judge import precision
from truekernel.judge.candidates import Candidate
from truekernel.judge.inside import readings
from truekernel.judge.panel import with_panel
from truekernel.judge.posing import Posed
from truekernel.judge.running import Course, run_steps
from truekernel.judge.session import CALL_SECONDS, Session, SessionEndedError, UnfitError, tensor_space
from truekernel.judge.steps import Step, new_secret, steps
from truekernel.judge.verdict import (
    NOT_COVERED,
    NOT_COVERED_CUDA,
    NOT_COVERED_PYTHON,
    NOT_COVERED_VERSIONS,
    PrecisionRecord,
    StateRecord,
    Verdict,
    WallRecord,
    Word,
)
from truekernel.judge.walls.process import Wall

CHECKER = "truekernel"
MOST_HAZARDS = 12
MOST_CHANGES = 200


@dataclass(frozen=True, slots=True)
class Suite:
    """The cases of a check, made before the candidate runs. `strict`: the steps before a declared precision widened what is allowed, by case id."""

    checker: Checker
    steps: list[Step]
    strict: dict[str, Step]
    dropped: tuple[str, ...]
    trivial: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """A verdict and what it rests on. `outputs`: of each case by its id, of the first execution that ended well; `sanitised`: executions of a sanitised build."""

    verdict: Verdict
    outputs: dict[str, Sequence[torch.Tensor]]
    sanitised: int


def prepare(posed: Posed, secret: str, declared: str = "") -> Suite:
    """Cases, what they are compared with, and whether they mean anything. Raises BadInputError when nothing is left."""
    checker = checkers()[CHECKER]
    problem = posed.problem
    known = {precision.native(problem), *(p.name for p in precision.BELOW.get(precision.native(problem), ()))} - {""}
    if declared and declared not in known:
        raise BadInputError(
            f"--precision {declared}: '{problem.name}' can be computed in {', '.join(sorted(known)) or 'no other precision'}"
        )
    made, failed = steps(problem, checker, secret)
    kept, dropped = with_panel(problem, checker, made)
    strict = {step.case.id: step for step in kept}
    if declared:
        kept = precision.allowing(problem, kept, declared)
    cases = [Prepared(step.case, step.inputs, step.expected) for step in kept]
    trivial = tuple(passed.trivial for passed in passing_trivials(checker, cases))
    return Suite(checker, kept, strict, (*failed, *dropped), trivial)


def check(
    candidate: Candidate,
    posed: Posed,
    *,
    secret: str | None = None,
    declared: str = "",
    suite: Suite | None = None,
    call_seconds: float = CALL_SECONDS,
) -> Verdict:
    """Judge a candidate. `secret`: where all seeds come from, new unless a verdict is repeated; `declared`: the precision that it says it computes in, where that is not the
    problem's own; `suite`: cases that `prepare` has made, in place of new ones.

    Raises BadInputError when the candidate has no form that can be judged, MachineError when the machine failed.
    """
    return examine(candidate, posed, secret=secret, declared=declared, suite=suite, call_seconds=call_seconds).verdict


def examine(
    candidate: Candidate,
    posed: Posed,
    *,
    secret: str | None = None,
    declared: str = "",
    suite: Suite | None = None,
    call_seconds: float = CALL_SECONDS,
) -> Checked:
    """What `check` does, with the outputs that it has judged."""
    start = time.monotonic()
    # The process starts while the cases are made; nothing of the candidate runs before it is opened.
    with Session(candidate, posed, call_seconds) as session:
        prepared = suite or prepare(posed, secret or new_secret(), declared)
        ready = time.monotonic()
        course = Course()
        if prepared.steps:
            course = _course(session, prepared)
        walls, about, states = session.walls, session.about, session.states
    end = time.monotonic()
    seconds = {"preparing": ready - start, "candidate": end - ready, "total": end - start}
    verdict = _verdict(candidate, posed, prepared, course, walls, declared, seconds, about, state_changes(states))
    return Checked(verdict, {step.case.id: outputs for step, outputs in course.seen}, course.sanitised)


def _course(session: Session, prepared: Suite) -> Course:
    try:
        session.open(max(tensor_space(step.inputs) for step in prepared.steps))
        course = run_steps(session, prepared.checker, prepared.steps)
    except UnfitError as error:
        raise BadInputError(f"candidate {session.candidate.name}: {error}") from None
    except SessionEndedError as end:
        return Course(ended=f"while it was loaded: {end.outcome.message}")
    if not course.ended:
        # What ends its process now changes no verdict: all outputs have left it.
        with contextlib.suppress(SessionEndedError):
            session.ask_state()
    return course


def _verdict(
    candidate: Candidate,
    posed: Posed,
    prepared: Suite,
    course: Course,
    walls: Sequence[Wall],
    declared: str,
    seconds: dict[str, float],
    about: dict[str, str],
    state: tuple[StateRecord, ...],
) -> Verdict:
    problem = posed.problem
    own = declared or precision.native(problem)
    seen = [(prepared.strict[step.case.id], outputs) for step, outputs in course.seen]
    found = precision.determine(problem, own, seen) if seen else precision.Finding(own, "", "no outputs")
    word, why = _decide(prepared, course, found)
    more = NOT_COVERED_CUDA if candidate.is_cuda else NOT_COVERED_PYTHON
    if candidate.is_cuda and readings.VERSIONS.search(candidate.source):
        more = (*more, NOT_COVERED_VERSIONS)
    return Verdict(
        word=word,
        why=why,
        candidate=candidate.name,
        form=candidate.form,
        candidate_sha256=candidate.digest,
        problem=problem.name,
        problem_sha256=posed.digest,
        checker=f"{prepared.checker.name} {prepared.checker.version}",
        cases=tuple(judged.record for judged in course.judged),
        dropped=prepared.dropped,
        trivial=prepared.trivial,
        deterministic=not course.differed if course.repeated else None,
        determinism=_determinism(course),
        precision=PrecisionRecord(declared=found.declared, found=found.found, why=found.why),
        hazards=tuple(dict.fromkeys(course.hazards))[:MOST_HAZARDS],
        state=state,
        walls=tuple(WallRecord(name=w.name, up=w.up, detail=w.detail) for w in walls),
        not_covered=(*NOT_COVERED, *more),
        notes=posed.notes,
        versions={
            "truekernel": version("truekernel"),
            "torch": version("torch"),
            "python": platform.python_version(),
            "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
            **{name: value for name, value in about.items() if name == "compiler"},
        },
        seconds={name: round(value, 3) for name, value in seconds.items()},
    )


def _decide(prepared: Suite, course: Course, found: precision.Finding) -> tuple[Word, str]:
    """The word and its reason: what is wrong comes before what is not shown."""
    for judged in course.judged:
        if judged.record.verdict == "reject":
            axes = ", ".join(f"{name} {length}" for name, length in judged.record.axes.items())
            again = ", inputs where those of the case before lay" if judged.record.follows else ""
            return "wrong", f"on '{judged.record.recipe}' with {axes}{again}: {judged.record.why}"
    if course.ended:
        return "wrong", course.ended
    if found.found and found.found != found.declared:
        return "wrong", f"it computes in {found.found} and does not say so ({found.why}): declare it with --precision"
    if course.told:
        names = " and ".join(course.told)
        return (
            "undetermined",
            f"it asks for {names}, and is another kernel to a compiler that answers otherwise, as a GPU's may: leave that out",
        )
    if prepared.trivial:
        return "vacuous", f"{' and '.join(prepared.trivial)} would pass all cases: change the problem"
    if not prepared.steps:
        return "undetermined", "on every case honest programs themselves come close to what is allowed"
    opened = [judged.record for judged in course.judged if judged.record.verdict == "undetermined"]
    if opened:
        return "undetermined", f"on '{opened[0].recipe}': {opened[0].why}"
    if course.hazards:
        return "hazard", course.hazards[0]
    return "right", f"{len(course.judged)} cases"


def state_changes(states: Sequence[Mapping[str, str]]) -> tuple[StateRecord, ...]:
    """What differs between snapshots that follow each other, of which the first two frame the import. Random generators move by design; what a module brings with it when it is loaded is no change."""
    found = []
    stages: tuple[Literal["import", "calls"], ...] = ("import", "calls")
    for stage, (before, after) in zip(stages, itertools.pairwise(states), strict=False):
        for name in sorted({*before, *after}):
            old, new = before.get(name, ""), after.get(name, "")
            added = name not in before and not name.startswith("environment.")
            if old != new and not added and not name.startswith("random."):
                found.append(StateRecord(stage=stage, name=name, before=old, after=new))
    return tuple(found[:MOST_CHANGES])


def _determinism(course: Course) -> str:
    if not course.repeated:
        return "nothing was repeated"
    text = f"{course.repeated} executions were repeated: " + (
        f"{len(course.differed)} gave other bits" if course.differed else "the same bits each time"
    )
    if course.orders:
        text += f"; with other orders of threads {len(course.by_order)} of {course.orders} cases gave other bits"
    return text
