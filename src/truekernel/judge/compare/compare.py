"""Several candidates on the same secret inputs: verdicts, facts, pairs, and advice."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from truekernel.judge.bench.bench import BASELINES
from truekernel.judge.check import Checked, Suite, examine, prepare
from truekernel.judge.compare.advice import advise
from truekernel.judge.compare.equivalence import equivalence
from truekernel.judge.compare.handed_in import HandedIn
from truekernel.judge.compare.reading import auditability, deciding
from truekernel.judge.compare.records import Compared, Entry, Pair
from truekernel.judge.compare.timing import Timed, measure
from truekernel.judge.posing import Posed
from truekernel.judge.precision import native
from truekernel.judge.session import CALL_SECONDS

NO_TIMES = "times are not measured"
NO_ENERGY = "joules a call are not measured: that takes seconds of one candidate alone, a timing alternates blocks of milliseconds"


def compare(
    candidates: Sequence[HandedIn],
    posed: Posed,
    problem: str,
    *,
    secret: str,
    timed: bool = True,
    pairs: int = 8,
    baselines: Sequence[str] = tuple(BASELINES),
    call_seconds: float = CALL_SECONDS,
) -> Compared:
    """Judge and compare candidates, two or more. `problem`: as it was given; `secret`: where all seeds come from.

    Raises BadInputError when one has no form that can be judged, MachineError when the machine failed.
    """
    suites: dict[str, Suite] = {}
    for one in candidates:
        if one.declared not in suites:
            suites[one.declared] = prepare(posed, secret, one.declared)
    checked = {
        one.label: examine(
            one.candidate,
            posed,
            secret=secret,
            declared=one.declared,
            suite=suites[one.declared],
            call_seconds=call_seconds,
        )
        for one in candidates
    }
    right = {one.label: one.candidate for one in candidates if checked[one.label].verdict.word == "right"}
    found = Timed(missing="--no-times")
    if timed:
        found = measure(right, posed, problem, secret, pairs=pairs, baselines=baselines)
    entries = tuple(_entry(one, checked[one.label], found) for one in candidates)
    compared = _pairs(checked, next(iter(suites.values())), found)
    take, advice = advise(entries, compared, native(posed.problem))
    without = (f"{NO_TIMES}: {found.missing}",) if found.missing else ()
    return Compared(
        problem=posed.problem.name,
        candidates=entries,
        pairs=compared,
        take=take,
        advice=advice,
        not_measured=(*without, NO_ENERGY),
    )


def _entry(one: HandedIn, checked: Checked, found: Timed) -> Entry:
    why = "" if one.label in found.times else found.missing or found.untimed.get(one.label, "it is not right")
    return Entry(
        label=one.label,
        file=one.given,
        verdict=checked.verdict,
        deciding=deciding(one.candidate),
        auditability=auditability(one.candidate, sanitised=checked.sanitised > 0),
        times=found.times.get(one.label),
        untimed=why,
    )


def _pairs(checked: Mapping[str, Checked], suite: Suite, found: Timed) -> tuple[Pair, ...]:
    """Each two, in order; of those timed side by side the fastest first."""
    made = []
    for first, second in itertools.combinations(checked, 2):
        names = (second, first) if (second, first) in found.side_by_side else (first, second)
        pair = equivalence(*names, checked[names[0]].outputs, checked[names[1]].outputs, suite.strict)
        made.append(pair.model_copy(update={"time": found.side_by_side.get(names)}))
    return tuple(made)
