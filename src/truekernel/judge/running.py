"""Put the cases to a candidate, Python or CUDA, and collect what was judged."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from truekernel.checkers import Checker
from truekernel.judge.judging import Judged, judge_step, same_bits
from truekernel.judge.session import Ran, Session, SessionEndedError
from truekernel.judge.steps import Step
from truekernel.model import Configuration

SANITISED_CASES = 3
"""Sanitised executions cost several times a plain one, and repeated calls too: the first cases of random values are tried."""
FAULTS = ("out_of_bounds", "race", "uninitialised_read", "barrier_divergence", "deadlock", "misaligned", "trap")
CPU_SECONDS = 20.0
"""CPU time of one execution of a kernel; honest ones take milliseconds at these lengths."""
PLAIN = Configuration("gpu")


@dataclass
class Course:
    """What came of all cases. `sanitised`: executions of a sanitised build; `repeated`: executions that were repeated; `differed`: labels of those that gave other bits; `told`: as in `Session`;
    `ended`: why the process ended before the last case."""

    judged: list[Judged] = field(default_factory=list)
    seen: list[tuple[Step, Sequence[torch.Tensor]]] = field(default_factory=list)
    hazards: list[str] = field(default_factory=list)
    sanitised: int = 0
    repeated: int = 0
    differed: list[str] = field(default_factory=list)
    orders: int = 0
    by_order: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    ended: str = ""

    def add(self, step: Step, judged: Judged) -> None:
        """Note a judged case."""
        self.judged.append(judged)
        if judged.outputs is not None:
            self.seen.append((step, judged.outputs))


def run_steps(session: Session, checker: Checker, steps: Sequence[Step]) -> Course:
    """All cases, in order, until the process ends. Raises UnfitError, MachineError."""
    course = Course(told=session.told)
    run = _cuda_step if session.candidate.is_cuda else _python_step
    for number, step in enumerate(steps):
        try:
            run(session, checker, step, number, course)
        except SessionEndedError as end:
            ran = [(PLAIN, Ran(end.outcome, refused=_words(end)))]
            course.add(step, judge_step(step, checker, ran, poisoned=False))
            course.ended = end.outcome.message
            break
    return course


def _words(end: SessionEndedError) -> str:
    return end.outcome.message


def _python_step(session: Session, checker: Checker, step: Step, number: int, course: Course) -> None:
    """A case that stands alone is called twice, with the same contents at another place: equal bits are stated, and both must be right."""
    axes = step.case.lengths
    if not step.follows or step.weights:
        session.make(axes, step.inputs)
    first = session.call(axes, step.inputs, same_place=step.follows and number > 0)
    ran = [(PLAIN, first)]
    if not step.follows and first.outputs is not None:
        again = session.call(axes, step.inputs)
        ran.append((PLAIN, again))
        if again.outputs is not None:
            course.repeated += 1
            if not same_bits(first.outputs, again.outputs):
                course.differed.append(step.label)
    course.add(step, judge_step(step, checker, ran, poisoned=False))


def _cuda_step(session: Session, checker: Checker, step: Step, number: int, course: Course) -> None:
    """All configurations of the checker, the first one twice, and for the first cases a sanitised one, and one of several calls."""
    plain = list(checker.configurations(step.case))
    sanitised = [Configuration("gpu", checked=True)] if number < SANITISED_CASES else []
    wanted = [*plain, plain[0], *sanitised]
    # Inputs that a call may write are other ones in the next.
    again = plain[:1] if number < SANITISED_CASES and not session.posed.problem.mutates else []
    ran = session.execute(step.case.lengths, step.inputs, wanted, CPU_SECONDS, again)
    pairs, later = list(zip(wanted, ran, strict=False)), list(zip(again, ran[len(wanted) :], strict=False))
    course.add(step, _with_later(step, checker, judge_step(step, checker, pairs[: len(plain)], poisoned=True), later))
    for configuration, one in pairs:
        course.sanitised += configuration.checked and one.outcome.status != "compile_error"
        course.hazards += [f"{hazard} ({configuration.schedule} order)" for hazard in one.hazards]
        if configuration.checked and one.outcome.status in FAULTS:
            course.hazards.append(f"{one.outcome.status.replace('_', ' ')}: {one.outcome.message}")
    outputs = [one.outputs for _, one in pairs]
    if len(outputs) > len(plain) and outputs[0] is not None and (second := outputs[len(plain)]) is not None:
        course.repeated += 1
        if not same_bits(outputs[0], second):
            course.differed.append(step.label)
    others = [o for c, o in zip(plain[1:], outputs[1:], strict=False) if o is not None and c.schedule != "gpu"]
    if outputs and outputs[0] is not None and others:
        course.orders += 1
        first = outputs[0]
        if any(not same_bits(first, other) for other in others):
            course.by_order.append(step.label)


def _with_later(step: Step, checker: Checker, judged: Judged, later: Sequence[tuple[Configuration, Ran]]) -> Judged:
    """A case whose first calls were judged, with what a later call in the same process says against it."""
    if not later or judged.record.verdict != "accept":
        return judged
    record = judge_step(step, checker, later, poisoned=True).record
    if record.verdict == "accept":
        return judged
    why = f"in a later call of the same process: {record.why}"
    return dataclasses.replace(judged, record=judged.record.model_copy(update={"verdict": record.verdict, "why": why}))
