"""Edits, sites and mutants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RuleClass = Literal[
    "arithmetic", "index", "boundary", "semantic", "sync", "warp", "atomic", "async", "precision", "launch", "benign"
]
RULE_CLASSES: tuple[str, ...] = (
    "arithmetic",
    "index",
    "boundary",
    "semantic",
    "sync",
    "warp",
    "atomic",
    "async",
    "precision",
    "launch",
)
File = Literal["cu", "py"]


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace bytes [start, end) of a UTF-8 text by `replacement`."""

    start: int
    end: int
    replacement: str


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """Where a rule applied: file of the program, byte span, and 1-based line and column (in characters) of its start."""

    file: File
    start: int
    end: int
    line: int
    column: int


@dataclass(frozen=True, slots=True, order=True)
class MadeBy:
    """One (rule, site) pair that makes a mutant."""

    rule: str
    rule_class: RuleClass
    site: Site
    replacement: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """A program after one rule at one site. `id` is a hash of its content. `file` says which text `edits` change;
    several (rule, site) pairs may make the same mutant. `flags`: compile options that a benign rule sets instead of an edit
    ("fma=off")."""

    id: str
    program: str
    file: File
    edits: tuple[Edit, ...]
    made_by: tuple[MadeBy, ...]
    diff: str
    source: str
    plan_source: str
    flags: tuple[str, ...] = ()
