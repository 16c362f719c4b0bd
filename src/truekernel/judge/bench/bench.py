"""One candidate against the baselines, or against another candidate: first whether its numbers are right, then how long it takes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

from truekernel.errors import BadInputError
from truekernel.execution import cuda, recorder
from truekernel.execution.simt.library import CompileFailure
from truekernel.judge.bench.comparing import Comparison, agree, compare
from truekernel.judge.bench.conditions import Meter
from truekernel.judge.bench.jobs import device_job, torch_job
from truekernel.judge.bench.pairs import Block, Start, measure
from truekernel.judge.bench.timed_case import MOST_BYTES, SETS, TimedCase, timed_case
from truekernel.judge.bench.timers import Timer
from truekernel.judge.candidates import Candidate
from truekernel.judge.posing import Posed
from truekernel.judge.steps import secret_seed
from truekernel.source import kernel_signatures

IMPOSSIBLE = 0.9
"""Of the least time that the memory traffic of a problem takes: what is faster did not do the work."""
WARM_CALLS = 64
BASELINES: dict[str, dict[str, Any]] = {
    "eager-ieee": {"how": "eager", "precision": "ieee", "graphed": False},
    "eager": {"how": "eager", "precision": "", "graphed": False},
    "graph-ieee": {"how": "eager", "precision": "ieee", "graphed": True},
    "compile": {"how": "compile", "precision": "", "graphed": False},
    "max-autotune-fast": {"how": "max-autotune", "precision": "fast", "graphed": True},
}
"""Each in fresh processes of its own, with every switch of float32 arithmetic at a recorded value."""
Word = Literal["FASTER", "SAME", "SLOWER", "AMBIGUOUS", "WRONG", "IMPOSSIBLE"]


class WrongNumbersError(Exception):
    """A candidate's output is wrong; the text says why."""


@dataclass(frozen=True, slots=True)
class Row:
    """One baseline. Times in seconds a call, medians; `precise`: whether its own numbers are as good as honest arithmetic in the problem's precision gives, which the headline asks of a baseline;
    `agree`: whether the clocks of device and host tell the same; `rejected`: blocks that don't count; `state`: the switches of its processes."""

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
    """What came of it. `word`: FASTER, SAME, SLOWER or AMBIGUOUS against the fastest baseline of the problem's precision, WRONG when the numbers are wrong, IMPOSSIBLE when a call takes
    less time than its memory traffic; `floor`: that time, in seconds, at the measured `bandwidth` in bytes a second; `against`: name of that baseline; `warm_seconds`: a call whose input the L2 cache holds."""

    word: Word
    why: str
    against: str
    axes: Mapping[str, int]
    device: str
    rows: tuple[Row, ...] = ()
    bandwidth: float = 0.0
    floor: float = 0.0
    warm_seconds: float = 0.0
    notes: tuple[str, ...] = ()


class Bench:
    """Times candidates on one case. Use as a context manager: it keeps the files of timing processes. `problem`: the problem's name, or its file."""

    def __init__(
        self, posed: Posed, problem: str, secret: str, pairs: int, axes: Mapping[str, int] | None = None
    ) -> None:
        self._name, self._pairs = problem, pairs
        self._folder = Path(tempfile.mkdtemp(prefix="truekernel-bench-", dir=_in_memory()))
        self._meter = Meter()
        self._made = 0
        try:
            self.case: TimedCase = timed_case(posed.problem, secret, self._folder, axes)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def candidate(self, candidate: Candidate) -> Start:
        """Compile a candidate of device code; what starts a process that times it. Raises BadInputError, also for a plan that returns an input; PlanError."""
        signatures = kernel_signatures(candidate.source)
        plan = recorder.trace(candidate.plan, signatures, self.case.problem, self.case.axes)
        library = cuda.compile_single(candidate.source, plan.kernels)
        if isinstance(library, CompileFailure):
            raise BadInputError(f"candidate {candidate.name} does not compile: {library}")
        inputs = [n for n in plan.outputs if plan.buffers[n].init == "input"]
        if inputs:
            raise BadInputError(
                f"the launch plan returns its input '{plan.buffers[inputs[0]].name}': each timed call would find another"
            )
        folder = self._new_folder()
        device_job(folder, library, plan, self.case.sets)
        return lambda: Timer("device_timer", folder)

    def baseline(self, name: str) -> Start:
        """What starts a process that times the reference as torch runs it."""
        folder = self._new_folder()
        torch_job(folder, self._name, self.case.axes, self.case.problem, self.case.sets, **BASELINES[name])
        return lambda: Timer("torch_timer", folder)

    def _new_folder(self) -> Path:
        self._made += 1
        folder = self._folder / str(self._made)
        folder.mkdir()
        return folder

    def wrong(self, timer: Timer, copy: int) -> str:
        """Why the outputs of a copy are wrong as they lie there now, "" when they are right."""
        files = timer.ask({"outputs": copy})["files"]
        return self.case.wrong(copy % SETS, [timer.folder / file for file in files])

    def first_look(self, start: Start) -> dict[str, Any]:
        """Whether a candidate's numbers are right on every set, each output poisoned first; then its device, the bandwidth there, and seconds a call on inputs that the L2 cache holds.

        Raises WrongNumbersError."""
        with start() as timer:
            copies = timer.ready().hello["copies"]
            timer.ask({"poison": True})
            timer.time(copies, 1)
            for copy in range(min(SETS, copies)):
                why = self.wrong(timer, copy)
                if why:
                    raise WrongNumbersError(why)
            bandwidth = timer.ask({"bandwidth": True})["bytes_per_s"]
            timer.time(WARM_CALLS, 2, rotating=False)
            device, _ = timer.time(WARM_CALLS, 5, rotating=False)
            return {"device": timer.hello["device"], "bandwidth": bandwidth, "warm": median(device)}

    def row(self, name: str, candidate: Start, baseline: Start) -> Row:
        """Compare a candidate with a baseline. After each pair the outputs of timed calls are looked at, on a copy that nobody could foresee: raises WrongNumbersError when the candidate's are wrong."""
        states: dict[str, str] = {}
        imprecise: list[str] = []

        def after(pair: int, side: int, timer: Timer, calls: int) -> None:
            states.update(timer.hello.get("state", {}))
            if side and pair:
                return
            why = self.wrong(timer, secret_seed(self.case.case.id, pair) % min(timer.hello["copies"], calls))
            if why and side:
                imprecise.append(why)
            elif why:
                raise WrongNumbersError(f"the output of a timed call, though untimed ones were right: {why}")

        sides = measure([candidate, baseline], self._pairs, self._meter, after=after)
        times = [median(sides.times(side)) for side in (0, 1)]
        walls = [median(sides.times(side, "wall")) for side in (0, 1)]
        return Row(
            name=name,
            comparison=compare([-value for value in sides.log_ratios]),
            candidate_seconds=times[0],
            seconds=times[1],
            precise=not imprecise,
            agree=all(agree(*pair) for pair in zip(times, walls, strict=True)),
            rejected=sum(bool(block.rejected) for block in sides.blocks),
            state=states,
            blocks=tuple(sides.blocks),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What limits the result."""
        return (*self.case.notes, *((self._meter.why,) if self._meter.why else ()))


def bench(
    candidate: Candidate,
    posed: Posed,
    problem: str,
    *,
    secret: str,
    other: Candidate | None = None,
    pairs: int = 8,
    baselines: Sequence[str] = tuple(BASELINES),
) -> Result:
    """Time a candidate against `baselines`, or against another candidate alone. `problem`: as it was given.

    Raises BadInputError for what can't be timed, GpuMissingError without a GPU, TimerError when a timing process fails.
    """
    for given in [one for one in (candidate, other) if one is not None and not one.is_cuda]:
        raise BadInputError(f"candidate {given.name}: its Python would run beside the clock: give a .cu file")
    device = cuda.device_info().name
    with Bench(posed, problem, secret, pairs) as clock:
        start = clock.candidate(candidate)
        rival = None if other is None else clock.candidate(other)
        rows: list[Row] = []
        try:
            about = clock.first_look(start)
            if rival is not None and other is not None:
                clock.first_look(rival)
                rows = [clock.row(other.name, start, rival)]
            else:
                rows += [clock.row(title, start, clock.baseline(title)) for title in baselines]
        except WrongNumbersError as error:
            return Result(
                "WRONG", f"numbers come first: {error}", "", clock.case.axes, device, tuple(rows), notes=clock.notes
            )
        return _result(rows, about, clock)


def _result(rows: Sequence[Row], about: Mapping[str, Any], clock: Bench) -> Result:
    best = min([row for row in rows if row.precise] or rows, key=lambda row: row.seconds)
    floor = clock.case.problem.bytes(clock.case.axes) / about["bandwidth"]
    word: Word = best.comparison.word
    why = f"against the fastest baseline of its precision, {best.name}"
    if best.candidate_seconds < IMPOSSIBLE * floor:
        word, why = "IMPOSSIBLE", f"a call takes {best.candidate_seconds:.3g} s, its memory traffic alone {floor:.3g} s"
    elif not best.agree:
        word, why = "AMBIGUOUS", f"{why}: the clocks of device and host disagree"
    return Result(
        word,
        why,
        best.name,
        clock.case.axes,
        about["device"],
        tuple(rows),
        about["bandwidth"],
        floor,
        about["warm"],
        clock.notes,
    )


def _in_memory() -> str | None:
    """Where gigabytes can be written and read without a disk; None for the usual place."""
    shared = Path("/dev/shm")
    try:
        return str(shared) if shutil.disk_usage(shared).free > 8 * MOST_BYTES else None
    except OSError:
        return None
