"""Numbers and sentences as people read them, the same in the terminal and in HTML."""

from __future__ import annotations

from truekernel.audit.scores import CheckerScore, Interval, Rate, VacuousEntry
from truekernel.audit.summary import Change, HazardSummary, Summary, WitnessSummary, WorstElement


def count(value: float) -> str:
    """1234 -> "1,234"; counts that are shared between rules keep one decimal."""
    return f"{value:,.0f}" if abs(value - round(value)) < 0.05 else f"{value:,.1f}"


def programs(summary: Summary) -> str:
    """ "1 program", "38 programs"."""
    n = len(summary.programs)
    return f"{n} program{'' if n == 1 else 's'}"


def percent(share: float | None, *, digits: int = 1) -> str:
    """0.1734 -> "17.3 %"; None -> "-"; what would round to zero but is not keeps a digit."""
    if share is None:
        return "-"
    if 0 < abs(share) * 100 < 0.5 * 10**-digits:
        return f"{share * 100:.1g} %"
    return f"{share * 100:.{digits}f} %"


def points(share: float) -> str:
    """0.0327 -> "+3.3 points"."""
    rounded = round(share * 100, 1)
    return f"{rounded:+.1f} points" if rounded else "0.0 points"


def shown(rate: Rate) -> Interval:
    """The interval that is shown: from the lower to the upper end of Wilson's and the bootstrap over problems.

    The bootstrap is too narrow with few problems and none at all at 0 or 1; Wilson's takes mutants of one problem as independent.
    """
    if rate.bootstrap is None:
        return rate.wilson
    return Interval(low=min(rate.wilson.low, rate.bootstrap.low), high=max(rate.wilson.high, rate.bootstrap.high))


def interval(rate: Rate) -> str:
    """ "[16.1, 17.8]", in percent; "" when there is nothing to give an interval of."""
    if rate.value is None:
        return ""
    ends = shown(rate)
    return f"[{ends.low * 100:.1f}, {ends.high * 100:.1f}]"


def explained(rate: Rate) -> str:
    """One line with everything that is known about a rate, for tooltips."""
    if rate.value is None:
        return "nothing to count"
    parts = [
        f"{count(rate.hits)} of {count(rate.n)} = {percent(rate.value)}",
        f"Wilson [{rate.wilson.low * 100:.1f}, {rate.wilson.high * 100:.1f}]",
    ]
    if rate.bootstrap is not None:
        parts.append(f"bootstrap over problems [{rate.bootstrap.low * 100:.1f}, {rate.bootstrap.high * 100:.1f}]")
    if rate.macro is not None:
        parts.append(f"mean of problems {percent(rate.macro)}")
    return "; ".join(parts)


def headline(score: CheckerScore) -> str:
    """The sentence that a checker comes down to."""
    if score.broken:
        return f"{score.title} could not be scored: {score.broken}."
    if score.miss.value is None:
        return f"{score.title}: no wrong kernel was proven, so there is no miss rate."
    rejected = score.false_rejection
    right = f"rejects {count(rejected.hits)} of {count(rejected.n)} right ones" if rejected.n else "met no right ones"
    return (
        f"{score.title} accepts {percent(score.miss.value)} of {count(score.miss.n)} wrong kernels "
        f"{interval(score.miss)} and {right}."
    )


def leading(summary: Summary) -> CheckerScore | None:
    """The checker of the headline: the first published one that could be scored, else the first."""
    scored = [score for score in summary.checkers if not score.broken]
    fallback = next(iter(scored or summary.checkers), None)
    return next((score for score in scored if score.published), fallback)


def tolerance(value: float) -> str:
    """0.01 -> "1e-2"."""
    mantissa, exponent = f"{value:.1e}".split("e")
    digits = mantissa.removesuffix(".0")
    return f"{digits}e{int(exponent)}"


def scales(value: float | None) -> str:
    """An error in units of the error scale."""
    if value is None:
        return "not finite"
    return f"{value:,.2f}" if 0.01 <= abs(value) < 1e5 else f"{value:.3g}"


def element(worst: WorstElement) -> str:
    """The element with the worst error, both values."""
    place = ", ".join(map(str, worst.index))
    return f"{worst.output}[{place}] is {_number(worst.got)}, should be {_number(worst.truth)}"


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.9g}"


def margin(entry: VacuousEntry) -> str:
    """How far inside the tolerance a trivial output lies."""
    if not entry.margin < 1:
        return "passes"
    if entry.margin <= 0:
        return "equals the reference"
    times = 1 / entry.margin
    return f"{times:,.0f} times inside" if times >= 10 else f"{times:.1f} times inside"


def place(change: Change) -> str:
    """Where a rule applied."""
    return f"{'launch plan' if change.file == 'py' else 'kernel'} line {change.line}, column {change.column}"


def hazard_place(hazard: HazardSummary) -> str:
    """Where a hazard struck, as far as known."""
    parts = []
    if hazard.block is not None:
        parts.append(f"block {_triple(hazard.block)}")
    if hazard.thread is not None:
        parts.append(f"thread {_triple(hazard.thread)}")
    if hazard.line is not None:
        parts.append(f"line {hazard.line}")
    if hazard.buffer is not None:
        parts.append(f"{hazard.buffer}{'' if hazard.offset is None else f' at byte {hazard.offset}'}")
    return ", ".join(parts) or "not known"


def _triple(index: tuple[int, int, int]) -> str:
    return "(" + ", ".join(map(str, index)) + ")"


def axes(lengths: dict[str, int]) -> str:
    """ "batch=16, columns=257"."""
    return ", ".join(f"{name}={length}" for name, length in lengths.items())


def witness_case(witness: WitnessSummary) -> str:
    """The input of a witness in one line."""
    schedule = witness.schedule if witness.schedule != "random" else f"random (seed {witness.schedule_seed})"
    return f"{witness.recipe}, seed {witness.seed}, {axes(witness.axes)}, schedule {schedule}"


def replay_command(mutant: str, directory: str) -> str:
    """What to type to see a mutant's witness again."""
    return f"truekernel replay {mutant} --run {_quoted(directory)}"


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)


def audit_command(summary: Summary) -> str:
    """What to type to make the same run again."""
    run = summary.run
    words = ["truekernel", "audit"]
    words += [word for name in run.checkers for word in ("--checker", name)]
    words += [word for name in run.problems for word in ("--problems", name)]
    words += [word for name in run.rules for word in ("--rules", name)]
    if run.sample is not None:
        words += ["--sample", str(run.sample)]
    words += ["--seed", str(run.seed), "--run", run.directory]
    return " ".join(map(_quoted, words))
