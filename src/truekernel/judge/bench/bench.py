"""One candidate against the baselines, or against another candidate: first whether its numbers are right, then how long it takes."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

import torch

from truekernel.cases import make_inputs
from truekernel.checkers import checkers
from truekernel.errors import BadInputError
from truekernel.execution import cuda, recorder
from truekernel.execution.cuda.library import Library
from truekernel.execution.simt.library import CompileFailure
from truekernel.judge.bench.comparing import Comparison, agree, compare
from truekernel.judge.bench.conditions import Meter
from truekernel.judge.bench.jobs import Inputs, device_job, output_bytes, torch_job, total_bytes
from truekernel.judge.bench.pairs import Block, Start, measure
from truekernel.judge.bench.timers import Timer
from truekernel.judge.candidates import Candidate
from truekernel.judge.posing import Posed
from truekernel.judge.steps import secret_seed
from truekernel.model import Case, Configuration, Execution, LaunchPlan, Outcome, Problem
from truekernel.numerics import Expected, expect, statistics
from truekernel.numerics.formats import TORCH_DTYPES
from truekernel.source import kernel_signatures

CHECKER = "truekernel"
SETS = 3
"""Of inputs, drawn with secret seeds; each timed call finds another than the one before."""
MOST_BYTES = 256 << 20
"""Of all inputs and outputs of one call; longer batch axes are halved, and the report says so. Larger than any L2 cache, small enough for every copy and its reference."""
IMPOSSIBLE = 0.9
"""Of the least time that the memory traffic of a problem takes: what is faster did not do the work."""
BASELINES: dict[str, dict[str, Any]] = {
    "eager, ieee": {"how": "eager", "precision": "ieee", "graphed": False},
    "eager": {"how": "eager", "precision": "", "graphed": False},
    "eager in a CUDA graph, ieee": {"how": "eager", "precision": "ieee", "graphed": True},
    "torch.compile": {"how": "compile", "precision": "", "graphed": False},
    "torch.compile max-autotune, fast": {"how": "max-autotune", "precision": "fast", "graphed": True},
}
"""Each in fresh processes of its own, with every switch of float32 arithmetic at a recorded value."""


@dataclass(frozen=True, slots=True)
class Row:
    """One baseline. Times in seconds a call, medians; `precise`: whether its own numbers are as good as honest arithmetic in the problem's precision gives, which the headline asks of a baseline;
    `agree`: whether the clocks of device and host tell the same."""

    name: str
    comparison: Comparison
    candidate_seconds: float
    seconds: float
    precise: bool
    agree: bool
    rejected: int
    state: Mapping[str, str]
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """What came of it. `word`: FASTER, SAME, SLOWER or AMBIGUOUS against the fastest baseline of the problem's precision, WRONG when the numbers are wrong (nothing is timed then), IMPOSSIBLE when it takes
    less time than its memory traffic; `floor`: that time, in seconds, at the measured `bandwidth` in bytes a second; `against`: name of that baseline."""

    word: Literal["FASTER", "SAME", "SLOWER", "AMBIGUOUS", "WRONG", "IMPOSSIBLE"]
    why: str
    against: str
    axes: Mapping[str, int]
    device: str
    rows: tuple[Row, ...]
    bandwidth: float
    floor: float
    warm_seconds: float
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Posing:
    """The timed case: inputs of each set, and what outputs are compared with."""

    problem: Problem
    case: Case
    axes: dict[str, int]
    sets: list[Inputs]
    expected: list[list[Expected]]
    notes: tuple[str, ...]


def fitted(problem: Problem) -> tuple[dict[str, int], tuple[str, ...]]:
    """Official lengths, batch axes halved until a call's tensors fit `MOST_BYTES`; and a note where they were."""
    axes = {name: axis.official for name, axis in problem.axes.items()}
    shrinking = [name for name, axis in problem.axes.items() if axis.kind in ("batch", "spatial") and axis.odd]
    while total_bytes(problem, axes) > MOST_BYTES:
        longest = max(shrinking, key=lambda name: axes[name], default=None)
        if longest is None or axes[longest] < 2:
            raise BadInputError(f"problem '{problem.name}' takes {total_bytes(problem, axes) >> 20} MiB a call, more than can be timed here")
        axes[longest] //= 2
    official = {name: axis.official for name, axis in problem.axes.items()}
    changed = ", ".join(f"{name} {axes[name]} instead of {length}" for name, length in official.items() if axes[name] != length)
    return axes, ((f"smaller than the official case: {changed}",) if changed else ())


def posed_case(problem: Problem, secret: str, axes: Mapping[str, int] | None = None) -> Posing:
    """The case to time, its inputs drawn from the benchmark's distribution with secret seeds."""
    if problem.mutates:
        raise BadInputError(f"problem '{problem.name}' changes its input in place: each timed call would find another, which is not supported")
    chosen, notes = (dict(axes), ()) if axes is not None else fitted(problem)
    place = "cuda" if torch.cuda.is_available() else "cpu"
    sets: list[Inputs] = []
    expected: list[list[Expected]] = []
    case = Case.of(problem.name, chosen, "official", secret_seed(secret, 0))
    for number in range(SETS):
        inputs = make_inputs(problem, dataclasses.replace(case, seed=secret_seed(secret, number)), place)
        found = expect(problem, inputs, chosen)
        sets.append({name: tensor.cpu() for name, tensor in inputs.items()})
        expected.append([_on_host(want) for want in found])
    return Posing(problem, case, chosen, sets, expected, notes)


def _on_host(want: Expected) -> Expected:
    tensors = {
        field.name: value.cpu()
        for field in dataclasses.fields(want)
        if isinstance(value := getattr(want, field.name), torch.Tensor)
    }
    return dataclasses.replace(want, **tensors)


def judged(posing: Posing, number: int, files: Sequence[Path]) -> str:
    """Why outputs of set `number` are wrong by our checker, "" when they are right."""
    expected = posing.expected[number]
    outputs = []
    for want, path in zip(expected, files, strict=True):
        data = bytearray(path.read_bytes())
        kind = TORCH_DTYPES[want.dtype]
        flat = torch.frombuffer(data, dtype=kind) if data else torch.empty(0, dtype=kind)
        outputs.append(flat.reshape(want.shape))
    checker = checkers()[CHECKER]
    values = statistics(outputs, expected, "poison", checker.tolerances)
    execution = Execution(posing.case.id, Configuration(), Outcome("ok"), values)
    found = checker.judge(posing.case, [execution])
    return "" if found.verdict == "accept" else found.why or found.verdict


class Bench:
    """Times candidates on one case. Use as a context manager: it keeps the files of timing processes."""

    def __init__(self, posed: Posed, posing: Posing, name: str, pairs: int) -> None:
        self._posed, self._posing, self._name, self._pairs = posed, posing, name, pairs
        self._folder = tempfile.TemporaryDirectory(prefix="truekernel-bench-")
        self._meter = Meter()
        self._made = 0

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def candidate(self, candidate: Candidate) -> Start:
        """Compile a candidate; what starts a process that times it. Raises BadInputError, PlanError."""
        if not candidate.is_cuda:
            raise BadInputError(f"candidate {candidate.name}: only CUDA with a launch plan can be timed, whose host code does not run beside the clock")
        problem, axes = self._posing.problem, self._posing.axes
        plan = recorder.trace(candidate.plan, kernel_signatures(candidate.source), problem, axes)
        library = cuda.compile_single(candidate.source, plan.kernels)
        if isinstance(library, CompileFailure):
            raise BadInputError(f"candidate {candidate.name} does not compile: {library}")
        return self.program(library, plan)

    def program(self, library: Library, plan: LaunchPlan) -> Start:
        """What starts a process that times compiled kernels under a launch plan."""
        folder = self._new_folder()
        device_job(folder, library, plan, self._posing.sets)
        return lambda: Timer("device_timer", folder)

    def baseline(self, name: str) -> Start:
        """What starts a process that times the reference as torch runs it."""
        folder = self._new_folder()
        posing = self._posing
        torch_job(folder, self._name, posing.axes, posing.problem, posing.sets, **BASELINES[name])
        return lambda: Timer("torch_timer", folder)

    def _new_folder(self) -> Path:
        self._made += 1
        folder = Path(self._folder.name) / str(self._made)
        folder.mkdir()
        return folder

    def numbers(self, start: Start) -> str:
        """Why the numbers of a side are wrong, "" when those of all sets are right. Each output is poisoned first."""
        with start() as timer:
            timer.ready()
            timer.ask({"poison": True})
            timer.time(SETS, 1)
            for number in range(SETS):
                files = timer.ask({"outputs": number})["files"]
                why = judged(self._posing, number, [timer.folder / file for file in files])
                if why:
                    return why
        return ""

    def once(self, start: Start) -> dict[str, Any]:
        """Of a candidate: the device, its bandwidth, and seconds a call on inputs that the L2 cache holds."""
        with start() as timer:
            timer.ready()
            bandwidth = timer.ask({"bandwidth": True})["bytes_per_s"]
            timer.time(64, 2, rotating=False)
            device, _ = timer.time(64, 5, rotating=False)
            return {"device": timer.hello["device"], "bandwidth": bandwidth, "warm": median(device)}

    def row(self, name: str, candidate: Start, baseline: Start, *, precise: bool) -> Row:
        """Compare a candidate with a baseline. Outputs of a secret copy are looked at after each pair: raises BadInputError when they are wrong then, though they were right before."""
        states: dict[str, str] = {}

        def after(pair: int, side: int, timer: Timer) -> None:
            states.update(timer.hello.get("state", {}))
            if side:
                return
            number = secret_seed(self._posing.case.id, pair) % min(SETS, timer.hello["copies"])
            files = timer.ask({"outputs": number})["files"]
            why = judged(self._posing, number, [timer.folder / file for file in files])
            if why:
                raise BadInputError(f"the candidate's output of a timed call is wrong, though untimed calls were right: {why}")

        sides = measure([candidate, baseline], self._pairs, self._meter, after=after)
        comparison = compare([-value for value in sides.log_ratios])
        times = [median(sides.times(side)) for side in (0, 1)]
        walls = [median(sides.times(side, "wall")) for side in (0, 1)]
        return Row(
            name=name,
            comparison=comparison,
            candidate_seconds=times[0],
            seconds=times[1],
            precise=precise,
            agree=all(agree(*pair) for pair in zip(times, walls, strict=True)),
            rejected=sum(bool(block.rejected) for block in sides.blocks),
            state=states,
            blocks=tuple(sides.blocks),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What limits the result."""
        return (*self._posing.notes, *((self._meter.why,) if self._meter.why else ()))


def bench(
    candidate: Candidate,
    posed: Posed,
    name: str,
    *,
    secret: str,
    other: Candidate | None = None,
    pairs: int = 8,
    baselines: Sequence[str] = tuple(BASELINES),
) -> Result:
    """Time a candidate against `baselines`, or against another candidate alone. `name`: the problem, as it was given.

    Raises BadInputError for what can't be timed, GpuMissingError without a GPU, TimerError when a timing process fails.
    """
    cuda.device_info()
    posing = posed_case(posed.problem, secret)
    with Bench(posed, posing, name, pairs) as clock:
        start = clock.candidate(candidate)
        why = clock.numbers(start)
        if why:
            return _untimed(f"its numbers are wrong: {why}", posing, clock)
        about = clock.once(start)
        if other is not None:
            rival = clock.candidate(other)
            why = clock.numbers(rival)
            if why:
                return _untimed(f"the numbers of {other.name} are wrong: {why}", posing, clock)
            rows = [clock.row(other.name, start, rival, precise=True)]
        else:
            rows = []
            for title in baselines:
                baseline = clock.baseline(title)
                rows.append(clock.row(title, start, baseline, precise=not clock.numbers(baseline)))
        return _result(rows, about, posing, clock)


def _result(rows: list[Row], about: Mapping[str, Any], posing: Posing, clock: Bench) -> Result:
    eligible = [row for row in rows if row.precise] or rows
    best = min(eligible, key=lambda row: row.seconds)
    floor = posing.problem.bytes(posing.axes) / about["bandwidth"]
    word, why = best.comparison.word, f"against the fastest baseline of its precision, {best.name}"
    if best.candidate_seconds < IMPOSSIBLE * floor:
        word, why = "IMPOSSIBLE", f"a call takes {best.candidate_seconds:.3g} s, its memory traffic alone {floor:.3g} s"  # type: ignore[assignment]
    elif not best.agree:
        word, why = "AMBIGUOUS", f"{why}: the clocks of device and host disagree"
    return Result(word, why, best.name, posing.axes, about["device"], tuple(rows), about["bandwidth"], floor, about["warm"], clock.notes)


def _untimed(why: str, posing: Posing, clock: Bench) -> Result:
    return Result("WRONG", why, "", posing.axes, cuda.device_info().name, (), 0.0, 0.0, 0.0, clock.notes)


__all__ = ["BASELINES", "Bench", "Result", "Row", "bench", "judged", "output_bytes", "posed_case"]
