"""Try the walls from inside: a program that does what a candidate might try, and tells how far it came."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
import sys
import tempfile
from pathlib import Path

from truekernel.judge.walls.policy import MIB, Limits, Policy, base_environment, interpreter_paths
from truekernel.judge.walls.process import Finished, Wall, run

SECONDS = 20.0
PROGRAM = r"""
import ctypes, json, os, socket, sys
port, canary, parent = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
done = {}

def tried(name, action):
    try:
        done[name] = str(action())
    except OSError as error:
        done[name] = ""

def connect():
    with socket.create_connection(("127.0.0.1", port), 2):
        return "connected to the caller"

def abstract():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("\0truekernel-probe-%d" % port)
        return "connected by an abstract socket"

def write(path):
    with open(path, "x"):
        os.unlink(path)
        return "wrote " + path

def read(path):
    with open(path, "rb") as file:
        return "read %s: %d bytes" % (path, len(file.read(100)) + 1)

def forks():
    children = []
    try:
        while len(children) < 60:
            child = os.fork()
            if not child:
                import time
                time.sleep(20)
                os._exit(0)
            children.append(child)
    finally:
        for child in children:
            os.kill(child, 9)
            os.waitpid(child, 0)
    return "60 processes"

def traced():
    child = os.fork()
    if not child:
        os._exit(0 if ctypes.CDLL(None).ptrace(0, 0, 0, 0) else 1)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        raise OSError
    return "traced"

def killed():
    os.kill(parent, 0)
    return "could signal the caller"

def filled():
    with open(os.environ["TMPDIR"] + "/fill", "wb") as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
    return "wrote 64 MiB"

tried("network", connect)
tried("abstract socket", abstract)
tried("secret file", lambda: read(canary))
tried("system file", lambda: write("/usr/truekernel-probe"))
tried("home", lambda: write(os.path.dirname(canary) + "/written"))
tried("caller's memory", lambda: read("/proc/%d/mem" % parent))
tried("caller's environment", lambda: read("/proc/%d/environ" % parent))
tried("caller's signals", killed)
tried("tracing", traced)
tried("processes", forks)
tried("disk", filled)
done["environment"] = ",".join(sorted(set(os.environ) - {"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE"}))
done["user"] = "is root" if os.geteuid() == 0 else ""
done["honest"] = str(sum(n * n for n in range(1000)))
print(json.dumps(done))
"""
_HONEST = str(sum(n * n for n in range(1000)))


def attempts(policy: Policy) -> tuple[dict[str, str], Finished]:
    """What the probing program reached behind a policy's walls: attempt -> what it got, "" when it was refused. Its last line may be missing when it was ended: then all is "unknown"."""
    with (
        tempfile.TemporaryDirectory(prefix="truekernel-probe-") as folder,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        canary = Path(folder) / "canary"
        canary.write_text("secret", encoding="ascii")
        Path(folder).chmod(0o777)
        canary.chmod(0o644)
        port = listener.getsockname()[1]
        with socket.socket(socket.AF_UNIX) as named:
            named.bind(f"\0truekernel-probe-{port}")
            named.listen()
            command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(port), str(canary), str(os.getpid())]
            finished = run(policy, command, seconds=SECONDS)
    with contextlib.suppress(ValueError):
        found = json.loads(finished.output.strip().splitlines()[-1] if finished.output.strip() else "")
        return {str(name): str(got) for name, got in found.items()}, finished
    return {}, finished


def probe_policy() -> Policy:
    """Small limits, so that they are reached at once."""
    limits = Limits(memory=256 * MIB, disk=16 * MIB, processes=24, cpu_seconds=20)
    readable = (*Policy().readable, *interpreter_paths())
    return Policy(readable, environment=base_environment(), limits=limits)


def probe() -> list[Wall]:
    """The walls of this machine, each raised and tried: one that is up but let something through counts as down."""
    reached, finished = attempts(probe_policy())
    if reached.pop("honest", "") != _HONEST:
        return [
            dataclasses.replace(wall, up=False, detail=f"nothing runs behind it: {finished.ended}")
            for wall in finished.walls
        ]
    leaks = {name: got for name, got in reached.items() if got}
    walls = []
    for wall in finished.walls:
        through = [leaks[name] for name in KEEPS.get(wall.name, ()) if name in leaks]
        walls.append(
            dataclasses.replace(wall, up=False, detail=f"let through: {', '.join(through)}")
            if wall.up and through
            else wall
        )
    return walls


KEEPS: dict[str, tuple[str, ...]] = {
    "network": ("network",),
    "files": ("secret file", "system file", "home"),
    "landlock": ("secret file", "system file", "home"),
    "processes": ("caller's signals",),
    "own /proc": ("caller's memory", "caller's environment"),
    "system calls": ("tracing",),
    "limits": ("processes",),
    "environment": ("environment",),
    "user": ("user",),
}
"""What each wall must keep from the probing program."""
