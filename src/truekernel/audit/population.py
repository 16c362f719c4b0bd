"""The subjects of a run: unique mutants with their fate, and honest variants, each with every checker's verdict."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from truekernel.audit.records import HonestRecord, MutantRecord
from truekernel.audit.scores import Rate
from truekernel.audit.verdicts import Bench, Verdict
from truekernel.model import MadeBy

Fate = Literal["witnessed", "masked", "unobserved", "host_differs", "infrastructure"]


@dataclass(frozen=True, slots=True)
class Unique:
    """A unique mutant: one record for all that share machine code and launches, made by all their (rule, site) pairs."""

    record: MutantRecord
    made_by: tuple[MadeBy, ...]
    fate: Fate
    verdicts: dict[str, Verdict]


Weighted = Sequence[tuple[Unique, float]]
"""Mutants, each with what it counts."""


@dataclass(frozen=True, slots=True)
class Honest:
    """An honest variant that passed the gate."""

    record: HonestRecord
    verdicts: dict[str, Verdict]


def fate_of(record: MutantRecord) -> Fate:
    """What became of a mutant that ran."""
    if record.witness is not None:
        return "witnessed"
    if record.infrastructure:
        return "infrastructure"
    if record.host_differs:
        return "host_differs"
    return "masked" if record.quarantine == "masked" else "unobserved"


def unique_mutants(records: Iterable[MutantRecord], bench: Bench) -> list[Unique]:
    """Unique mutants in the order of their ids; pairs of duplicates are added to the mutant that they repeat."""
    everything = list(records)
    pairs: dict[str, list[MadeBy]] = defaultdict(list)
    for record in everything:
        if record.status == "duplicate":
            pairs[record.duplicate_of] += record.made_by
    return [
        Unique(
            record,
            tuple(sorted({*record.made_by, *pairs[record.id]})),
            fate_of(record),
            {name: bench.verdict(record, name) for name in bench.checkers},
        )
        for record in everything
        if record.status == "ran"
    ]


def honest_variants(records: Iterable[HonestRecord], bench: Bench) -> list[Honest]:
    """Honest variants that passed the gate."""
    return [
        Honest(record, {name: bench.verdict(record, name) for name in bench.checkers})
        for record in records
        if not record.gate
    ]


def grouped(mutants: Iterable[Unique], name_of: Callable[[MadeBy], str]) -> dict[str, Weighted]:
    """Mutants by class (or rule...). One that several (rule, site) pairs make counts in each pair's group in equal parts."""
    groups: dict[str, list[tuple[Unique, float]]] = defaultdict(list)
    for mutant in mutants:
        for name, pairs in Counter(name_of(pair) for pair in mutant.made_by).items():
            groups[name].append((mutant, pairs / len(mutant.made_by)))
    return dict(groups)


def whole(mutants: Iterable[Unique]) -> Weighted:
    """Mutants that count fully."""
    return [(mutant, 1.0) for mutant in mutants]


def miss_rate(mutants: Weighted, checker: str) -> Rate:
    """Share of mutants that a checker accepts; those that it left undetermined are in neither number."""
    clusters: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for mutant, share in mutants:
        state = mutant.verdicts[checker].state
        if state != "undetermined":
            clusters[mutant.record.problem][0] += share * (state == "accept")
            clusters[mutant.record.problem][1] += share
    return Rate.over({name: (hits, n) for name, (hits, n) in clusters.items()})


def false_rejection_rate(variants: Iterable[Honest], checker: str) -> Rate:
    """Share of honest variants that a checker rejects."""
    clusters: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for variant in variants:
        state = variant.verdicts[checker].state
        if state != "undetermined":
            clusters[variant.record.problem][0] += state == "reject"
            clusters[variant.record.problem][1] += 1
    return Rate.over({name: (hits, n) for name, (hits, n) in clusters.items()})
