"""Run a script with a watcher in it and in its Python children, and read what they tell."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truekernel.judge.inside import state, watching

Event = Mapping[str, Any]
MOST_OUTPUT = 4 << 20
"""Characters of output that are kept, the last."""
MOST_EVENTS = 64 << 20
"""Bytes of one process's events that are read."""


@dataclass(frozen=True, slots=True)
class Watched:
    """One run of a script. `processes`: the events of each watched process, by start; `exit_code`: negative for a signal, None where it ran past its time."""

    exit_code: int | None
    seconds: float
    output: str
    processes: tuple[tuple[Event, ...], ...] = field(repr=False, default=())

    def events(self, *kinds: str) -> list[tuple[int, Event]]:
        """Events of some kinds with the number of their process, in the order of processes."""
        return [(n, e) for n, events in enumerate(self.processes) for e in events if e["event"] in kinds]


def run_script(
    script: Path, arguments: Sequence[str] = (), *, timeout: float, held: Sequence[tuple[str, Any]] | None = None
) -> Watched:
    """Run `python SCRIPT ARGUMENTS` in the present folder. `held`: writes of switches that are made first, every other is ignored then (`watching`)."""
    with tempfile.TemporaryDirectory(prefix="truekernel-watch-") as folder:
        hook, events = Path(folder, "hook"), Path(folder, "events")
        hook.mkdir()
        events.mkdir()
        shutil.copy(watching.__file__, hook / "sitecustomize.py")
        shutil.copy(state.__file__, hook / "state.py")
        environment = dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join([str(hook), *filter(None, [environment.get("PYTHONPATH")])])
        environment[watching.FOLDER] = str(events)
        environment.pop(watching.HOLD, None)
        if held is not None:
            environment[watching.HOLD] = json.dumps(list(held))
        begun = time.monotonic()
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                [sys.executable, str(script), *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            code: int | None = None
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                pass
            finally:
                _end_group(process)
            seconds = time.monotonic() - begun
            size = output.seek(0, os.SEEK_END)
            output.seek(max(0, size - MOST_OUTPUT))
            text = output.read().decode("utf-8", errors="replace")
        return Watched(code, seconds, text, _read(events))


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Nothing that the script started stays."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(folder: Path) -> tuple[tuple[Event, ...], ...]:
    found: list[tuple[float, tuple[Event, ...]]] = []
    for path in folder.glob("*.jsonl"):
        with path.open(encoding="utf-8", errors="replace") as file:
            events = [event for line in file.read(MOST_EVENTS).splitlines() if (event := _event(line)) is not None]
        start = float(path.stem.rpartition("-")[2]) if path.stem.rpartition("-")[2].isdigit() else 0.0
        found.append((start, tuple(events)))
    return tuple(events for _, events in sorted(found, key=lambda pair: pair[0]))


def _event(line: str) -> Event | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None
