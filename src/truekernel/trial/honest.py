"""Honest variants: correct programs that differ from each other as correct programs do."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from truekernel import mutation
from truekernel.model import Mutant, Program

Role = Literal["panel", "outer"]

PANEL_LEAST = 5
"""A spread from fewer programs says little: the panel takes outer variants of the first program until it has this many."""
MOST_RULES = 10
"""Benign rules tried on a program, one variant each; more cost time and mostly repeat the same roundings."""


@dataclass(frozen=True, slots=True)
class HonestVariant:
    """A correct program. `rule`: the benign rule that made it, "" for a program as written. `role`: panel = it sets the spreads by which ours
    judges; outer = it only measures false rejections. `independent`: another implementation, not a rewrite of the panel's."""

    id: str
    program: str
    rule: str
    role: Role
    independent: bool
    source: str
    plan_source: str
    flags: tuple[str, ...] = ()


def honest_variants(programs: Sequence[Program]) -> list[HonestVariant]:
    """All honest variants of one problem's programs.

    The first program and those of its variants whose benign rule hashes to even form the panel; everything of the other programs is
    outer, since an independent implementation must not set the spread that it is judged by.
    """
    variants: list[HonestVariant] = []
    for number, program in enumerate(programs):
        first = number == 0
        variants.append(
            HonestVariant(
                f"{program.name}",
                program.name,
                "",
                "panel" if first else "outer",
                not first,
                program.source,
                program.plan_source,
            )
        )
        for mutant in _one_a_rule(program):
            rule = mutant.made_by[0].rule
            role: Role = "panel" if first and in_panel(rule) else "outer"
            variants.append(
                HonestVariant(
                    mutant.id, program.name, rule, role, not first, mutant.source, mutant.plan_source, mutant.flags
                )
            )
    return _with_full_panel(variants)


def _one_a_rule(program: Program) -> list[Mutant]:
    """The first variant of each benign rule, for the rules whose names come first by a hash with the program's, so that programs try different ones."""
    by_rule: dict[str, Mutant] = {}
    for mutant in mutation.mutants(program, mutation.benign_rules().values()):
        by_rule.setdefault(mutant.made_by[0].rule, mutant)
    chosen = sorted(by_rule, key=lambda rule: hashlib.sha256(f"{program.name}/{rule}".encode()).digest())[:MOST_RULES]
    return [by_rule[rule] for rule in chosen]


def in_panel(rule: str) -> bool:
    """Whether a benign rule's variants set spreads; the other half only measures false rejections."""
    return hashlib.sha256(rule.encode()).digest()[0] % 2 == 0


def _with_full_panel(variants: list[HonestVariant]) -> list[HonestVariant]:
    missing = PANEL_LEAST - sum(variant.role == "panel" for variant in variants)
    filled = []
    for variant in variants:
        if missing > 0 and variant.role == "outer" and not variant.independent:
            missing -= 1
            filled.append(
                HonestVariant(
                    variant.id,
                    variant.program,
                    variant.rule,
                    "panel",
                    False,
                    variant.source,
                    variant.plan_source,
                    variant.flags,
                )
            )
        else:
            filled.append(variant)
    return filled
