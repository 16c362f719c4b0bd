"""The kill matrix: which case of which checker rejects which mutants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from truekernel.audit.population import Unique, Weighted, grouped, whole
from truekernel.audit.scores import KillColumn, KillMatrix, KillRow
from truekernel.audit.verdicts import Bench
from truekernel.model import RULE_CLASSES


def kill_matrix(bench: Bench, mutants: Sequence[Unique]) -> KillMatrix:
    """Witnessed mutants grouped by class, rule and problem, against each checker's whole suite and each of its cases by place."""
    witnessed = [m for m in mutants if m.fate == "witnessed"]
    columns = _columns(bench)
    cells = {m.record.id: _cells(m, columns) for m in witnessed}

    def row(level: Literal["class", "rule", "problem"], name: str, members: Weighted, rule_class: str = "") -> KillRow:
        killed: list[float | None] = []
        for number in range(len(columns)):
            known = [(cell, w) for m, w in members if (cell := cells[m.record.id][number]) is not None]
            total = sum(w for _, w in known)
            killed.append(sum(w for cell, w in known if cell) / total if total else None)
        return KillRow(
            level=level, name=name, rule_class=rule_class, n=sum(w for _, w in members), killed=tuple(killed)
        )

    pairs = sorted({(p.rule, p.rule_class) for m in witnessed for p in m.made_by})
    by_class, by_rule = grouped(witnessed, lambda p: p.rule_class), grouped(witnessed, lambda p: p.rule)
    problems = sorted({m.record.problem for m in witnessed})
    rows = [
        *(row("class", name, by_class[name]) for name in RULE_CLASSES if name in by_class),
        *(row("rule", name, by_rule[name], rule_class) for name, rule_class in pairs),
        *(row("problem", name, whole(m for m in witnessed if m.record.problem == name)) for name in problems),
    ]
    return KillMatrix(columns=tuple(columns), rows=tuple(rows))


def _columns(bench: Bench) -> list[KillColumn]:
    """For each checker "all", then its cases by place; the detail names the recipe where it is the same for all problems."""
    columns = []
    for checker in bench.checkers:
        columns.append(KillColumn(checker=checker, label="all"))
        suites = [bench.suite(problem, checker) for problem in bench.problems]
        for place in range(max((len(suite) for suite in suites), default=0)):
            recipes = sorted({suite[place].case.recipe for suite in suites if place < len(suite)})
            columns.append(KillColumn(checker=checker, label=str(place + 1), detail=" / ".join(recipes)))
    return columns


def _cells(mutant: Unique, columns: Sequence[KillColumn]) -> list[bool | None]:
    """Whether each column rejects the mutant; None where it did not decide."""
    cells: list[bool | None] = []
    for column in columns:
        verdict = mutant.verdicts[column.checker]
        if column.label == "all":
            state: str | None = verdict.state
        else:
            place = int(column.label) - 1
            state = verdict.cases[place] if place < len(verdict.cases) else None
        cells.append(None if state in (None, "undetermined") else state == "reject")
    return cells
