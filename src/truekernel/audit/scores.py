"""How checkers did, as records: rates with their uncertainty, the curves and splits made from them, and which case kills what.

Shares are numbers between 0 and 1. Counts of mutants may be fractional where a mutant that several (rule, site) pairs make is split
equally between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from pydantic import Field

from truekernel.audit.records import Record

SizeName = Literal["audit", "official"]
ErrorSize = Literal["fault", "NaN or infinity", "over 100 error scales", "5 to 100", "under 5"]
"""How wrong a mutant is on its witness, the worst first; numbers are its worst error in error scales."""
ERROR_SIZES: tuple[ErrorSize, ...] = get_args(ErrorSize)
GROSS: tuple[ErrorSize, ...] = ERROR_SIZES[:3]
"""No tolerance that a right kernel needs excuses these."""


def error_size(status: str, why: str, worst: float | None) -> ErrorSize:
    """Size of the error that a witness shows. `status`: how its execution ended; `why`: the proof in words; `worst`: in error scales, None where that is no number."""
    if status != "ok":
        return "fault"
    if "NaN" in why:
        return "NaN or infinity"
    if worst is None or worst > 100:
        return "over 100 error scales"
    return "5 to 100" if worst >= 5 else "under 5"


class Interval(Record):
    """A 95 % interval."""

    low: float
    high: float


class Rate(Record):
    """A share of mutants or honest variants, with its uncertainty."""

    hits: float
    """How many of `n` (may be fractional)."""
    n: float
    """Out of how many."""
    value: float | None
    """hits / n; None when n is 0."""
    wilson: Interval
    """Wilson's interval, which takes mutants as independent; [0, 1] when n is 0."""
    bootstrap: Interval | None = None
    """Percentile interval when whole problems are drawn with replacement; None with fewer than two problems."""
    macro: float | None = None
    """Mean of the problems' own rates, each problem weighing the same."""

    @classmethod
    def over(cls, clusters: Mapping[str, tuple[float, float]], *, seed: int = 0) -> Rate:
        """The rate over problems given as name -> (hits, n), with both intervals and the mean over problems."""
        from truekernel.audit.intervals import cluster_bootstrap, wilson

        hits = sum(h for h, _ in clusters.values())
        n = sum(n for _, n in clusters.values())
        low, high = wilson(hits, n)
        drawn = cluster_bootstrap(clusters, seed=seed)
        own = [h / m for h, m in clusters.values() if m > 0]
        return cls(
            hits=hits,
            n=n,
            value=hits / n if n else None,
            wilson=Interval(low=low, high=high),
            bootstrap=None if drawn is None else Interval(low=drawn[0], high=drawn[1]),
            macro=sum(own) / len(own) if own else None,
        )


class GroupRate(Record):
    """The rate of one class, rule, family, problem or size of error."""

    name: str
    rate: Rate


class SettlingPoint(Record):
    """A checker's miss rate over random sub-samples of `n` witnessed mutants: mean and 95 % range."""

    n: int
    mean: float
    low: float
    high: float


class CaseCounts(Record):
    """What a checker's cases are worth, over all problems; told by references and honest programs, without any mutant."""

    cases: int
    blind: int
    """On these it accepts the result in the next lower precision (TF32 for float32, bfloat16 for half, 8 bits for bfloat16)."""
    dropped: int
    """It leaves these out, since honest programs do not pass them with a margin of two. Not among `cases`."""


class CheckerScore(Record):
    """All that is known about one checker."""

    name: str
    """As asked for on the command line: "kernelbench@1e-2", "mypkg.mod:fn"."""
    title: str
    """As shown: the name, and "(scaled)" when its results are for other than official sizes."""
    version: str = ""
    source_url: str = ""
    inputs: str = ""
    """One line: which cases it runs."""
    tolerance: str = ""
    """One line: how it compares."""
    case_counts: CaseCounts | None = None
    """None for a checker that is a callable."""
    published: bool = True
    """Others wrote it, and we measure a copy of its rules."""
    users_own: bool = False
    """A callable or a command of the user's."""
    broken: str = ""
    """Why it could not be scored (it raised, or returned something that is no verdict); "" when all went well. Rates of a broken
    checker cover what it did judge, and are not to be quoted."""
    miss: Rate
    """Witnessed mutants that it accepts."""
    false_rejection: Rate
    """Outer honest variants that it rejects."""
    false_rejection_independent: Rate
    """The same over independent implementations alone."""
    miss_with_quarantined: Rate
    """Mutants that it accepts, with masked and unobserved ones counted as faulty too."""
    miss_without_vacuous: Rate
    """Witnessed mutants that it accepts, problems on which it is vacuous left out."""
    false_rejection_without_vacuous: Rate
    miss_by_class: tuple[GroupRate, ...] = ()
    miss_by_rule: tuple[GroupRate, ...] = ()
    miss_by_family: tuple[GroupRate, ...] = ()
    miss_by_problem: tuple[GroupRate, ...] = ()
    miss_by_size: tuple[GroupRate, ...] = ()
    """By size of the error on the mutant's witness, the worst first: a fault, a NaN or an infinity, over 100 error scales, 5 to 100, under 5."""
    miss_gross: Rate = Field(default_factory=lambda: Rate.over({}))
    """Of the first three of these sizes: witnessed mutants whose error no tolerance excuses."""
    false_rejection_by_rule: tuple[GroupRate, ...] = ()
    """By benign rule; "as written" stands for programs that no rule changed."""
    false_rejection_by_family: tuple[GroupRate, ...] = ()
    false_rejection_by_problem: tuple[GroupRate, ...] = ()
    caught_by_output: float = 0
    """Witnessed mutants rejected because of what they put out."""
    caught_by_crash: float = 0
    """Witnessed mutants that count as caught because they ended in a fault that a GPU reports."""
    caught_by_timeout: float = 0
    undetermined: float = 0
    """Mutants and variants on which its stored statistics did not decide; in no rate."""
    settling: tuple[SettlingPoint, ...] = ()
    seed_blind: Rate | None = None
    """Of its misses: those that no other seed of the same recipes would have caught. None when its inputs are not drawn from a seed."""


class CurvePoint(Record):
    """What a suite would detect and reject wrongly if its judge were |o - r| <= t + t |r|."""

    tolerance: float
    """t, absolute and relative alike."""
    detection: float
    """Share of witnessed mutants rejected."""
    false_rejection: float
    """Share of outer honest variants rejected."""


class CurveMark(Record):
    """Where a checker stands on the curve of its own inputs."""

    checker: str
    tolerance: float


class ToleranceCurve(Record):
    """Detection against false rejection for one suite of published inputs as the flat tolerance moves."""

    suite: str
    """Which inputs, in words."""
    points: tuple[CurvePoint, ...]
    """By rising tolerance."""
    marks: tuple[CurveMark, ...] = ()


class GainSplit(Record):
    """How much of an improved checker's gain comes from its inputs and how much from its tolerance. All figures are shares of witnessed
    mutants; a gain is the fall of the miss rate."""

    base: str
    improved: str
    base_miss: float
    inputs_miss: float
    """Miss rate with the improved checker's inputs and the base's tolerance."""
    tolerance_miss: float
    """Miss rate with the base's inputs and the improved checker's tolerance."""
    improved_miss: float
    inputs_first: float
    """Gain of the inputs when they change first."""
    inputs_last: float
    inputs_mean: float
    """Mean of both orders (Shapley value)."""
    tolerance_first: float
    tolerance_last: float
    tolerance_mean: float
    n: float
    """Witnessed mutants that it is computed from."""


class VacuousEntry(Record):
    """A trivial output that a checker accepts on a problem."""

    problem: str
    checker: str
    size: SizeName
    trivial: str
    """Which output passes: zeros, mean, a copy of an input, another case's output."""
    margin: float
    """Largest share of the allowed error that it uses; below 1 it passes, 0.01 means a hundred times inside."""
    note: str = ""


class VacuityGap(Record):
    """A pair whose vacuity could not be computed."""

    problem: str
    checker: str
    size: SizeName
    why: str


class Vacuity(Record):
    """The vacuous (problem, checker) pairs. `audit_pairs`/`official_pairs`: how many pairs were looked at."""

    audit_pairs: int = 0
    official_pairs: int = 0
    entries: tuple[VacuousEntry, ...] = ()
    gaps: tuple[VacuityGap, ...] = ()


class KillColumn(Record):
    """One case of a checker's suite, by its place in it; `label` "all": the checker's verdict over its whole suite."""

    checker: str
    label: str
    detail: str = ""
    """Recipe and, where it is the same for all problems, seed and shape."""


class KillRow(Record):
    """A group of witnessed mutants. `killed[i]`: share of the group that column i rejects; None where the column ran none of it."""

    level: Literal["class", "rule", "problem"]
    name: str
    rule_class: str = ""
    """Of a rule."""
    n: float
    killed: tuple[float | None, ...]


class KillMatrix(Record):
    """Which case rejects which mutants."""

    columns: tuple[KillColumn, ...] = ()
    rows: tuple[KillRow, ...] = ()
