"""Raise the walls around a command, run it, and say how it ended. `process` starts this as a script, before anything of the candidate's exists.

Three processes: this one, outside, which watches memory and ends everything when its caller goes; the first one inside, whose end ends all others inside; the command. What
the command does can reach neither of the two. The pipe `status` gets two lines of JSON: which walls are up, and how the command ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import secrets
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from truekernel.judge.walls import landlock, namespaces, seccomp, system

LOOK = 0.03
"""Seconds between looks at memory and at the caller."""
FIRST_USER, USERS = 61184, 4000
"""Numbers for users that own nothing; each run takes one of them."""
NOBODY = 65534
_PAGE = resource.getpagesize()


class Raised:
    """The walls so far: name -> whether it is up, and a detail or why it is not."""

    def __init__(self, without: list[str]) -> None:
        self._without = without
        self.walls: dict[str, dict[str, Any]] = {}

    def attempt(self, name: str, raise_it: Callable[[], str | None], detail: str = "") -> bool:
        """Raise a wall and note what came of it."""
        if name in self._without:
            self.note(name, "left out, as asked", up=False)
            return False
        try:
            told = raise_it()
        except OSError as error:
            self.note(name, error.strerror or str(error), up=False)
            return False
        self.note(name, told or detail, up=True)
        return True

    def note(self, name: str, detail: str, *, up: bool) -> None:
        """Note a wall."""
        self.walls[name] = {"up": up, "detail": detail}


def main() -> None:
    """`sys.argv[1]`: the request that `process` makes."""
    request = json.loads(sys.argv[1])
    raised = Raised(request["without"])
    root = os.geteuid() == 0
    _join_groups(request, raised)
    if not root:
        uid, gid = os.geteuid(), os.getegid()
        raised.attempt("user", lambda: namespaces.own_user(uid, gid), "own user namespace")
    limits = request["limits"]
    files = raised.attempt(
        "files",
        lambda: namespaces.own_files(request["readable"], request["placed"], request["hidden"], limits["disk"]),
        "own root, read-only but for a private /tmp",
    )
    raised.attempt("network", lambda: system.unshare(system.CLONE_NEWNET), "own network namespace without interfaces")
    raised.attempt(
        "ipc", lambda: system.unshare(system.CLONE_NEWIPC | system.CLONE_NEWUTS), "own shared memory and host name"
    )
    processes = raised.attempt(
        "processes", lambda: system.unshare(system.CLONE_NEWPID), "own process namespace, ended as a whole"
    )
    inside = os.fork()
    if not inside:
        try:
            _inside(request, raised, root=root, files=files, processes=processes)
        except BaseException as error:
            _tell(request["status"], {"failed": f"{type(error).__name__}: {error}"})
        finally:
            os._exit(70)
    os.close(request["status"])
    _watch(inside, request["life"], limits["memory"], files=files)


def _join_groups(request: dict[str, Any], raised: Raised) -> None:
    """Control groups that the caller made: limits that hold for root too."""

    def join() -> str:
        for group in request["groups"]:
            Path(group, "cgroup.procs").write_text("0", encoding="ascii")
        return ", ".join(request["groups_limit"])

    if request["groups"]:
        raised.attempt("control groups", join)
    else:
        raised.note("control groups", request["groups_why"], up=False)


def _watch(inside: int, life: int, most: int, *, files: bool) -> None:
    """Wait for the end of the inside, and bring it about when the caller has gone or memory is used up."""
    while True:
        ended, _ = os.waitpid(inside, os.WNOHANG)
        if ended:
            os._exit(0)
        gone = bool(select.select([life], [], [], LOOK)[0])
        if gone or (files and _resident() > most):
            with contextlib.suppress(ProcessLookupError):
                os.kill(inside, signal.SIGKILL)
            os.waitpid(inside, 0)
            os._exit(0 if gone else 99)


def _resident() -> int:
    """Bytes that all processes inside hold, shared ones counted for each, and private files."""
    total = 0
    with contextlib.suppress(OSError):
        for entry in os.listdir("/proc"):  # noqa: PTH208
            if entry.isdigit():
                with contextlib.suppress(OSError, IndexError, ValueError):
                    total += int(Path(f"/proc/{entry}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
        found = os.statvfs("/tmp")
        total += (found.f_blocks - found.f_bfree) * found.f_frsize
    return total


def _inside(request: dict[str, Any], raised: Raised, *, root: bool, files: bool, processes: bool) -> None:
    """The first process inside."""
    os.close(request["life"])
    if files:
        why = namespaces.enter_files() if processes else "no process namespace"
        raised.note("own /proc", why or "shows processes inside only", up=not why)
    else:
        os.chdir("/")
    if root:
        raised.attempt("user", lambda: _become_nobody(mapped=files and processes))
    raised.attempt("capabilities", system.drop_capabilities, "none")
    system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
    system.prctl(system.PR_SET_DUMPABLE, 0)
    own_end, command_end = os.pipe2(os.O_CLOEXEC)
    command = os.fork()
    if not command:
        os.close(own_end)
        _command(request, raised, command_end, files=files)
    os.close(command_end)
    told = b""
    while part := os.read(own_end, 65536):
        told += part
    os.write(request["status"], told)
    _reap(command, request["status"])


def _become_nobody(*, mapped: bool) -> str:
    """A number that nothing else runs under, so that limits of a user's processes count these alone; the first that the machine's map of users has. `mapped`: with a namespace of
    users, which needs a /proc of this process's own namespace."""
    for number in (FIRST_USER + secrets.randbelow(USERS), NOBODY):
        try:
            os.setgroups([])
            os.setresgid(number, number, number)
            os.setresuid(number, number, number)
        except OSError:
            continue
        if not mapped:
            return "a user that owns nothing"
        system.prctl(system.PR_SET_DUMPABLE, 1)
        namespaces.own_user(number, number)
        return "a user that owns nothing, in its own user namespace"
    raise OSError(1, "no other user can be taken")


def _reap(command: int, status: int) -> None:
    """Collect every process inside until the command has ended; the rest ends with this one."""
    while True:
        ended, code = os.wait()
        if ended == command and not os.WIFSTOPPED(code):
            _tell(status, {"ended": os.waitstatus_to_exitcode(code)})
            os._exit(0)


def _command(request: dict[str, Any], raised: Raised, told: int, *, files: bool) -> None:
    """Become the command, behind the last walls."""
    try:
        raised.attempt("limits", lambda: _limit(request["limits"]))
        proc = ["/proc"] if files else []
        readable = [*request["readable"], *request["placed"], "/dev/random", "/dev/urandom"]
        writable = (
            ["/tmp", *proc, "/dev/null", "/dev/zero", "/dev/full"] if files else [request["scratch"], "/dev/null"]
        )
        # Imports list the folders above modules; the own root has no others.
        listed = ["/"] if files else []
        raised.attempt("landlock", lambda: landlock.restrict(readable, writable, listed))
        raised.attempt("system calls", seccomp.restrict)
        os.chdir("/tmp" if files else request["scratch"])
        raised.note("environment", f"{len(request['environment'])} variables, none of the caller's", up=True)
        kept = [0, 1, 2, told, *request["keep"]]
        for entry in range(request["limits"]["open_files"]):
            if entry not in kept:
                with contextlib.suppress(OSError):
                    os.close(entry)
        _tell(told, {"walls": raised.walls})
        os.execve(request["command"][0], request["command"], request["environment"])
    except BaseException as error:
        _tell(told, {"failed": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(71)


def _limit(limits: dict[str, int]) -> str:
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits["disk"],
        resource.RLIMIT_NOFILE: limits["open_files"],
        resource.RLIMIT_CPU: limits["cpu_seconds"],
        resource.RLIMIT_NPROC: limits["processes"],
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_NICE: 0,
        resource.RLIMIT_RTPRIO: 0,
    }
    if limits["address_space"]:
        wanted[resource.RLIMIT_AS] = limits["address_space"]
    for kind, value in wanted.items():
        _, hard = resource.getrlimit(kind)
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (least, least))
    return f"{limits['processes']} processes, {limits['open_files']} files, {limits['disk'] >> 20} MiB a file, {limits['cpu_seconds']} s of CPU"


def _tell(descriptor: int, message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        os.write(descriptor, json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    main()
