"""Landlock: which files a process and its children may touch, whatever their user may do. See Documentation/userspace-api/landlock.rst of Linux."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

from truekernel.judge.walls.system import PR_SET_NO_NEW_PRIVS, call, prctl

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE = 1 << 14
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_FILE_ONLY = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | 1 << 15
_BITS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""File rights known to each version of the interface: 13 at first, then refer, truncate, and ioctl on devices."""
_TCP = 3
_SCOPES = 3
"""Abstract Unix sockets, and signals."""


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Version of the interface. Raises OSError where the kernel has none."""
    return call(_CREATE, ctypes.c_void_p(None), 0, 1)


def restrict(readable: Iterable[str], writable: Iterable[str], listed: Iterable[str] = ()) -> str:
    """Let this process and what it starts read only below `readable`, write only below `writable` (which may be read too), and open no TCP connection where the kernel can forbid it.
    Below `listed` the names in folders may be seen.

    Paths that do not exist are left out. Returns what was restricted. Raises OSError.
    """
    known = version()
    handled = (1 << _BITS[min(known, 5)]) - 1
    sizes = {1: 8, 2: 8, 3: 8, 4: 16, 5: 16}
    rules = (ctypes.c_uint64 * 3)(handled, _TCP if known >= 4 else 0, _SCOPES if known >= 6 else 0)
    ruleset = call(_CREATE, ctypes.byref(rules), sizes.get(known, 24), 0)
    try:
        for path in readable:
            _allow(ruleset, path, handled & _READ)
        for path in listed:
            _allow(ruleset, path, handled & _READ_DIR)
        for path in writable:
            _allow(ruleset, path, handled)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        call(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)
    more = [name for name, least in (("TCP", 4), ("signals and abstract sockets", 6)) if known >= least]
    return ", ".join((f"version {known}: files", *more))


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not Path(path).is_dir():
            rights &= _FILE_ONLY
        call(_ADD, ruleset, 1, ctypes.byref(_PathBeneath(rights, place)), 0)
    finally:
        os.close(place)
