"""What an audit stores: one document for each problem, honest variant and mutant."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from truekernel.model import Execution, Fill, MadeBy, Schedule


class Record(BaseModel):
    """Base of what goes into the store: frozen, and strict about unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    def document(self) -> dict[str, Any]:
        """As JSON types."""
        return self.model_dump(mode="python")


class CaseRecord(Record):
    """A case as it can be made again on any machine."""

    id: str
    axes: dict[str, int]
    recipe: str
    seed: int


class SuiteEntry(Record):
    """One execution that a checker asks for: case and configuration, as in `Execution`."""

    case_id: str
    schedule: Schedule
    schedule_seed: int
    fill: Fill


class VacuousPair(Record):
    """A trivial output that a checker accepts on a problem."""

    checker: str
    size: Literal["audit", "official"]
    trivial: str
    """Which trivial output passes: zeros, mean, ..."""
    margin: float
    """Largest share of the allowed error that the trivial output uses; below 1 it passes."""
    note: str = ""


class CaseGate(Record):
    """What a case is worth under a checker, told without any mutant."""

    checker: str
    case_id: str
    share: float
    """Largest share of the allowed error that an honest program of the panel uses."""
    valid: bool
    """The panel passes with a margin of two."""
    blind: bool
    """The result in the next lower precision passes too: the case does not see precision."""


class ProblemRecord(Record):
    """A problem as it was set up: cases, suites, gates."""

    name: str
    family: str
    linear: bool
    cases: tuple[CaseRecord, ...]
    suites: dict[str, tuple[SuiteEntry, ...]]
    """By checker."""
    vacuous: tuple[VacuousPair, ...]
    official_note: dict[str, str]
    """By checker: why vacuity at official sizes could not be computed, when it could not."""
    gates: tuple[CaseGate, ...] = ()
    """Of all cases, those that a checker dropped included."""


class HonestRecord(Record):
    """An honest variant and what it did on every suite."""

    id: str
    problem: str
    program: str
    rule: str
    role: Literal["panel", "outer"]
    independent: bool
    gate: str
    """"" when the variant passed the gate; else why it did not (it is then not counted as honest)."""
    executions: tuple[Execution, ...]
    rejected_by: dict[str, str] = {}
    """Checkers that are callables: why they rejected, by checker."""
    broken: dict[str, str] = {}
    """Checkers that are callables and failed: why, by checker."""
    accepted_by: tuple[str, ...] = ()
    """Checkers that are callables and accepted."""


class Hazard(Record):
    """A fault that a sanitised execution or an overwritten red zone proves, although no output need show it."""

    outcome: str
    message: str
    schedule: str
    thread: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    line: int | None = None
    buffer: str | None = None
    offset: int | None = None


class WorstElement(Record):
    """The element with the worst error: its place in the output, and both values (None where JSON has no number: NaN and infinities)."""

    output: str
    index: tuple[int, ...]
    got: float | None
    truth: float | None


class Witness(Record):
    """A replayable proof that a mutant is wrong."""

    case_id: str
    schedule: Schedule
    schedule_seed: int
    fill: Fill
    why: str
    status: str
    worst: float | None
    honest_worst: float
    """Largest error of honest variants there, in error scales."""
    honest_nonfinite: bool
    """Whether some honest variant shows a NaN/Inf class there that the truth does not."""
    output_hash: str
    element: WorstElement | None
    confirmed: bool
    """Executed once more, it gave the same outcome and the same bits."""


class MutantRecord(Record):
    """A mutant and all that was seen of it."""

    id: str
    program: str
    problem: str
    file: Literal["cu", "py"]
    made_by: tuple[MadeBy, ...]
    diff: str
    status: Literal["stillborn", "identical", "duplicate", "ran"]
    code_hash: str = ""
    """Hash of normalised machine code and launch plans."""
    duplicate_of: str = ""
    compile_error: str = ""
    executions: tuple[Execution, ...] = ()
    """On the suites of all checkers."""
    rejected_by: dict[str, str] = {}
    broken: dict[str, str] = {}
    accepted_by: tuple[str, ...] = ()
    witness: Witness | None = None
    quarantine: Literal["", "masked", "unobserved"] = ""
    survivor_confirmed: bool | None = None
    """For a mutant that some checker accepts: whether it gave the same bits once more, on a GPU on all of that checker's cases, on a CPU on the first."""
    repeats: dict[str, tuple[int, int]] = {}
    """For a mutant that does not give the same bits twice on a GPU: by checker that accepted it, in how many repetitions it was rejected, and of how many."""
    reseeded: dict[str, bool] = {}
    """For each uniform-input checker that accepted it: whether other seeds of the same recipe would have rejected it."""
    worst: float | None = None
    """Largest error seen on any case, in error scales, for a quarantined mutant."""
    host_differs: bool = False
    """Some execution met behaviour that C++ on a CPU leaves open and CUDA defines; without a witness it is not scored."""
    infrastructure: bool = False
    """The machine failed on it twice; without a witness it is not scored."""
    hazards: tuple[Hazard, ...] = ()
