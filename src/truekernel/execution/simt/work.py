"""A folder of this process for sources, objects and libraries, removed at its end or by the next process."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path

_counter = itertools.count(1)


def work_path(suffix: str) -> Path:
    """A fresh path in the folder, ending in `suffix`; nothing is created there."""
    return _folder() / f"{next(_counter)}{suffix}"


def _folder() -> Path:
    return _folder_of(os.getpid())


@lru_cache(maxsize=1)
def _folder_of(process: int) -> Path:
    """Depends on the process, since a forked child must not share its parent's folder."""
    root = Path(tempfile.gettempdir()) / f"truekernel-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    _sweep(root)
    folder = Path(tempfile.mkdtemp(prefix=f"{process}-", dir=root))
    atexit.register(_remove, process, folder)
    return folder


def _sweep(root: Path) -> None:
    """Remove what killed processes left behind."""
    for folder in root.iterdir():
        number = folder.name.split("-")[0]
        if number.isdigit() and not Path(f"/proc/{number}").exists():
            shutil.rmtree(folder, ignore_errors=True)


def _remove(owner: int, folder: Path) -> None:
    if os.getpid() == owner:  # a forked child must not remove its parent's folder
        with contextlib.suppress(OSError):
            shutil.rmtree(folder, ignore_errors=True)
