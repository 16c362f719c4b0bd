"""A launch plan at given sizes as plain data: what an exported file repeats."""

from __future__ import annotations

import pprint
from typing import Any

from truekernel.execution.recorder import trace
from truekernel.execution.scalars import pack
from truekernel.export.subject import Subject
from truekernel.model import Axes, BufferArg, LaunchPlan, Problem
from truekernel.source import kernel_signatures


def traced(subject: Subject, problem: Problem, axes: Axes) -> LaunchPlan:
    """The plan of a subject at these axes. Raises PlanError where it fails."""
    return trace(subject.plan_source, kernel_signatures(subject.source), problem, axes)


def plan_data(plan: LaunchPlan) -> dict[str, Any]:
    """Buffers as (kind, shape, dtype), launches with arguments as (buffer, offset in bytes) or the bytes of a scalar."""
    return {
        "buffers": [(buffer.init, buffer.shape, buffer.dtype) for buffer in plan.buffers],
        "launches": [
            {
                "kernel": launch.kernel,
                "grid": launch.grid,
                "block": launch.block,
                "shared": launch.shared,
                "cooperative": launch.cooperative,
                "stream": launch.stream,
                "args": [
                    (arg.buffer, arg.offset) if isinstance(arg, BufferArg) else pack(arg.value, arg.ctype)
                    for arg in launch.args
                ],
            }
            for launch in plan.launches
        ],
        "outputs": list(plan.outputs),
    }


def literal(value: Any) -> str:
    """Python text of a value, readable."""
    return pprint.pformat(value, width=118, sort_dicts=False)
