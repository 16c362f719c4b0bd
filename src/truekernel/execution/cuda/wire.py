"""What the parent and its processes say to each other: frames of strict JSON and raw bytes over pipes. Standard library only.

A frame is "TKW1", the two lengths (little-endian, 4 and 8 bytes), a JSON object, bytes. Nothing that arrives is ever executed or unpickled.
"""

from __future__ import annotations

import json
import math
import os
import select
import struct
import time
from collections.abc import Sequence
from typing import Any

MAGIC = b"TKW1"
HEAD = struct.Struct("<4sIQ")
SMALL = 1 << 16
"""Shorter parts are joined before they are written."""
MOST_HEADER = 64 << 20
MOST_PAYLOAD = 1 << 40

Message = dict[str, Any]
Data = bytes | bytearray | memoryview


class ClosedError(Exception):
    """The other side has gone, or has said something that is no frame."""


class OverdueError(Exception):
    """Nothing came in time."""


def encode(message: Message) -> bytes:
    """A message as strict JSON: no NaN, no infinities."""
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode()


def decode(text: bytes | bytearray) -> Message:
    """The message in strict JSON `text`. Raises ClosedError for anything else."""
    try:
        message = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ClosedError(f"not a message: {error}") from None
    if not isinstance(message, dict):
        raise ClosedError(f"not a message: {type(message).__name__}")
    return message


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not strict JSON")


class Channel:
    """One side of a conversation over two file descriptors."""

    def __init__(self, reader: int, writer: int) -> None:
        self.reader, self.writer = reader, writer
        self._held: list[Data] = []

    def send(self, message: Message, payload: Sequence[Data] = ()) -> None:
        """Send a frame, and those held back before it. Raises ClosedError when nobody reads."""
        self.hold(message, payload)
        self.flush()

    def hold(self, message: Message, payload: Sequence[Data] = ()) -> None:
        """Keep a frame for the next `flush`: several small ones are one write then."""
        text = encode(message)
        views = [memoryview(part).cast("B") for part in payload if len(part)]
        self._held.append(HEAD.pack(MAGIC, len(text), sum(len(v) for v in views)) + text)
        self._held += views

    def flush(self) -> None:
        """Send what is held. Raises ClosedError when nobody reads."""
        held, self._held = self._held, []
        small: list[Data] = []
        try:
            for part in held:
                if len(part) < SMALL:
                    small.append(part)
                    continue
                self._write(memoryview(b"".join(small)))
                self._write(memoryview(part))
                small = []
            self._write(memoryview(b"".join(small)))
        except (BrokenPipeError, OSError) as error:
            raise ClosedError(str(error)) from None

    def _write(self, view: memoryview) -> None:
        while len(view):
            view = view[os.write(self.writer, view) :]

    def receive(self, seconds: float | None = None) -> tuple[Message, bytearray]:
        """The next frame. Raises OverdueError when it has not come whole within `seconds`, ClosedError when the other side has gone."""
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        magic, header, payload = HEAD.unpack(self._read(HEAD.size, deadline))
        if magic != MAGIC or header > MOST_HEADER or payload > MOST_PAYLOAD:
            raise ClosedError("not a frame")
        return decode(self._read(header, deadline)), self._read(payload, deadline)

    def _read(self, wanted: int, deadline: float) -> bytearray:
        data = bytearray(wanted)
        view, at = memoryview(data), 0
        while at < wanted:
            if deadline != math.inf:
                left = deadline - time.monotonic()
                if left <= 0 or not select.select([self.reader], [], [], left)[0]:
                    raise OverdueError
            try:
                count = os.readv(self.reader, [view[at:]])
            except OSError as error:
                raise ClosedError(str(error)) from None
            if count == 0:
                raise ClosedError("the pipe is closed")
            at += count
        return data
