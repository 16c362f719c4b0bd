"""What the reports suggest trying: weights of operators, of patterns, and of options at the nodes of the tree of choices.

All figures are counts of reports (disputed ones count half), smoothed; nothing here looks at what a run finds, and nothing scores a finding.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from math import log2
from typing import Any

from truekernel.errors import BadInputError
from truekernel.fuzz.choices import PATTERNS, VOCABULARY, Kind
from truekernel.fuzz.knowledge.names import kin, stem
from truekernel.fuzz.knowledge.report import Report

_PRIOR = 4.0
"""An operator's own reports count as much as all reports together once there are this many."""
_STRENGTH = 4.0
"""What every report of an operator shows is chosen 1 + this times as often as without knowledge."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A kind of input that reports have in common.

    `tags`: those that stand for it. `shape`: the name among `choices.PATTERNS` that makes it in a whole case, or None.
    `options`: by kind of node, the options of `choices.VOCABULARY` that make it at one place.
    `seeds`: literal values that the reports used (`integers`, `reals`, `lengths` of lists).
    """

    name: str
    tags: frozenset[str]
    shape: str | None
    options: Mapping[str, tuple[str, ...]]
    seeds: Mapping[str, tuple[float, ...]]


def _mass(report: Report) -> float:
    return 0.5 if report.disputed else 1.0


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Reports and the patterns drawn from them. Without reports, everything is as likely as without knowledge: that is the switch.

    Operators are given by name (`Operator.name`); those whose name is no report's, nor that of a kin operator, get what all reports suggest on average.
    """

    reports: tuple[Report, ...] = ()
    entries: tuple[Pattern, ...] = ()
    _shares: dict[str, dict[str, float]] = field(default_factory=dict, repr=False, compare=False)
    _near: dict[str, tuple[tuple[Report, float], ...]] = field(default_factory=dict, repr=False, compare=False)
    _kin: dict[str, list[Report]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for report in self.reports:
            for family in {kin(name) for name in report.apis}:
                self._kin.setdefault(family, []).append(report)

    def near(self, operator: str) -> tuple[tuple[Report, float], ...]:
        """Reports on this operator, with what each counts: 1 under the same stem, half of that for a kin operator, half again if disputed."""
        if operator not in self._near:
            exact = stem(operator)
            self._near[operator] = tuple(
                (report, _mass(report) * (1.0 if exact in map(stem, report.apis) else 0.5))
                for report in self._kin.get(kin(operator), ())
            )
        return self._near[operator]

    def weight(self, operator: str) -> float:
        """How often to choose this operator, relative to one that nothing is known of: 1 + log2(1 + reports on it)."""
        return 1.0 + log2(1.0 + sum(mass for _, mass in self.near(operator)))

    def share(self, pattern: Pattern, operator: str = "") -> float:
        """Part of the reports on this operator that show the pattern, in [0, 1], drawn towards the part of all reports by a prior of four."""
        return self._all_shares(operator).get(pattern.name, 0.0)

    def _all_shares(self, operator: str) -> dict[str, float]:
        if operator not in self._shares:
            near = self.near(operator) if operator else tuple((report, _mass(report)) for report in self.reports)
            seen = {
                pattern.name: sum(mass for report, mass in near if not pattern.tags.isdisjoint(report.tags))
                for pattern in self.entries
            }
            total = sum(mass for _, mass in near)
            if operator:
                overall = self._all_shares("")
                shares = {name: (seen[name] + _PRIOR * overall[name]) / (total + _PRIOR) for name in seen}
            else:
                shares = {name: seen[name] / total if total else 0.0 for name in seen}
            self._shares[operator] = shares
        return self._shares[operator]

    def patterns(self, operator: str) -> Mapping[str, float]:
        """For each name of `choices.PATTERNS`, a factor of 1 or more for its weight. `none` has 1."""
        found = dict.fromkeys(PATTERNS, 1.0)
        for pattern in self.entries:
            if pattern.shape is not None:
                found[pattern.shape] += _STRENGTH * self.share(pattern, operator)
        return found

    def options(self, kind: Kind, operator: str) -> Mapping[str, float]:
        """Options at a node of this kind that reports suggest, each with a factor above 1 for its weight. Others have the factor 1 and are not listed."""
        found: dict[str, float] = {}
        for pattern in self.entries:
            share = self.share(pattern, operator)
            for option in pattern.options.get(kind, ()) if share else ():
                found[option] = found.get(option, 1.0) + _STRENGTH * share
        return found

    def seeds(self, kind: str) -> tuple[float, ...]:
        """Literal values that the reports used, where they are not in the vocabulary: `integers`, `reals`, or `lengths` of lists. Without repetition."""
        return tuple(dict.fromkeys(value for pattern in self.entries for value in pattern.seeds.get(kind, ())))


def _read(name: str) -> Any:
    return json.loads(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))


@cache
def tags() -> Mapping[str, str]:
    """What each tag of a report means."""
    return dict(_read("patterns.json")["tags"])


@cache
def _stored() -> Knowledge:
    entries = tuple(
        Pattern(
            name=one["name"],
            tags=frozenset(one["tags"]),
            shape=one["shape"],
            options={kind: tuple(options) for kind, options in one["options"].items()},
            seeds={kind: tuple(values) for kind, values in one["seeds"].items()},
        )
        for one in _read("patterns.json")["patterns"]
    )
    knowledge = Knowledge(tuple(Report.model_validate(row) for row in _read("reports.json")), entries)
    check(knowledge.reports, entries)
    return knowledge


def load(*, enabled: bool = True) -> Knowledge:
    """The knowledge base; with `enabled=False`, one that knows nothing, so that its effect can be measured."""
    return _stored() if enabled else Knowledge()


def check(reports: Sequence[Report], entries: Sequence[Pattern]) -> None:
    """Raise BadInputError where reports and patterns do not fit each other or the tree of choices: a URL twice, an unknown tag, an unknown option."""
    urls = [report.url for report in reports]
    if len(set(urls)) < len(urls):
        twice = sorted({url for url in urls if urls.count(url) > 1})
        raise BadInputError(f"knowledge base: {twice[0]} stands there twice; keep one of them")
    for report in reports:
        for tag in report.tags:
            if tag not in tags():
                raise BadInputError(
                    f"knowledge base: {report.url} has the unknown tag '{tag}'; describe it in patterns.json"
                )
    for pattern in entries:
        for tag in pattern.tags - set(tags()):
            raise BadInputError(f"knowledge base: pattern '{pattern.name}' has the unknown tag '{tag}'")
        if pattern.shape is not None and pattern.shape not in PATTERNS:
            raise BadInputError(
                f"knowledge base: pattern '{pattern.name}' has the unknown shape '{pattern.shape}'; known: {', '.join(PATTERNS)}"
            )
        known: Mapping[str, tuple[str, ...]] = {str(kind): options for kind, options in VOCABULARY.items()}
        for kind, options in pattern.options.items():
            for option in options:
                if option not in known.get(kind, ()):
                    raise BadInputError(
                        f"knowledge base: pattern '{pattern.name}' names '{option}', which is no option of '{kind}'"
                    )
