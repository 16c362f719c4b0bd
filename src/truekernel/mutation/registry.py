"""All rules, found in the files of this folder, and their selection by name, class or pattern."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

import truekernel.mutation
from truekernel.errors import UnknownNameError
from truekernel.model import RULE_CLASSES
from truekernel.mutation.rule import Rule

_CLASSES = (*RULE_CLASSES, "benign")


@lru_cache(maxsize=1)
def _all() -> dict[str, Rule]:
    found: dict[str, Rule] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(truekernel.mutation.__path__)):
        for value in vars(importlib.import_module(f"truekernel.mutation.{module}")).values():
            if isinstance(value, Rule) and found.setdefault(value.name, value) is not value:
                raise ValueError(f"two rules are called {value.name}")
    return dict(sorted(found.items(), key=lambda item: (_CLASSES.index(item[1].rule_class), item[0])))


def rules() -> dict[str, Rule]:
    """All rules that make faults, by name: in the order of the classes, then of the names."""
    return {name: rule for name, rule in _all().items() if rule.rule_class != "benign"}


def benign_rules() -> dict[str, Rule]:
    """All rules that keep the meaning, by name."""
    return {name: rule for name, rule in _all().items() if rule.rule_class == "benign"}


def select(patterns: Iterable[str]) -> dict[str, Rule]:
    """The rules that any of `patterns` names: a rule, a class ("warp", "benign") or a glob over rule names ("swap-*").

    Globs reach faults only; benign rules are named by their name or class. No pattern means all faults.
    Raises UnknownNameError for a pattern that selects nothing.
    """
    patterns = list(patterns)
    everything = _all()
    if not patterns:
        return rules()
    chosen: set[str] = set()
    for pattern in patterns:
        names = {
            name
            for name, rule in everything.items()
            if pattern in (name, rule.rule_class) or (rule.rule_class != "benign" and fnmatchcase(name, pattern))
        }
        if not names:
            raise UnknownNameError("rule", pattern, [*everything, *_CLASSES])
        chosen |= names
    return {name: rule for name, rule in everything.items() if name in chosen}


def describe(rule: Rule) -> str:
    """Several lines for people: name, class, description, origin and examples."""
    lines = [f"{rule.name} ({rule.rule_class})", f"  {rule.description}", f"  source: {rule.source}"]
    for example in rule.examples:
        before = example.before.strip()
        lines += [f"  {before}  ->  {after.strip()}" for after in example.results] or [f"  not: {before}"]
    return "\n".join(lines)
