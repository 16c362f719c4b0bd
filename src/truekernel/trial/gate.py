"""The gate of programs and honest variants: right against float64 on every case, and free of hazards."""

from __future__ import annotations

from collections.abc import Iterable

from truekernel.model import Execution

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
