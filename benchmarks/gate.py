"""Put every program of the corpus through the full gate.

    python benchmarks/gate.py > results/gate.json

Right against float64 on all cases of all checkers' suites and of the witness search, under all five schedules; bit-equal when the same schedule is
repeated; no fault in the checked build. Rewrites by benign rules: right on all these cases in the order of a GPU.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import torch

from truekernel import checkers, corpus
from truekernel.cases.witness import witness_cases
from truekernel.execution import simt
from truekernel.model import Configuration, Program
from truekernel.trial.gate import full_gate, wrong
from truekernel.trial.honest import honest_variants
from truekernel.trial.stage import Stage


def rewrites(stage: Stage, programs: Sequence[Program]) -> list[dict[str, str]]:
    """Each honest variant that a benign rule made, and why it is not right, or ""."""
    rows = []
    for variant in honest_variants(programs):
        if not variant.rule:
            continue
        plans = stage.plans(variant.source, variant.plan_source)
        library = simt.compile_single(variant.source, plans.kernels, simt.Options(fma="fma=off" not in variant.flags))
        if isinstance(library, simt.CompileFailure):
            rows.append({"variant": variant.id, "why_not": str(library)})
            continue
        executions = stage.execute(library, 0, plans, [(case_id, Configuration()) for case_id in stage.prepared])
        rows.append({"variant": variant.id, "why_not": wrong(executions) or ""})
        stage.server.release(library)
        library.close()
        stage.release(plans)
    return rows


def main() -> None:
    torch.set_num_threads(1)
    rows, rewritten = [], []
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
            ours = [program for program in corpus.programs().values() if program.problem == problem.name]
            rewritten += rewrites(stage, ours)
    passed = sum(not row["why_not"] for row in rows)
    wrongs = [row for row in rewritten if row["why_not"]]
    counts = {"programs": len(rows), "passed": passed, "rewrites": len(rewritten), "rewrites_wrong": len(wrongs)}
    json.dump({**counts, "rows": rows, "wrong": wrongs}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
