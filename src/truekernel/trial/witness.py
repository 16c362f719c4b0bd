"""The witness rule: what proves a mutant wrong. It shares nothing with any checker, ours included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from truekernel.model import Execution

MARGIN = 2.0
"""A mutant's worst error must exceed that of every honest variant on the same case by more than this factor."""

_NOT_A_PROOF = ("infrastructure", "host_differs", "compile_error")


@dataclass(frozen=True, slots=True)
class HonestRange:
    """What honest variants show on one case under one schedule: their largest `worst` (error against float64 in units of the error scale), and
    whether any of them shows a NaN/Inf class that the truth does not."""

    worst: float
    nonfinite: bool

    @classmethod
    def of(cls, executions: Iterable[Execution]) -> HonestRange:
        """Range over executions that ended ok; (0, False) over none."""
        done = [e.statistics for e in executions if e.outcome.status == "ok"]
        return cls(
            max((s["worst"] for s in done), default=0.0),
            any(s["nonfinite"] > 0 for s in done),
        )


def proves_wrong(execution: Execution, honest: HonestRange) -> str | None:
    """Why this execution proves its program wrong, in words; None when it does not."""
    status = execution.outcome.status
    if status in _NOT_A_PROOF:
        return None
    if status != "ok":
        return f"ends in {status.replace('_', ' ')}"
    statistics: Mapping[str, float] = execution.statistics
    if statistics["nonfinite"] > 0 and not honest.nonfinite:
        return f"{statistics['nonfinite']:.0f} elements are NaN or infinite where the truth is not, or the reverse"
    if statistics["worst"] > MARGIN * honest.worst:
        return f"worst error {statistics['worst']:.4g} error scales; honest programs stay within {honest.worst:.4g}"
    return None
