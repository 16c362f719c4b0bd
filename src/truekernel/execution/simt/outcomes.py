"""Faults that the native process reports, as outcomes for people."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Mapping

from truekernel.execution.simt.wire import HAZARDS, Report
from truekernel.model import LaunchPlan, Outcome, Where

_LAST_OF_BUFFERS = 3
"""Kinds of hazards up to this one name a buffer."""


def reported(report: Report, plan: LaunchPlan, lines: Mapping[int, int]) -> Outcome:
    """Outcome of an execution that the runtime ended. `lines`: source lines by code offset."""
    buffer = report.name or None
    if 0 <= report.buffer < len(plan.buffers):
        buffer = plan.buffers[report.buffer].name
    message = report.message
    other = lines.get(report.other_pc)
    if other:
        message += f"; the other access is at line {other}"
    where = Where(
        thread=report.thread,
        block=report.block,
        line=report.line or lines.get(report.pc),
        buffer=buffer,
        offset=report.offset if report.buffer != -1 else None,
    )
    return Outcome(report.status, where, message, report.seconds)


def died(overdue: bool, status: int) -> Outcome:
    """Outcome of an execution whose process ended without a word; `status` as waitpid gives it."""
    if overdue:
        return Outcome("timeout", message="neither ended nor used CPU time, and was killed")
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return Outcome("crash", message=f"the process was ended by {name}")
    return Outcome("crash", message=f"the process exited with status {code} from inside a kernel")


def hazard_texts(hazards: Iterable[tuple[int, int, int]], plan: LaunchPlan) -> tuple[str, ...]:
    """Hazards (kind, buffer, byte offset or line) as text: "out_of_bounds: wrote behind buffer 'y' at byte 4096"."""
    return tuple(
        HAZARDS[kind].format(buffer=plan.buffers[b].name if kind <= _LAST_OF_BUFFERS else "", offset=offset)
        for kind, b, offset in hazards
    )
