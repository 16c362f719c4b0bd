"""What `truekernel compare --json` prints."""

from __future__ import annotations

from typing import Literal

from truekernel.judge.verdict import Record, Verdict

FORMAT = 1
Launched = Literal["plan", "translated host code", "host code of its own"]


class Deciding(Record):
    """Who decided what runs. Read from the candidate's text."""

    kernels: Literal["candidate", "library"]
    """Whose device code does the work: the candidate's, or that of the libraries it calls."""
    launches: Launched
    """What says which kernel runs when: a launch plan that our process carries out, a host function that was translated into one, or Python of the candidate that runs as it is."""
    calls: tuple[str, ...]
    """Library calls that its Python names; those by other ways (methods of tensors, operators, names made at run time) are not seen."""


class Auditability(Record):
    """How far somebody else can look into a candidate."""

    files: int
    lines: int
    """Lines of its files that are not blank."""
    kernels: int
    """In its text; 0 for Python, whose kernels are the library's."""
    readable: bool
    """Whether all of its device code is there as text that parses."""
    mutated: bool
    """Whether a rule of `truekernel mutants` applies to its device code."""
    sanitised: bool
    """Whether a sanitised execution of its device code was possible."""


class TimeRow(Record):
    """A candidate's time against another's, by `truekernel bench`. Times in seconds a call, medians."""

    name: str
    """A baseline, or the other candidate's label."""
    word: str
    """FASTER, SAME, SLOWER or AMBIGUOUS."""
    ratio: float
    """The other's time over the candidate's: above 1 where the candidate is faster."""
    low: float
    high: float
    """The 95 % interval of the ratio reaches from `low` to `high`."""
    pairs: int
    """Pairs of fresh processes behind it."""
    candidate_seconds: float
    seconds: float
    precise: bool
    """Whether the other's numbers are as good as the problem's precision gives."""
    agree: bool
    """Whether the clocks of device and host tell the same."""


class Times(Record):
    """What `truekernel bench` says of one candidate; `truekernel bench --json` has every sample too."""

    word: str
    """FASTER, SAME, SLOWER or AMBIGUOUS against the fastest baseline of the problem's precision; WRONG when numbers at these lengths are wrong; IMPOSSIBLE when a call takes less time than its memory traffic."""
    why: str
    against: str
    """Name of that baseline."""
    axes: dict[str, int]
    device: str
    rows: tuple[TimeRow, ...]
    warm_seconds: float
    floor: float
    """Seconds that the memory traffic of a call takes."""
    notes: tuple[str, ...]


class Entry(Record):
    """One candidate."""

    label: str
    """A for the first one given, B for the second, ..."""
    file: str
    """As it was given."""
    verdict: Verdict
    """As `truekernel check --json` prints it; the same secret seeds for all candidates."""
    deciding: Deciding
    auditability: Auditability
    times: Times | None
    untimed: str
    """Why there are no times."""


class Pair(Record):
    """Two candidates on the same inputs: how far the outputs of their first executions lie apart, and their times side by side."""

    first: str
    second: str
    cases: int
    """Cases on which both gave outputs."""
    same_bits: bool | None
    """Whether all outputs have the same bytes; null where no case can tell."""
    largest: float | None
    """Largest difference of two values, in units of the element's error scale in the problem's own precision or of one unit in the last place, whichever is larger. 1e300 stands for infinite; null where no value could be compared."""
    where: str
    """The case of `largest`; empty where nothing differs."""
    nonfinite: int
    """Values that are NaN or infinite in one and not in the other, or of other sign."""
    others: int
    """Elements of outputs that are no values (indices, codes, ...) that differ."""
    time: TimeRow | None
    """The first one's time against the second's, measured side by side: only of the fastest candidate against each other one."""


class Compared(Record):
    """The document of `truekernel compare --json`."""

    format: int = FORMAT
    problem: str
    candidates: tuple[Entry, ...]
    pairs: tuple[Pair, ...]
    take: str
    """Label of the candidate that is advised; empty where none can be."""
    advice: str
    """Why, in one paragraph."""
    not_measured: tuple[str, ...]
    """What this comparison does not say, and why."""

    @property
    def exit_code(self) -> int:
        """0 when a candidate is advised, else 1."""
        return 0 if self.take else 1
