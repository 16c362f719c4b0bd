"""Put every program of the corpus through the full gate.

    python benchmarks/gate.py > results/gate.json

Right against float64 on all cases of all checkers' suites and of the witness search, under all five schedules; bit-equal when the same schedule is
repeated; no fault in the checked build.
"""

from __future__ import annotations

import json
import sys

import torch

from truekernel import checkers, corpus
from truekernel.cases.witness import witness_cases
from truekernel.execution import simt
from truekernel.trial.gate import full_gate
from truekernel.trial.stage import Stage


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for problem in corpus.problems().values():
        cases = {c.id: c for checker in checkers.checkers().values() for c in checker.suite(problem)}
        cases |= {case.id: case for case in witness_cases(problem)}
        with simt.Server() as server:
            stage = Stage(server, problem, [(case, None) for case in cases.values()], ())
            for program in corpus.programs().values():
                if program.problem == problem.name:
                    why = full_gate(stage, program.source, program.plan_source)
                    rows.append(
                        {
                            "program": program.name,
                            "problem": problem.name,
                            "family": problem.family,
                            "traits": sorted(program.traits),
                            "cases": len(cases),
                            "why_not": why or "",
                        }
                    )
                    print(f"{program.name}: {why or 'passes'}", file=sys.stderr)
    passed = sum(not row["why_not"] for row in rows)
    json.dump({"programs": len(rows), "passed": passed, "rows": rows}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
