"""Rules, benign rules, and the engine that makes mutants. docs/architecture.md has a table of the modules: which holds rules of which class and idea."""

from truekernel.mutation.engine import mutants, mutants_of_file, results
from truekernel.mutation.registry import benign_rules, describe, rules, select
from truekernel.mutation.rule import Example, Rule, rule

__all__ = [
    "Example",
    "Rule",
    "benign_rules",
    "describe",
    "mutants",
    "mutants_of_file",
    "results",
    "rule",
    "rules",
    "select",
]
