"""Turns at what the driver does for one process at a time: processes that all ask at once keep those waiting that only want to launch. Standard library only."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

SLOTS = 2
_NAP = 0.005
MOST_SECONDS = 30.0
"""After that long it is nobody's turn: another process may hang."""


@contextlib.contextmanager
def turn(device: int, folder: Path | None = None) -> Iterator[None]:
    """Wait until fewer than `SLOTS` processes of this user do something dear on a device. The system ends the turn of a process that dies."""
    place = folder or Path(tempfile.gettempdir())
    files: list[int] = []
    try:
        with contextlib.suppress(OSError):
            for slot in range(SLOTS):
                path = place / f"truekernel-{os.getuid()}-gpu{device}-{slot}.lock"
                files.append(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        deadline = time.monotonic() + MOST_SECONDS
        while files and not any(_taken(file) for file in files) and time.monotonic() < deadline:
            time.sleep(_NAP)
        yield
    finally:
        for file in files:
            os.close(file)


def _taken(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
