"""What moving a tolerance, or an improved checker's inputs and tolerance taken apart, would change."""

from __future__ import annotations

import math
from collections.abc import Sequence

from truekernel.audit.intervals import two_factor_split
from truekernel.audit.population import Honest, Unique
from truekernel.audit.scores import CurveMark, CurvePoint, GainSplit, ToleranceCurve
from truekernel.audit.verdicts import Bench, Subject, failed

TOLERANCES: tuple[float, ...] = tuple(10 ** (exponent / 4) for exponent in range(-32, 1))
"""Flat tolerances of the curves: four a decade from 1e-8 to 1."""


def flat_needed(subject: Subject, bench: Bench, suite: str) -> float | None:
    """Least flat tolerance under which a suite accepts the subject; infinite when an execution ends in a fault, None when that is open."""
    seen = {(e.case_id, e.configuration): e for e in subject.executions}
    wanted = [(entry.case_id, c) for entry in bench.suite(subject.problem, suite) for c in entry.configurations]
    found = [seen[request] for request in wanted if request in seen]
    if any(failed(execution) for execution in found):  # what follows a fault was not executed
        return math.inf
    if len(found) < len(wanted) or any(execution.outcome.status != "ok" for execution in found):
        return None
    return max((execution.statistics["flat"] for execution in found), default=0.0)


def tolerance_curve(
    suite: str,
    title: str,
    marks: Sequence[CurveMark],
    bench: Bench,
    mutants: Sequence[Unique],
    variants: Sequence[Honest],
) -> ToleranceCurve:
    """Detection (over witnessed mutants) and false rejection (over outer honest variants) of a suite's inputs at each flat tolerance."""
    wrong = [flat_needed(m.record, bench, suite) for m in mutants if m.fate == "witnessed"]
    right = [flat_needed(v.record, bench, suite) for v in variants if v.record.role == "outer"]
    wrong_known = [x for x in wrong if x is not None]
    right_known = [x for x in right if x is not None]
    points = [
        CurvePoint(tolerance=t, detection=_share_above(wrong_known, t), false_rejection=_share_above(right_known, t))
        for t in TOLERANCES
    ]
    return ToleranceCurve(suite=title, points=tuple(points), marks=tuple(marks))


def _share_above(values: Sequence[float], limit: float) -> float:
    return sum(value > limit for value in values) / len(values) if values else 0.0


def gain_split(base: str, improved: str, bench: Bench, mutants: Sequence[Unique]) -> GainSplit | None:
    """How the fall of the miss rate from `base` to `improved` divides between inputs and tolerance; None without mutants that all four
    combinations decide."""
    combinations = ((base, base), (improved, base), (base, improved), (improved, improved))
    rows = []
    for mutant in mutants:
        if mutant.fate == "witnessed":
            states = [bench.verdict(mutant.record, suite, judged_by=judge).state for suite, judge in combinations]
            if "undetermined" not in states:
                rows.append([state == "accept" for state in states])
    if not rows:
        return None
    miss = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    split = two_factor_split(*(1 - m for m in miss))
    return GainSplit(
        base=base,
        improved=improved,
        base_miss=miss[0],
        inputs_miss=miss[1],
        tolerance_miss=miss[2],
        improved_miss=miss[3],
        inputs_first=split["first"][0],
        inputs_last=split["first"][1],
        inputs_mean=split["first"][2],
        tolerance_first=split["second"][0],
        tolerance_last=split["second"][1],
        tolerance_mean=split["second"][2],
        n=len(rows),
    )
