"""The case that is timed: its lengths, its inputs, and whether what comes out is right."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from truekernel.cases import make_inputs
from truekernel.checkers import checkers
from truekernel.errors import BadInputError
from truekernel.judge.bench.jobs import Sets, total_bytes, written
from truekernel.judge.steps import secret_seed
from truekernel.model import Case, Configuration, Execution, Outcome, Problem
from truekernel.numerics import Expected, expect, statistics
from truekernel.numerics.formats import TORCH_DTYPES

CHECKER = "truekernel"
SETS = 3
"""Of inputs, drawn with secret seeds; each timed call finds another than the one before."""
MOST_BYTES = 1 << 30
"""Of all inputs and outputs of one call; longer axes are halved, and the result says so. Far larger than any L2 cache."""
SHARE = 64
"""A device holds a call's tensors so many times: copies, references, and what they are computed from."""


@dataclass(frozen=True, slots=True)
class TimedCase:
    """Files of `SETS` sets of inputs, and what outputs on each are compared with, on the device `place`."""

    problem: Problem
    case: Case
    axes: dict[str, int]
    sets: Sets
    expected: list[list[Expected]]
    place: str
    notes: tuple[str, ...] = ()

    def wrong(self, number: int, files: Sequence[Path]) -> str:
        """Why outputs on set `number`, in files of their bytes, are wrong by our checker; "" when they are right."""
        expected = self.expected[number]
        outputs = [_read(path, want).to(self.place) for path, want in zip(files, expected, strict=True)]
        checker = checkers()[CHECKER]
        values = _statistics(self.place)(outputs, expected, checker.tolerances)
        execution = Execution(self.case.id, Configuration(), Outcome("ok"), values)
        found = checker.judge(self.case, [execution])
        return "" if found.verdict == "accept" else found.why or found.verdict


def timed_case(problem: Problem, secret: str, folder: Path, axes: Mapping[str, int] | None = None) -> TimedCase:
    """The case to time: official lengths, or what of them fits; inputs drawn from the benchmark's distribution with secret seeds, in files of `folder`.

    Raises BadInputError for a problem that changes its input: each timed call would find another.
    """
    if problem.mutates:
        raise BadInputError(f"problem '{problem.name}' changes its input in place: each timed call would find another")
    place = "cuda" if torch.cuda.is_available() else "cpu"
    most = min(MOST_BYTES, torch.cuda.mem_get_info()[1] // SHARE) if place == "cuda" else MOST_BYTES
    chosen, notes = (dict(axes), ()) if axes is not None else fitted(problem, most)
    sets, expected = [], []
    case = Case.of(problem.name, chosen, "official", secret_seed(secret, 0))
    for number in range(SETS):
        inputs = make_inputs(problem, dataclasses.replace(case, seed=secret_seed(secret, number)), place)
        expected.append(expect(problem, inputs, chosen))
        sets.append(written(folder, number, inputs))
    return TimedCase(problem, case, chosen, sets, expected, place, notes)


def fitted(problem: Problem, most: int = MOST_BYTES) -> tuple[dict[str, int], tuple[str, ...]]:
    """Official lengths, those that audits shorten halved until a call's tensors fit `most` bytes; and a note where they were."""
    official = {name: axis.official for name, axis in problem.axes.items()}
    axes = dict(official)
    while total_bytes(problem, axes) > most:
        longer = [name for name, axis in problem.axes.items() if axes[name] > axis.audit]
        if not longer:
            size = total_bytes(problem, axes) >> 20
            raise BadInputError(
                f"problem '{problem.name}' takes {size} MiB a call, more than can be timed here ({most >> 20} MiB)"
            )
        longest = max(longer, key=lambda name: axes[name])
        axes[longest] = max(problem.axes[longest].audit, axes[longest] // 2)
    changed = [f"{name} {axes[name]} instead of {length}" for name, length in official.items() if axes[name] != length]
    return axes, ((f"smaller than the official case: {', '.join(changed)}",) if changed else ())


def _read(path: Path, want: Expected) -> torch.Tensor:
    data = bytearray(path.read_bytes())
    kind = TORCH_DTYPES[want.dtype]
    flat = torch.frombuffer(data, dtype=kind) if data else torch.empty(0, dtype=kind)
    return flat.reshape(want.shape)


Measure = Callable[[Sequence[torch.Tensor], Sequence[Expected], Sequence[tuple[float, float]]], dict[str, float]]


@lru_cache(maxsize=2)
def _statistics(place: str) -> Measure:
    """What measures outputs where they lie: on a GPU in one pass, which takes a hundredth of a CPU's time."""
    if place == "cpu":
        return lambda outputs, expected, tolerances: statistics(outputs, expected, "poison", tolerances)
    from truekernel.numerics.cuda_core import CudaCore
    from truekernel.numerics.device import DeviceJudge, source
    from truekernel.numerics.tensor_judging import judge_tensors

    judge: Any = DeviceJudge(CudaCore(source))
    return lambda outputs, expected, tolerances: judge_tensors(judge, outputs, expected, "poison", tolerances)[0]
