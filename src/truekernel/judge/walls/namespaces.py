"""Another view of the machine: own users, processes, network, and a file system that holds only what a policy names."""

from __future__ import annotations

import os
from pathlib import Path

from truekernel.judge.walls import system
from truekernel.judge.walls.system import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
)

BASE = "/tmp"
"""Where the new file system is put together; every Linux has it."""
NEW, OLD = f"{BASE}/new", f"{BASE}/old"
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def own_user(uid: int, gid: int) -> None:
    """A user namespace in which this process keeps its numbers, and nobody else exists. Raises OSError."""
    system.unshare(system.CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1", encoding="ascii")


def own_files(readable: list[str], placed: dict[str, str], hidden: list[str], disk: int) -> None:
    """A mount namespace whose new root, at `NEW` for now, holds `readable` without the contents of `hidden`, and `placed`, all read-only, a few devices and an empty /tmp of `disk` bytes. Raises OSError."""
    system.unshare(system.CLONE_NEWNS)
    system.mount("", "/", "", MS_REC | MS_PRIVATE)
    system.mount("tmpfs", BASE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    for folder in (NEW, OLD):
        Path(folder).mkdir()
    system.mount("tmpfs", NEW, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m")
    system.pivot_root(BASE, f"{BASE}/old")
    os.chdir("/")
    # First, since what is readable may lie below it: a checkout in /tmp, say.
    _place("/new/tmp", folder=True)
    system.mount("tmpfs", "/new/tmp", "tmpfs", MS_NOSUID | MS_NODEV, f"mode=1777,size={disk},nr_inodes=20000")
    for path in readable:
        _show(path, path)
    for path in hidden:
        if Path(f"/new{path}").is_dir():
            system.mount("tmpfs", f"/new{path}", "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY, "mode=555,size=4k")
    for inside, path in placed.items():
        _show(path, inside)
    for path in _DEVICES:
        target = f"/new{path}"
        _place(target, folder=False)
        system.mount(f"/old{path}", target, "", MS_BIND)
    for folder in ("proc", "old"):
        _place(f"/new/{folder}", folder=True)
    Path("/new/dev/shm").symlink_to("/tmp")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        Path(f"/new/dev/{name}").symlink_to(f"/proc/self/fd/{number}")
    Path("/new/dev/fd").symlink_to("/proc/self/fd")


def _show(path: str, inside: str) -> None:
    """Make a file or folder visible, read-only. One that does not exist is left out; a link stays a link."""
    source, target = Path(f"/old{path}"), f"/new{inside}"
    if source.is_symlink() and path == inside:
        if not os.path.lexists(target):
            _place(str(Path(target).parent), folder=True)
            Path(target).symlink_to(source.readlink())
        return
    if not source.exists() or Path(target).is_mount():
        return
    _place(target, folder=source.is_dir())
    system.mount(str(source), target, "", MS_BIND | MS_REC)
    system.read_only(target)


def _place(target: str, *, folder: bool) -> None:
    path = Path(target)
    if path.exists():
        return
    if folder:
        path.mkdir(parents=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def enter_files() -> str:
    """Make the new root the only one; to be called in the first process of a new process namespace, for its /proc. Returns why there is no /proc, "" when there is. Raises OSError."""
    why = ""
    try:
        system.mount("proc", "/new/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    except OSError as error:
        why = error.strerror or str(error)
    os.chdir("/new")
    system.pivot_root(".", ".")
    system.unmount(".")
    os.chdir("/")
    system.mount("", "/", "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    return why
