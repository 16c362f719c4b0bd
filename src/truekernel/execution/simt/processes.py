"""Run compilers and linkers: through a compile server where that works, else as processes."""

from __future__ import annotations

import contextlib
import os
import select
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from truekernel.execution.simt.work import work_path

CPU_SECONDS = 60
"""A compilation that needs more (endless template recursion) is ended."""
_HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""Compilers allocate in huge pages, of which a child of a compile server touches few."""


def run_tool(command: Sequence[str], *, seconds: float = 2 * CPU_SECONDS) -> tuple[int, str]:
    """Exit status and all output of a command; -1 when it was ended after `seconds`."""
    try:
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, f"error: {Path(command[0]).name} took more than {seconds:.0f} s"
    except OSError as error:
        return -1, f"error: can't run {command[0]}: {error.strerror}"
    return result.returncode, result.stdout.decode(errors="replace")


class CompileServer:
    """A compiler that waits, loaded, right before its main function and forks for each request (`native/compile_server.c`).

    Halves the time of a small compilation. `run` falls back to a plain process whenever the server does not work, e.g. since the
    compiler is a static program.
    """

    def __init__(self, program: str, preload: Path) -> None:
        self._program = program
        self._preload = preload
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._works = True
        self._lock = Lock()

    def run(self, command: Sequence[str]) -> tuple[int, str]:
        """Exit status and output of `command`, whose first word is this server's program."""
        with self._lock:
            log = work_path(".log")
            status = self._request(command, log)
        if status is None:
            return run_tool(command)
        with contextlib.suppress(OSError):
            text = log.read_text(errors="replace")
            log.unlink()
            return os.waitstatus_to_exitcode(status), text
        return run_tool(command)

    def close(self) -> None:
        """End the server; a later `run` starts another."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            assert process.stdin is not None and process.stdout is not None
            with contextlib.suppress(OSError):
                process.stdin.close()
            process.stdout.close()
            process.kill()
            process.wait()

    def _request(self, command: Sequence[str], log: Path) -> int | None:
        process = self._started()
        if process is None:
            return None
        assert process.stdin is not None and process.stdout is not None
        strings = b"".join(word.encode() + b"\0" for word in (str(log), *command))
        try:
            process.stdin.write(struct.pack("<II", len(command), len(strings)) + strings)
            process.stdin.flush()
            answer = process.stdout.read(4)
        except OSError:
            answer = b""
        if answer is None or len(answer) != 4:
            self.close()
            return None
        return int(struct.unpack("<i", answer)[0])

    def _started(self) -> subprocess.Popen[bytes] | None:
        if not self._works:
            return None
        if self._process is not None and self._owner == os.getpid() and self._process.poll() is None:
            return self._process
        environment = {**os.environ, "LD_PRELOAD": str(self._preload), "LD_BIND_NOW": "1", **_HUGE_PAGES}
        try:
            process = subprocess.Popen(
                [self._program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                bufsize=0,
            )
        except OSError:
            self._works = False
            return None
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], 20)
        self._process, self._owner = process, os.getpid()
        if not ready or process.stdout.read(4) != b"TKCS":
            self._works = False
            self.close()
            return None
        return process
