"""What a process behind walls may do, as data."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/lib32",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
)
"""What programs of a distribution need to start. Nothing of /etc that names users, hosts or secrets."""
PROCESSORS = "/sys/devices/system/cpu"
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """`memory`: bytes that all processes together may hold; `address_space`: bytes of addresses of each (0 = no limit); `disk`: bytes of all private files; `processes`: processes
    and threads at once; `cpu_seconds`: of each process; `output`: bytes of standard output and error that are kept; what follows is read and dropped."""

    memory: int = 2048 * MIB
    address_space: int = 0
    disk: int = 256 * MIB
    processes: int = 64
    cpu_seconds: int = 600
    open_files: int = 256
    output: int = 64 * 1024


@dataclass(frozen=True, slots=True)
class Policy:
    """What a process sees and may use.

    `readable`: files and folders that it sees, at their own places, read-only; all else but a private /tmp does not exist for it. `placed`: the same, by another place inside. `environment`: all
    variables that it gets. `hidden`: folders below `readable` that are empty inside, where it has a file system of its own. `without`: walls that are not raised, so that each can be tried without the others.
    """

    readable: tuple[str, ...] = SYSTEM
    placed: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = Limits()
    hidden: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


def base_environment() -> dict[str, str]:
    """The allow-list: what programs need to start, with values of our own, and nothing of the caller's."""
    return {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}


def interpreter_paths() -> tuple[str, ...]:
    """Folders of this Python and of its packages."""
    links = {
        sys.prefix,
        sys.base_prefix,
        str(Path(sys.executable).parent),
        str(Path(sys.executable).resolve().parents[1]),
    }
    return tuple(sorted(path for path in links if not _system(path)))


def _system(path: str) -> bool:
    return any(path == known or path.startswith(known + os.sep) for known in SYSTEM)


def python_policy(
    *,
    limits: Limits | None = None,
    threads: int = 1,
    placed: Mapping[str, str] | None = None,
    more: tuple[str, ...] = (),
) -> Policy:
    """For a program of this Python and its packages. `threads`: of numerical libraries; `more`: further folders to see."""
    environment = base_environment() | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    readable = (*SYSTEM, PROCESSORS, *interpreter_paths(), *more)
    return Policy(readable, dict(placed or {}), environment, limits or Limits())
