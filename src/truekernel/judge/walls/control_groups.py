"""Control groups: limits of memory and of processes that no user inside can lift, where the machine lets us make groups."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Groups:
    """Folders of the groups that were made, what they limit, and why there are none or fewer."""

    folders: tuple[Path, ...] = ()
    limits: tuple[str, ...] = ()
    why: str = ""

    def out_of_memory(self) -> bool:
        """Whether the kernel has ended a process because the group's memory was used up."""
        for folder in self.folders:
            with contextlib.suppress(OSError):
                text = (folder / "memory.oom_control").read_text(encoding="ascii")
                return any(line.startswith("oom_kill ") and line != "oom_kill 0" for line in text.splitlines())
        return False

    def remove(self) -> None:
        """Take the groups away; processes that are just ending may keep one for a moment."""
        for folder in self.folders:
            for _ in range(50):
                with contextlib.suppress(FileNotFoundError):
                    try:
                        folder.rmdir()
                    except OSError:
                        time.sleep(0.01)
                        continue
                break


def make_groups(memory: int, processes: int) -> Groups:
    """Groups for one run. `memory`: bytes, private files included; `processes`: threads count too. Never raises: what can't be made is said."""
    name = f"truekernel-{os.getpid()}-{secrets.token_hex(4)}"
    wanted = {"memory": ("memory.limit_in_bytes", memory), "pids": ("pids.max", processes)}
    folders: list[Path] = []
    limits: list[str] = []
    why = ""
    for controller, (file, value) in wanted.items():
        try:
            folder = _parent(controller) / name
            folder.mkdir()
        except OSError as error:
            why = f"{controller}: {error.strerror or error}"
            continue
        try:
            (folder / file).write_text(str(value), encoding="ascii")
        except OSError as error:
            why = f"{controller}: {error.strerror}"
            folder.rmdir()
            continue
        folders.append(folder)
        limits.append(f"{controller} {value >> 20} MiB" if controller == "memory" else f"{controller} {value}")
    return Groups(tuple(folders), tuple(limits), why)


def _parent(controller: str) -> Path:
    """The group of this process in a version 1 hierarchy. Raises OSError where there is none."""
    for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            for folder in (ROOT / controller / path.lstrip("/"), ROOT / controller):
                if folder.is_dir():
                    return folder
    raise FileNotFoundError(2, "no hierarchy of this machine has it")
