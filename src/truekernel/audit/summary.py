"""What an audit found, as one record: everything that a report shows, and nothing that needs the run again.

Shares are numbers between 0 and 1. Counts of mutants may be fractional where a mutant that several (rule, site) pairs make is split
equally between them. Checkers are listed in the order in which they were asked for; groups in the order of their names, classes in the order
of `model.RULE_CLASSES`. The same run always gives the same record, `RunFacts.seconds` and `RunFacts.started` aside.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from truekernel.audit.records import Record, WorstElement
from truekernel.audit.scores import ERROR_SIZES, CheckerScore, ErrorSize, GainSplit, KillMatrix, ToleranceCurve, Vacuity

SCHEMA_VERSION = 1
"""Version of the document that `--json` prints: raised when a field changes its meaning or goes away."""

SCALED_NOTE = (
    "Measured at audit sizes: problems are smaller than those that the checker's authors use, and many sums are shorter, which moves "
    "the rates. What depends on length most, whether a trivial output passes, is also computed at official sizes, from references and "
    "tolerances alone."
)

QuarantineKind = Literal["identical", "masked", "unobserved"]


class RuleSummary(Record):
    """What became of one rule's mutants. A mutant made by several rules counts in full for each."""

    name: str
    rule_class: str
    description: str
    source: str
    generated: int
    stillborn: int
    identical: int
    duplicates: int
    unique: int
    witnessed: int
    masked: int
    unobserved: int


class ProgramSummary(Record):
    """A program that was mutated. `gate`: "" when it passed, else why it did not (its mutants are then left out)."""

    name: str
    problem: str
    family: str
    traits: tuple[str, ...] = ()
    gate: str = ""
    mutants: int = 0
    unique: int = 0
    witnessed: int = 0


class Counts(Record):
    """Where every mutant went.

    generated - merged = distinct texts, of which `chosen` were run (all, or the sample);
    chosen = stillborn + identical + duplicates + unique;
    unique = witnessed + masked + unobserved + host_differs + infrastructure.
    """

    generated: int
    """(rule, site) pairs."""
    merged: int
    """Pairs whose text another pair makes too."""
    chosen: int
    stillborn: int
    """Did not compile, or asked for a launch that no GPU accepts."""
    identical: int
    """Same machine code and launches as the original: excluded, never scored."""
    duplicates: int
    """Same machine code and launches as another mutant."""
    unique: int
    witnessed: int
    masked: int
    """Quarantined: the output differs, never by more than honest variants do."""
    unobserved: int
    """Quarantined: bitwise the same on every case tried."""
    host_differs: int
    """Behaviour that C++ on a CPU leaves open; not scored."""
    infrastructure: int
    """The machine failed, not the mutant; not scored."""
    crashes: int
    """Of the witnessed: ended in a fault that a GPU reports."""
    timeouts: int
    """Of the witnessed: ran out of time."""
    hazards: int
    """Unique mutants with a fault that a sanitised execution proves although no output shows it."""
    executions: int = 0
    honest_panel: int = 0
    """Honest variants that set spreads."""
    honest_outer: int = 0
    """Honest variants that measure false rejections."""
    honest_independent: int = 0
    """Of the outer ones: independent implementations."""
    honest_refused: int = 0
    """Variants that failed the gate and are not counted as honest."""

    @property
    def balanced(self) -> bool:
        """Whether the sums above hold."""
        return (
            self.chosen <= self.generated - self.merged
            and self.chosen == self.stillborn + self.identical + self.duplicates + self.unique
            and self.unique == self.witnessed + self.masked + self.unobserved + self.host_differs + self.infrastructure
        )


class Change(Record):
    """One (rule, site) pair that makes a mutant."""

    rule: str
    rule_class: str
    file: Literal["cu", "py"]
    line: int
    column: int
    replacement: str = ""


class WitnessSummary(Record):
    """The case that proves a mutant wrong."""

    case_id: str
    axes: dict[str, int]
    recipe: str
    seed: int
    schedule: str
    schedule_seed: int
    status: str
    """How the execution ended."""
    why: str
    """In words, one line."""
    worst: float | None
    """Worst error against float64 in units of the error scale; None when the execution did not end ok or an element is not finite."""
    honest_worst: float
    """The same over all honest variants on this case; more than twice that is a proof."""
    element: WorstElement | None = None
    confirmed: bool = True
    """Executed once more, the mutant gave the same outcome and bits."""
    size: ErrorSize = "under 5"
    """How wrong it is."""


class SurvivorSummary(Record):
    """A witnessed mutant that at least one checker accepts."""

    id: str
    program: str
    problem: str
    family: str
    changes: tuple[Change, ...]
    diff: str
    accepted_by: tuple[str, ...]
    rejected_by: dict[str, str] = Field(default_factory=dict)
    """Checker -> why, in words."""
    witness: WitnessSummary
    hazards: tuple[str, ...] = ()
    confirmed: bool | None = None
    """Executed once more, the mutant gave the same bits on cases of a checker that accepts it; None when that was not tried."""

    @property
    def order(self) -> tuple[int, int, float, str]:
        """Sorts by number of checkers that accept it, most first, then by size of error, worst first."""
        worst = float("inf") if self.witness.worst is None else self.witness.worst
        return -len(self.accepted_by), ERROR_SIZES.index(self.witness.size), -worst, self.id


class QuarantinedSummary(Record):
    """A mutant that nothing proves wrong."""

    id: str
    program: str
    problem: str
    kind: QuarantineKind
    changes: tuple[Change, ...]
    diff: str
    worst: float | None = None
    """Largest error seen on any case, in error scales (masked ones)."""
    rejected_by: tuple[str, ...] = ()
    """Checkers that reject it all the same."""


class HazardSummary(Record):
    """A fault that a sanitised execution proves. `buffer`/`offset`: where, in bytes from the buffer's start (negative: before it)."""

    mutant: str
    program: str
    changes: tuple[Change, ...]
    outcome: str
    """out_of_bounds, race, uninitialised_read, ..."""
    message: str = ""
    schedule: str = ""
    thread: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    line: int | None = None
    buffer: str | None = None
    offset: int | None = None
    witnessed: bool = False
    """An output on some case shows it too."""


class RunFacts(Record):
    """What was asked for and on what machine it ran."""

    directory: str
    """The run directory as it was named on the command line."""
    checkers: tuple[str, ...]
    problems: tuple[str, ...] = ()
    """Patterns; empty = all."""
    programs: tuple[str, ...] = ()
    """Files of the user's own programs, as they were named on the command line."""
    solves: str = ""
    """The problem that these solve, where they all solve one."""
    kernelbench: str = ""
    """The checkout of KernelBench whose references and inputs were used, as it was named on the command line; "" = ours."""
    left_out: dict[str, str] = Field(default_factory=dict)
    """Problems that the checkout has no counterpart of, and why."""
    rules: tuple[str, ...] = ()
    """Patterns; empty = all."""
    sample: int | None = None
    seed: int = 0
    device: str = "cpu"
    compiler: str = ""
    """Name and version."""
    machine: str = ""
    """Processor, cores, memory."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Of python, torch, ..."""
    started: str = ""
    """Date and time, ISO 8601; "" when not recorded."""
    seconds: float | None = None
    """Wall-clock time of all sessions together."""


class Summary(Record):
    """The document that `truekernel report --json` prints and that the HTML report is made from."""

    schema_version: int = SCHEMA_VERSION
    tool_version: str
    complete: bool = True
    """False for a run that is not finished: all figures cover what is done so far."""
    run: RunFacts
    scaled: bool = True
    """Sizes are not those of the published checkers' authors."""
    scaled_note: str = SCALED_NOTE
    counts: Counts
    programs: tuple[ProgramSummary, ...]
    rules: tuple[RuleSummary, ...] = ()
    """Those that made a mutant."""
    rules_known: int = 0
    """How many rules there are."""
    checkers: tuple[CheckerScore, ...]
    curves: tuple[ToleranceCurve, ...] = ()
    gain: GainSplit | None = None
    """From kernelbench to kernelbench-verified, when both ran."""
    vacuity: Vacuity = Vacuity()
    kill_matrix: KillMatrix = KillMatrix()
    survivors: tuple[SurvivorSummary, ...] = ()
    """Those that most checkers accept first, among them the most wrong ones."""
    quarantined: tuple[QuarantinedSummary, ...] = ()
    hazards: tuple[HazardSummary, ...] = ()

    def over(self, rate: float) -> tuple[str, ...]:
        """Names of the checkers whose miss rate is above `rate`, broken ones left out."""
        return tuple(
            score.name
            for score in self.checkers
            if not score.broken and score.miss.value is not None and score.miss.value > rate
        )

    @property
    def broken(self) -> tuple[CheckerScore, ...]:
        """The checkers that could not be scored."""
        return tuple(score for score in self.checkers if score.broken)


class ReplayResult(Record):
    """A stored witness or survivor, executed again alone."""

    mutant: str
    program: str
    problem: str
    diff: str
    case_id: str
    axes: dict[str, int]
    recipe: str
    seed: int
    schedule: str
    schedule_seed: int
    stored: str
    """Outcome and error as the run recorded them, one line."""
    replayed: str
    """The same, seen now."""
    same: bool
    """Outcome and output bits are those of the run."""
    wrong: bool
    """The witness rule still proves the mutant wrong."""
    worst: float | None
    honest_worst: float
    element: WorstElement | None = None
    verdicts: dict[str, str] = Field(default_factory=dict)
    """Checker -> "accepts", or "rejects: why"."""
    message: str = ""
    """What differs, when `same` is False."""
