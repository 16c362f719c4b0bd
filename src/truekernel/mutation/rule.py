"""A rule: a deterministic rewrite, with its description, its origin, and examples that are its documentation and its tests."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from truekernel.model import Edit, RuleClass
from truekernel.model.mutant import File
from truekernel.source.python_ast import PlanTree
from truekernel.source.tree import Tree

_HEAD = "__global__ void example(const float* x, const float* w, float* y, int n, int m) {\n"
_TAIL = "\n}\n"


@dataclass(frozen=True, slots=True)
class Example:
    """What a rule does to a piece of code.

    `before`: a whole source when it holds `__global__` or `__device__`, otherwise statements that stand in the body of
    `__global__ void example(const float* x, const float* w, float* y, int n, int m)`; for rules that edit plans, a piece of a plan.
    `after`: all texts that the rule makes of it, in order; one text for one; None where the rule must not apply.
    """

    before: str
    after: str | tuple[str, ...] | None

    @property
    def results(self) -> tuple[str, ...]:
        """The stated results; empty for a negative example."""
        if self.after is None:
            return ()
        return (self.after,) if isinstance(self.after, str) else self.after

    def program(self, piece: str, file: File) -> str:
        """The source that holds `piece`, one of `before` and the results."""
        if file == "py" or "__global__" in self.before or "__device__" in self.before:
            return piece
        return f"{_HEAD}{piece}{_TAIL}"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rewrite.

    `name`: kebab-case. `source`: the bug report, paper or catalogue entry behind it, with address where there is one.
    `sites(tree)` yields the edits of one mutant after the other; `tree` is a `Tree` (rules of the .cu file) or a `PlanTree`
    (`file="py"`, rules of the launch plan). It neither checks nor counts: the engine drops what touches comments, strings or
    directives, what changes nothing, and what no longer parses. `flags`: compile options set instead of, or beside, an edit
    ("fma=off"); such a rule may yield `()`.
    """

    name: str
    rule_class: RuleClass
    description: str
    source: str
    sites: Callable[[Any], Iterable[tuple[Edit, ...]]]
    examples: tuple[Example, ...]
    file: File = "cu"
    flags: tuple[str, ...] = ()


Sites = Callable[[Tree], Iterable[Edit | tuple[Edit, ...]]]
PlanSites = Callable[[PlanTree], Iterable[Edit | tuple[Edit, ...]]]


def rule(
    name: str,
    rule_class: RuleClass,
    description: str = "",
    *,
    source: str,
    examples: Iterable[Example],
    file: File = "cu",
    flags: Iterable[str] = (),
) -> Callable[[Sites | PlanSites], Rule]:
    """Make a generator function into a `Rule`; a module-level rule of any file in this folder is found by `rules()`.

    The function takes the tree and yields, for each mutant, an `Edit` or a tuple of them. Without `description`, its docstring is it.
    """

    def make(function: Sites | PlanSites) -> Rule:
        def sites(tree: Any) -> Iterator[tuple[Edit, ...]]:
            for edits in function(tree):
                yield (edits,) if isinstance(edits, Edit) else edits

        text = description or inspect.getdoc(function) or ""
        return Rule(name, rule_class, text, source, sites, tuple(examples), file, tuple(flags))

    return make
