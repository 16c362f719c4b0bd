"""The gate of programs and honest variants: right against float64 on every case, and free of hazards."""

from __future__ import annotations

from collections.abc import Iterable

from truekernel.execution.simt import CompileFailure, Options, compile_single
from truekernel.model import SCHEDULES, Configuration, Execution
from truekernel.trial.stage import Plans, Stage

GATE_SCALES = 200.0
"""Largest error, in error scales, of a program that counts as right. Far above what correct arithmetic shows, far below what a wrong formula
does: the gate refuses blunders; whether a checker rejects an honest variant must stay open."""


def wrong(executions: Iterable[Execution]) -> str | None:
    """Why these executions show that their program is not right; None when it is."""
    for execution in executions:
        place = f"case {execution.case_id}, schedule {execution.configuration.schedule}"
        if execution.outcome.status != "ok":
            return f"{place}: {execution.outcome.status} {execution.outcome.message}".strip()
        if execution.hazards:
            return f"{place}: {execution.hazards[0]}"
        if execution.statistics["nonfinite"] > 0:
            return f"{place}: {execution.statistics['nonfinite']:.0f} elements are NaN or infinite where the truth is not, or the reverse"
        if execution.statistics["worst"] > GATE_SCALES:
            return f"{place}: error {execution.statistics['worst']:.4g} error scales, at most {GATE_SCALES:g} is right"
    return None


def full_gate(stage: Stage, source: str, plan_source: str) -> str | None:
    """Why a program does not pass the gate, or None: right against float64 on all cases of the stage under all five schedules, bit-equal when the
    same schedule is repeated, and without a fault in the checked build."""
    plans = stage.plans(source, plan_source)
    library = compile_single(source, plans.kernels)
    if isinstance(library, CompileFailure):
        return str(library)
    requests = [(case_id, Configuration(schedule)) for schedule in SCHEDULES for case_id in stage.prepared]
    first = stage.execute(library, 0, plans, requests)
    why = wrong(first)
    if why is None:
        again = stage.execute(library, 0, plans, requests)
        differing = [e for e, other in zip(first, again, strict=True) if e.output_hash != other.output_hash]
        if differing:
            why = (
                f"case {differing[0].case_id}, schedule {differing[0].configuration.schedule}: other bits when repeated"
            )
    stage.server.release(library)
    library.close()
    return why or _fault_when_checked(stage, source, plans)


def _fault_when_checked(stage: Stage, source: str, plans: Plans) -> str | None:
    library = compile_single(source, plans.kernels, Options(checked=True))
    if isinstance(library, CompileFailure):
        return f"checked build: {library}"
    requests = [(case_id, Configuration("gpu", checked=True)) for case_id in stage.prepared]
    why = wrong(stage.execute(library, 0, plans, requests))
    stage.server.release(library)
    library.close()
    return f"checked build: {why}" if why else None
