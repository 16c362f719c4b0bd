"""Numbers and sentences as people read them, the same in the terminal and in HTML."""

from __future__ import annotations

import shlex

from truekernel.audit.scores import CheckerScore, ErrorSize, Interval, Rate, VacuousEntry
from truekernel.audit.summary import Change, Summary, WitnessSummary, WorstElement
from truekernel.checkers.external_command import PREFIX, is_command

_LIMIT = "1e+300"
"""How a ratio to nothing prints: the largest that is stored."""
_ENDS = {
    "out_of_bounds": "an access out of bounds",
    "misaligned": "a misaligned access",
    "trap": "a trap",
    "timeout": "a timeout",
    "crash": "a crash",
    "deadlock": "a deadlock",
    "barrier_divergence": "a barrier that not all threads reach",
}


def count(value: float) -> str:
    """1234 -> "1,234"; counts that are shared between rules keep one decimal."""
    return f"{value:,.0f}" if abs(value - round(value)) < 0.05 else f"{value:,.1f}"


def mutants(n: float) -> str:
    """ "1 mutant", "145.5 mutants"."""
    return f"{count(n)} mutant{'' if count(n) == '1' else 's'}"


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
        return f"{score.title} could not be scored: {broken(score)}."
    if score.miss.value is None:
        return f"{score.title}: no wrong kernel was proven, so there is no miss rate."
    rejected = score.false_rejection
    right = f"rejects {count(rejected.hits)} of {count(rejected.n)} right ones" if rejected.n else "met no right ones"
    return (
        f"{score.title} accepts {percent(score.miss.value)} of {count(score.miss.n)} wrong kernels "
        f"{interval(score.miss)} and {right}."
    )


def broken(score: CheckerScore) -> str:
    """Why a checker could not be scored, without its name."""
    return score.broken.removeprefix(score.name).strip().rstrip(".")


def leading(summary: Summary) -> CheckerScore | None:
    """The checker of the headline: the user's own if there is one; else the first published one that could be scored, in its newest era; else the first."""
    own = [score for score in summary.checkers if score.users_own]
    scored = [score for score in own or summary.checkers if not score.broken]
    first = next((score for score in scored if score.published), None)
    if own or first is None:
        return next(iter(scored or own or summary.checkers), None)
    return min(_eras(first, scored), key=_era)


def beside(summary: Summary) -> tuple[str, ...]:
    """The sentences under the headline: its checker on grossly wrong kernels, and the other eras of the same checker."""
    lead = leading(summary)
    if lead is None or lead.broken or lead.miss.value is None:
        return ()
    sentences = []
    gross = lead.miss_gross
    if gross.n:
        sentences.append(
            f"Of the {count(gross.n)} grossly wrong ones (a fault, a NaN or an infinity, or over 100 error scales off on the case that proves them "
            f"wrong) it accepts {percent(gross.value)} {interval(gross)}."
        )
    for other in _eras(lead, summary.checkers):
        if other is not lead and not other.broken:
            also = f", {percent(other.miss_gross.value)} of the grossly wrong ones" if other.miss_gross.n else ""
            sentences.append(f"{other.title} accepts {percent(other.miss.value)} of all {interval(other.miss)}{also}.")
    return tuple(sentences)


def _eras(score: CheckerScore, among: tuple[CheckerScore, ...] | list[CheckerScore]) -> list[CheckerScore]:
    """The tolerance eras of a published checker: those with the same name before "@"."""
    base = score.name.partition("@")[0]
    return [other for other in among if other.published and other.name.partition("@")[0] == base]


def _era(score: CheckerScore) -> float:
    """A tolerance from the checker's name: published ones have become smaller."""
    try:
        return float(score.name.partition("@")[2])
    except ValueError:
        return 0.0


def tolerance(value: float) -> str:
    """0.01 -> "1e-2"."""
    mantissa, exponent = f"{value:.1e}".split("e")
    digits = mantissa.removesuffix(".0")
    return f"{digits}e{int(exponent)}"


def scales(value: float | None) -> str:
    """An error in units of the error scale."""
    if value is None:
        return "not finite"
    if value == 0:
        return "0"
    if 100 <= abs(value) < 1e5:
        return f"{value:,.0f}"
    return f"{value:.2f}" if 0.01 <= abs(value) < 100 else f"{value:.3g}"


def size(name: ErrorSize) -> str:
    """A size of error where nothing around it says what is measured."""
    return f"{name} error scales" if name in ("5 to 100", "under 5") else name


def honest(worst: float) -> str:
    """How far honest programs stray on a case."""
    return f"honest programs stay within {scales(worst)}" if worst else "honest programs are exact"


def plain(why: str) -> str:
    """A stored reason as people read it."""
    return why.replace(_LIMIT, "infinitely many")


def element(worst: WorstElement) -> str:
    """The element with the worst error, both values."""
    place = f"[{', '.join(map(str, worst.index))}]" if worst.index else ""
    return f"{worst.output}{place} is {_number(worst.got)}, should be {_number(worst.truth)}"


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.9g}"


def margin(entry: VacuousEntry) -> str:
    """How far inside the tolerance a trivial output lies."""
    if not entry.margin < 1:
        return "passes"
    if entry.margin <= 0:
        return "equals the reference"
    times = 1 / entry.margin
    if times < 1.05:
        return "just inside"
    return f"{times:,.0f} times inside" if times >= 10 else f"{times:.1f} times inside"


def place(change: Change) -> str:
    """Where a rule applied."""
    return f"{'launch plan' if change.file == 'py' else 'kernel'} line {change.line}, column {change.column}"


def axes(lengths: dict[str, int]) -> str:
    """ "batch=16, columns=257"."""
    return ", ".join(f"{name}={length}" for name, length in lengths.items())


def witness_case(witness: WitnessSummary) -> str:
    """The input of a witness in one line."""
    schedule = witness.schedule if witness.schedule != "random" else f"random (seed {witness.schedule_seed})"
    return f"{witness.recipe}, seed {witness.seed}, {axes(witness.axes)}, schedule {schedule}"


def witness_words(witness: WitnessSummary) -> str:
    """What a witness shows, in one sentence."""
    if witness.status != "ok":
        return f"ends in {_ENDS.get(witness.status, witness.status.replace('_', ' '))}"
    where = "" if witness.element is None else element(witness.element)
    if witness.size == "NaN or infinity":
        return "; ".join(part for part in (witness.why, where) if part)
    off = (
        "not finite in error scales, as nothing may be off there"
        if witness.worst is None
        else f"{scales(witness.worst)} error scales off"
    )
    return f"{where + ', ' if where else ''}{off}; {honest(witness.honest_worst)}"


def replay_command(mutant: str, directory: str) -> str:
    """What to type to see a mutant's witness again."""
    return f"truekernel replay {mutant} --run {shlex.quote(directory)}"


def references(summary: Summary) -> str:
    """Whose references and inputs these are, where they are not ours, and which problems were left out."""
    run = summary.run
    words = f"References and inputs are those of KernelBench, from {run.kernelbench}."
    if run.left_out:
        words += f" Left out: {'; '.join(f'{name} ({why})' for name, why in run.left_out.items())}."
    return words


def audit_command(summary: Summary) -> str:
    """What to type to make the same run again."""
    run = summary.run
    words = ["truekernel", "audit"]
    commands = [name for name in run.checkers if is_command(name)]
    words += [word for name in run.checkers if name not in commands for word in ("--checker", name)]
    words += [word for name in commands for word in ("--checker-cmd", name.partition(":")[2])]
    limits = [name.partition(":")[0].removeprefix(f"{PREFIX}@") for name in commands]
    words += ["--checker-seconds", limits[0]] if limits else []
    words += [word for path in run.programs for word in ("--program", path)]
    words += ["--solves", run.solves] if run.programs and run.solves else []
    words += ["--kernelbench", run.kernelbench] if run.kernelbench else []
    words += [word for name in run.problems for word in ("--problems", name)]
    words += [word for name in run.rules for word in ("--rules", name)]
    if run.sample is not None:
        words += ["--sample", str(run.sample)]
    words += ["--device", run.device] if run.device != "cpu" else []
    words += ["--seed", str(run.seed), "--run", run.directory]
    return " ".join(map(shlex.quote, words))
