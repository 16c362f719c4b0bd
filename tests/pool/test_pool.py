import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from truekernel.errors import BadInputError, MachineError
from truekernel.pool import LocalPool

WORK = "test_pool:work"


def work(job):
    """Runs in the worker: `do` says what to try."""
    if job["do"] == "count":
        for i in range(job["n"]):
            yield {"i": i}
    elif job["do"] == "die once" and not Path(job["mark"]).exists():
        Path(job["mark"]).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    elif job["do"] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif job["do"] == "bad input":
        raise BadInputError("the value 7 is wrong: give 8")
    elif job["do"] == "fault":
        raise ZeroDivisionError("ours")
    elif job["do"] == "interrupted":
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
        child = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('alive')"]
        assert subprocess.run(child, capture_output=True, text=True, check=True).stdout == "alive\n"
    elif job["do"] == "print":
        print("noise that must not reach the protocol")
    yield {"end": job["do"]}


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


def test_all_jobs_run_and_messages_of_a_job_keep_their_order():
    jobs = [{"do": "count", "n": 5}, {"do": "print"}, {"do": "count", "n": 3}]
    got = list(LocalPool(2).run(WORK, jobs))
    for number, job in enumerate(jobs):
        mine = [message for n, message in got if n == number]
        assert [m["i"] for m in mine if "i" in m] == list(range(job.get("n", 0)))
        assert mine[-1] == {"end": job["do"]}


def test_a_job_whose_worker_died_runs_again(tmp_path):
    got = list(LocalPool(1).run(WORK, [{"do": "die once", "mark": str(tmp_path / "m")}, {"do": "count", "n": 1}]))
    assert (0, {"end": "die once"}) in got
    assert (1, {"i": 0}) in got


def test_a_job_that_always_kills_its_worker_is_the_machines_failure():
    with pytest.raises(MachineError, match="died twice"):
        list(LocalPool(1).run(WORK, [{"do": "die"}]))


def test_errors_keep_their_kind():
    with pytest.raises(BadInputError, match="the value 7"):
        list(LocalPool(1).run(WORK, [{"do": "bad input"}]))
    with pytest.raises(MachineError, match="ZeroDivisionError"):
        list(LocalPool(1).run(WORK, [{"do": "fault"}]))


def test_interrupts_are_for_the_parent_to_answer(capfd):
    assert list(LocalPool(1).run(WORK, [{"do": "interrupted"}])) == [(0, {"end": "interrupted"})]
    assert "Traceback" not in capfd.readouterr().err


def test_files_of_the_current_folder_shadow_no_module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("types", "json", "queue", "truekernel"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('not the module that was meant')\n")
    assert list(LocalPool(1).run(WORK, [{"do": "print"}])) == [(0, {"end": "print"})]
