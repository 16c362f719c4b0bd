"""The judge's end of the pipes: sends requests, reads answers from a process that may write anything, or nothing."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Sequence
from typing import Any

from truekernel.judge.inside import wire

NONSENSE = "it answered with bytes that are no answer"


class FaultError(Exception):
    """The process behind walls does not answer as it should. `kind`: ended, timeout, garbage."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


class Channel:
    """Requests and answers, numbered, with a deadline for each."""

    def __init__(self) -> None:
        self.child_requests, self._requests = os.pipe()
        self._answers, self.child_answers = os.pipe()
        os.set_blocking(self._requests, False)
        os.set_blocking(self._answers, False)
        self._number = 0

    def started(self) -> None:
        """The process has its ends: drop ours of them, so that its end shows."""
        os.close(self.child_requests)
        os.close(self.child_answers)

    def close(self) -> None:
        """Close both pipes."""
        os.close(self._requests)
        os.close(self._answers)

    def ask(self, request: dict[str, Any], seconds: float) -> tuple[dict[str, Any], float]:
        """The header of an answer, and the deadline for the rest of it. Raises FaultError."""
        deadline = time.monotonic() + seconds
        self._number += 1
        if select.select([self._answers], [], [], 0.0)[0]:
            # It has ended, or writes what nobody asked for.
            raise FaultError(*(("garbage", NONSENSE) if self._some(1) else ("ended", "its process ended")))
        self._write(wire.message({"number": self._number, **request}), deadline, seconds)
        (size,) = wire.HEAD.unpack(self.read(wire.HEAD.size, deadline, seconds))
        if size > wire.LONGEST_HEADER:
            raise FaultError("garbage", NONSENSE)
        try:
            header = json.loads(self.read(size, deadline, seconds))
        except (ValueError, RecursionError):
            raise FaultError("garbage", NONSENSE) from None
        if not isinstance(header, dict) or header.get("number") != self._number:
            raise FaultError("garbage", NONSENSE)
        return header, deadline

    def read(self, size: int, deadline: float, seconds: float) -> bytes:
        """`size` bytes. Raises FaultError."""
        data = bytearray()
        while len(data) < size:
            if not select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise FaultError("timeout", f"it did not answer within {seconds:g} seconds")
            part = self._some(min(size - len(data), 1 << 20))
            if part == b"":
                raise FaultError("ended", "its process ended")
            data += part or b""
        return bytes(data)

    def _some(self, size: int) -> bytes | None:
        try:
            return os.read(self._answers, size)
        except BlockingIOError:
            return None

    def _write(self, data: bytes, deadline: float, seconds: float) -> None:
        view = memoryview(data)
        while view:
            if not select.select([], [self._requests], [], max(0.0, deadline - time.monotonic()))[1]:
                raise FaultError("timeout", f"it did not take a request within {seconds:g} seconds")
            try:
                view = view[os.write(self._requests, view) :]
            except BlockingIOError:
                continue
            except OSError:
                raise FaultError("ended", "its process ended") from None


class Shared:
    """A file in memory that holds the inputs on both sides. The other side can write it at any time, and cut it short: it is read, never mapped, here."""

    def __init__(self, regions: int) -> None:
        """`regions`: how many places of the same size it has, so that the same contents can lie at several addresses."""
        self.descriptor = os.memfd_create("truekernel-inputs", os.MFD_CLOEXEC)
        self.regions = regions
        self.size = 0

    def reserve(self, size: int) -> None:
        """Make each region `size` bytes long. Before anything is placed."""
        self.size = -(-max(size, 1) // wire.ALIGNMENT) * wire.ALIGNMENT
        os.ftruncate(self.descriptor, self.size * self.regions)

    def place(self, region: int, contents: Sequence[bytes | memoryview]) -> list[int]:
        """Write contents into a region, and where each begins. Raises FaultError when the file can't be written any more."""
        offsets, place = [], region % self.regions * self.size
        for content in contents:
            offsets.append(place)
            done = 0
            while done < len(content):
                done += os.pwrite(self.descriptor, content[done:], place + done)
            place += -(-len(content) // wire.ALIGNMENT) * wire.ALIGNMENT
        return offsets

    def still(self, offset: int, content: bytes | memoryview) -> bool:
        """Whether contents are as they were written."""
        return os.pread(self.descriptor, len(content), offset) == bytes(content)

    def close(self) -> None:
        """Give the memory back."""
        os.close(self.descriptor)


def space(sizes: Sequence[int]) -> int:
    """Bytes of a region that holds contents of these sizes."""
    return sum(-(-size // wire.ALIGNMENT) * wire.ALIGNMENT for size in sizes)
