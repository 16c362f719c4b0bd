"""Gates that judge the cases before any mutant: may honest programs pass with a margin, and would lower precision fail?"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from truekernel.audit.records import CaseGate
from truekernel.checkers import Checker
from truekernel.model import Case, Execution, Outcome, Problem
from truekernel.numerics import is_valid, lower_precision, statistics
from truekernel.trial.stage import Prepared


def case_gates(
    problem: Problem,
    checkers: Mapping[str, Checker],
    suites: Mapping[str, Sequence[Case]],
    prepared: Mapping[str, Prepared],
    panel: Sequence[Sequence[Execution]],
) -> tuple[CaseGate, ...]:
    """The gates of all cases of the checkers that judge statistics. `panel`: executions of each honest program that sets spreads."""
    by_case: dict[str, list[Execution]] = defaultdict(list)
    for executions in panel:
        for execution in executions:
            if execution.outcome.status == "ok":
                by_case[execution.case_id].append(execution)
    lower = {
        case.id: lower_precision(problem, prepared[case.id].inputs, case.lengths)
        for suite in suites.values()
        for case in suite
    }
    gates = []
    for name, checker in checkers.items():
        if checker.needs_outputs:
            continue
        for case in suites[name]:
            wanted = set(checker.configurations(case))
            shares = [
                checker.margin(case, e.statistics)
                for e in by_case[case.id]
                if e.configuration in wanted and e.statistics
            ]
            found = statistics(lower[case.id], prepared[case.id].expected, "stale", checker.tolerances)
            executions = [Execution(case.id, c, Outcome("ok"), found) for c in checker.configurations(case)]
            gates.append(
                CaseGate(
                    checker=name,
                    case_id=case.id,
                    share=min(max(shares, default=0.0), 1e9) if not any(map(math.isnan, shares)) else 1e9,
                    valid=is_valid(shares),
                    blind=checker.judge(case, executions).verdict == "accept",
                )
            )
    return tuple(gates)


def without_invalid(
    checkers: Mapping[str, Checker], suites: Mapping[str, list[Case]], gates: Sequence[CaseGate]
) -> dict[str, list[Case]]:
    """The suites, without the cases that failed the gate of validity where a checker judges its cases first."""
    invalid = {(gate.checker, gate.case_id) for gate in gates if not gate.valid and checkers[gate.checker].gated}
    return {name: [case for case in suite if (name, case.id) not in invalid] for name, suite in suites.items()}
