"""The verdict on one candidate: a frozen record, strict about its fields, that goes into bundles and out of `--json`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

FORMAT = 1
Word = Literal["right", "wrong", "hazard", "vacuous", "undetermined"]
MEANING: dict[str, str] = {
    "right": "every case came out as honest arithmetic allows, and nothing was found that speaks against it",
    "wrong": "a case came out wrong, or the candidate broke a rule",
    "hazard": "all values are right, but a sanitised execution proves a fault that they do not show",
    "vacuous": "a trivial output passes the same cases: the problem can't tell right from wrong",
    "undetermined": "the cases do not decide",
}
NOT_COVERED = (
    "how it runs on a GPU: compiler, rounding of approximate functions, tensor cores, real timing between blocks",
    "lengths far beyond those of its cases",
    "speed: nothing was timed",
)
NOT_COVERED_CUDA = (
    "host code around the kernels, which was not run: the launch plan stands for it",
    "integer overflow, shifts and conversions that are undefined in C++ are only reported",
)
NOT_COVERED_VERSIONS = "what it is for GPUs other than compute capability 8.0, or CUDA other than 12.4: it names them"
NOT_COVERED_PYTHON = ("memory faults inside of library calls: Python candidates have no sanitised build",)


class Record(BaseModel):
    """Base of the verdict's records."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class WallRecord(Record):
    """One wall around the candidate."""

    name: str
    up: bool
    detail: str


class CaseRecord(Record):
    """One case and what came of it."""

    case_id: str
    axes: dict[str, int]
    recipe: str
    seed: int
    """Secret until the check was over."""
    follows: bool
    """Whether the inputs overwrote those of the case before, with the same weights."""
    near: bool
    """Whether only one element of each input differed from the case before."""
    verdict: Literal["accept", "reject", "undetermined"]
    why: str = ""
    share: float | None = None
    """Largest share of the allowed error that the outputs use; null without outputs."""
    output_sha256: str = ""
    """Over the bytes of all outputs, all executions one after the other."""


class PrecisionRecord(Record):
    """In what precision the candidate computes."""

    declared: str
    found: str
    why: str


class StateRecord(Record):
    """A piece of process-global state that the candidate changed, as its own process tells it."""

    stage: Literal["import", "calls"]
    """While its file was imported, or while it was called."""
    name: str
    before: str
    after: str


class Verdict(Record):
    """What is said of a candidate."""

    format: int = FORMAT
    word: Word
    why: str
    """One line."""
    candidate: str
    form: str
    candidate_sha256: str
    problem: str
    problem_sha256: str
    checker: str
    cases: tuple[CaseRecord, ...]
    dropped: tuple[str, ...]
    """Cases that were left out before the candidate ran, each with the reason."""
    trivial: tuple[str, ...]
    """Trivial outputs that pass all cases."""
    deterministic: bool | None
    """Whether repeated executions gave the same bits; null when nothing was repeated."""
    determinism: str
    precision: PrecisionRecord
    hazards: tuple[str, ...]
    state: tuple[StateRecord, ...] = ()
    """Numeric switches, clocks, comparisons, environment and the like that are not what they were. Nothing of it reaches the reference or the verdict; whoever runs the candidate beside other code must know."""
    walls: tuple[WallRecord, ...]
    not_covered: tuple[str, ...]
    notes: tuple[str, ...]
    versions: dict[str, str]
    seconds: dict[str, float]
    """Wall clock by stage: preparing, candidate, total."""

    @property
    def exit_code(self) -> int:
        """0 when it is right, else 1."""
        return 0 if self.word == "right" else 1

    def same_as(self, other: Verdict) -> list[str]:
        """What differs from another verdict on the same candidate, apart from times, walls and versions."""
        found = []
        for name in ("word", "candidate_sha256", "problem_sha256", "checker", "trivial", "hazards"):
            if getattr(self, name) != getattr(other, name):
                found.append(name)
        mine, theirs = ([(c.case_id, c.follows, c.verdict) for c in v.cases] for v in (self, other))
        if mine != theirs:
            found.append("cases")
        if self.precision.found != other.precision.found:
            found.append("precision")
        return found
