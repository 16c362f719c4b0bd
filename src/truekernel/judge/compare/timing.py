"""How fast candidates are, by `truekernel bench` alone: only those that are right, and each other one beside the fastest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from truekernel.errors import BadInputError, GpuMemoryError, GpuMissingError, NvrtcMissingError
from truekernel.execution import cuda
from truekernel.judge.bench.bench import Result, Row, bench
from truekernel.judge.candidates import Candidate
from truekernel.judge.compare.records import TimeRow, Times
from truekernel.judge.posing import Posed

TELLING = ("FASTER", "SAME", "SLOWER", "AMBIGUOUS")
"""Words of a result whose times mean something."""


@dataclass
class Timed:
    """By label: times, or why there are none; and by pair of labels, the first one the fastest, its time against the second's. `missing`: why nothing could be timed."""

    times: dict[str, Times] = field(default_factory=dict)
    untimed: dict[str, str] = field(default_factory=dict)
    side_by_side: dict[tuple[str, str], TimeRow] = field(default_factory=dict)
    missing: str = ""


def no_clock() -> str:
    """Why nothing can be timed here, "" where it can."""
    try:
        cuda.device_info()
    except GpuMissingError as error:
        return str(error)
    return ""


def measure(
    candidates: Mapping[str, Candidate],
    posed: Posed,
    problem: str,
    secret: str,
    *,
    pairs: int,
    baselines: Sequence[str],
) -> Timed:
    """Time candidates, all of them right, against the baselines and the fastest against each other one. `problem`: as it was given. Raises MachineError."""
    found = Timed(missing=no_clock())
    if found.missing:
        return found
    for label, candidate in candidates.items():
        try:
            result = bench(candidate, posed, problem, secret=secret, pairs=pairs, baselines=baselines)
        except (BadInputError, GpuMemoryError, GpuMissingError, NvrtcMissingError) as error:
            found.untimed[label] = str(error)
        else:
            found.times[label] = _times(result)
    telling = {label: times for label, times in found.times.items() if times.word in TELLING}
    if len(telling) < 2:
        return found
    fastest = min(telling, key=lambda label: min(row.candidate_seconds for row in telling[label].rows))
    for label in telling:
        if label != fastest:
            result = bench(candidates[fastest], posed, problem, secret=secret, other=candidates[label], pairs=pairs)
            for row in result.rows:
                found.side_by_side[fastest, label] = _row(row, label)
    return found


def _times(result: Result) -> Times:
    return Times(
        word=result.word,
        why=result.why,
        against=result.against,
        axes=dict(result.axes),
        device=result.device,
        rows=tuple(_row(row, row.name) for row in result.rows),
        warm_seconds=result.warm_seconds,
        floor=result.floor,
        notes=result.notes,
    )


def _row(row: Row, name: str) -> TimeRow:
    found = row.comparison
    return TimeRow(
        name=name,
        word=found.word,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
        pairs=found.pairs,
        candidate_seconds=row.candidate_seconds,
        seconds=row.seconds,
        precise=row.precise,
        agree=row.agree,
    )
