import subprocess
import sys
import time

from truekernel.execution.cuda import turns

HOLD = """
import sys, time
from pathlib import Path
from truekernel.execution.cuda.turns import turn
with turn(0, Path(sys.argv[1])):
    print("in", flush=True)
    time.sleep(60)
"""


def test_turn_waits_for_a_slot_and_takes_that_of_a_process_that_died(tmp_path, monkeypatch):
    holders = [
        subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE)
        for _ in range(turns.SLOTS)
    ]
    try:
        for holder in holders:
            assert holder.stdout.readline() == b"in\n"
        monkeypatch.setattr(turns, "MOST_SECONDS", 0.2)
        begun = time.monotonic()
        with turns.turn(0, tmp_path):
            assert time.monotonic() - begun >= 0.2
        monkeypatch.setattr(turns, "MOST_SECONDS", 30.0)
        holders[0].kill()
        begun = time.monotonic()
        with turns.turn(0, tmp_path):
            assert time.monotonic() - begun < 10
        with turns.turn(1, tmp_path):
            pass
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()
            holder.stdout.close()


def test_turn_needs_no_folder(tmp_path):
    with turns.turn(0, tmp_path / "missing"):
        pass
