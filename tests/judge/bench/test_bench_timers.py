"""The parent's side of a timing process, and what is told to it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from truekernel import corpus
from truekernel.cases import make_inputs
from truekernel.errors import BadInputError
from truekernel.execution import recorder
from truekernel.execution.cuda.library import Library
from truekernel.judge.bench import jobs, timers
from truekernel.judge.bench.timed_case import MOST_BYTES, fitted, timed_case
from truekernel.model import Case
from truekernel.source import kernel_signatures


def test_a_process_that_can_not_go_on_says_why(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text("{}")
    with timers.Timer("torch_timer", tmp_path) as timer, pytest.raises(timers.TimerError, match="can't go on"):
        timer.ready()


def test_a_process_that_ends_is_no_verdict(tmp_path: Path) -> None:
    with (
        timers.Timer("device_timer", tmp_path) as timer,
        pytest.raises(timers.TimerError, match=r"nothing was decided|can't go on"),
    ):
        timer.ready()


def test_a_process_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timers, "START_SECONDS", 0.01)
    (tmp_path / "job.json").write_text("{}")
    with timers.Timer("torch_timer", tmp_path) as timer, pytest.raises(timers.TimerError, match="did not answer"):
        timer.ready()


def test_a_job_for_the_device_names_every_content(tmp_path: Path) -> None:
    program = corpus.programs()["softmax_online"]
    problem = corpus.problems()[program.problem]
    axes = {name: axis.audit for name, axis in problem.axes.items()}
    plan = recorder.trace(program, kernel_signatures(program.source), problem, axes)
    drawn = [make_inputs(problem, Case.of(problem.name, axes, "official", seed)) for seed in (1, 2)]
    sets = [jobs.written(tmp_path, number, inputs) for number, inputs in enumerate(drawn)]
    jobs.device_job(
        tmp_path, Library(b"code", plan.kernels, dict.fromkeys(plan.kernels, "symbol"), "sm_90"), plan, sets
    )
    job = json.loads((tmp_path / "job.json").read_text())
    assert len(job["sets"]) == 2
    for contents in job["sets"]:
        for at, file in contents.items():
            assert Path(file).stat().st_size == job["buffers"][int(at)]["nbytes"]
    first, second = (Path(job["sets"][k]["0"]) for k in (0, 1))
    assert first.read_bytes() != second.read_bytes()
    assert {launch["kernel"] for launch in job["launches"]} <= set(job["symbols"])


def test_official_lengths_are_halved_until_they_fit_and_that_is_said() -> None:
    for problem in corpus.problems().values():
        axes, notes = fitted(problem)
        assert jobs.total_bytes(problem, axes) <= MOST_BYTES
        changed = [name for name, axis in problem.axes.items() if axes[name] != axis.official]
        assert bool(changed) == bool(notes)
        assert all(axes[name] >= problem.axes[name].audit for name in changed)


def test_outputs_are_judged_by_our_checker(tmp_path: Path) -> None:
    problem = corpus.problems()["softmax"]
    axes = {name: axis.audit for name, axis in problem.axes.items()}
    posing = timed_case(problem, "secret", tmp_path, axes)
    right, wrong = tmp_path / "right.bin", tmp_path / "wrong.bin"
    (want,) = posing.expected[0]
    right.write_bytes(want.published.numpy().tobytes())
    wrong.write_bytes(bytes(right.stat().st_size))
    assert posing.wrong(0, [right]) == ""
    assert posing.wrong(0, [wrong])
    assert posing.wrong(1, [right])  # another set's output


def test_a_problem_that_changes_its_input_is_refused(tmp_path: Path) -> None:
    problem = dataclasses.replace(corpus.problems()["softmax"], mutates=("x",))
    with pytest.raises(BadInputError, match="in place"):
        timed_case(problem, "secret", tmp_path)
