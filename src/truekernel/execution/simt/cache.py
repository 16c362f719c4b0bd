"""Things that are built once for a user and machine: directories named by the content that they were built from."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from truekernel.errors import MachineError

KEPT_DAYS = 60
READY = "TRUEKERNEL_BUILT"
"""Names a folder of finished builds that are used and never written: a process that may write nowhere else gets the cache of its caller."""


@lru_cache(maxsize=1)
def cache_root() -> Path:
    """XDG_CACHE_HOME/truekernel (by default ~/.cache/truekernel); a folder for temporary files when that can't be written."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    for root in (Path(home) / "truekernel", Path(tempfile.gettempdir()) / f"truekernel-cache-{os.getuid()}"):
        with contextlib.suppress(OSError):
            root.mkdir(parents=True, exist_ok=True)
            if os.access(root, os.W_OK) and root.stat().st_uid == os.getuid():
                return root
    raise MachineError(
        f"can't write to {home}/truekernel nor to {tempfile.gettempdir()}: set XDG_CACHE_HOME to a folder that you may write to"
    )


def digest(*parts: object) -> str:
    """16 hex digits over the texts of `parts`."""
    return hashlib.sha256("\0".join(str(part) for part in parts).encode()).hexdigest()[:16]


def built_once(name: str, build: Callable[[Path], None]) -> Path:
    """The folder `name` of the cache; `build(folder)` fills it when it isn't there yet.

    It is filled under another name and renamed, so that a killed build leaves nothing and racing processes see a whole one.
    """
    ready = os.environ.get(READY)
    if ready and (Path(ready) / name).is_dir():
        return Path(ready) / name
    target = cache_root() / name
    if target.is_dir():
        with contextlib.suppress(OSError):
            os.utime(target)
        return target
    _drop_unused()
    partial = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=cache_root()))
    try:
        build(partial)
        partial.chmod(0o755)
        with contextlib.suppress(OSError):  # another process was faster: both made the same
            partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    if not target.is_dir():
        raise MachineError(f"can't write {target}: is the disk full?")
    return target


def _drop_unused() -> None:
    """Remove what no process has asked for in `KEPT_DAYS`: left by other versions of the package or of a compiler."""
    for folder in cache_root().iterdir():
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > KEPT_DAYS * 86400:
                shutil.rmtree(folder, ignore_errors=True)


def forget(folder: Path) -> None:
    """Remove a folder of the cache, so that the next use builds it again."""
    shutil.rmtree(folder, ignore_errors=True)
