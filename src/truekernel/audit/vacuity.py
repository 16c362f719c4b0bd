"""Vacuous (problem, checker) pairs: at the sizes of the audit and, from references and tolerances alone, at official sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from truekernel.audit.records import VacuousPair
from truekernel.checkers import Checker, vacuity
from truekernel.checkers.vacuity import Passed, official_cases, passing_trivials
from truekernel.model import Case, Problem
from truekernel.trial.stage import Prepared


def vacuous_pairs(
    problem: Problem,
    checkers: Mapping[str, Checker],
    suites: Mapping[str, Sequence[Case]],
    prepared: Mapping[str, Prepared],
) -> tuple[tuple[VacuousPair, ...], dict[str, str]]:
    """All vacuous pairs of a problem, and for each checker why official sizes could not be looked at, where they could not.

    `prepared`: the cases of all suites with their tensors, by case id.
    """
    pairs: list[VacuousPair] = []
    notes: dict[str, str] = {}
    official: dict[tuple[str, ...], tuple[list[vacuity.Prepared], str]] = {}
    for name, checker in checkers.items():
        here = passing_trivials(checker, [_with_tensors(prepared[case.id]) for case in suites[name]])
        pairs += [_pair(name, "audit", passed, "") for passed in here]
        key = tuple(case.id for case in suites[name])
        if key not in official:
            official[key] = official_cases(problem, suites[name])
        cases, note = official[key]
        if cases:
            pairs += [_pair(name, "official", passed, note) for passed in passing_trivials(checker, cases)]
        else:
            notes[name] = note
    return tuple(pairs), notes


def _with_tensors(prepared: Prepared) -> vacuity.Prepared:
    return vacuity.Prepared(prepared.case, prepared.inputs, prepared.expected)


def _pair(checker: str, size: str, passed: Passed, note: str) -> VacuousPair:
    margin = passed.margin if math.isfinite(passed.margin) else 1.0
    return VacuousPair.model_validate(
        {"checker": checker, "size": size, "trivial": passed.trivial, "margin": margin, "note": note}
    )
