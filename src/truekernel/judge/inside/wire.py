"""Messages between the judge and the process behind walls: four bytes of length (big-endian), a JSON object, then the raw bytes that the object announces.

Standard library alone. Tensors of a request lie in a file in memory that both sides share, so that the judge sees afterwards what became of them; those of an answer leave by
the pipe.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Sequence
from typing import Any

HEAD = struct.Struct(">I")
LONGEST_HEADER = 1 << 20
"""Bytes of a JSON object: reasons are short, and outputs few."""
LONGEST_TEXT = 400
"""Characters of a text that a candidate may bring into a report."""
ALIGNMENT = 4096
"""Tensors start at multiples of this in the shared file, as an allocator's do at smaller ones."""
ITEM_BYTES = {
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float64": 8,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "bool": 1,
}


def size_of(dtype: str, shape: Sequence[int]) -> int:
    """Bytes of a tensor."""
    total = ITEM_BYTES[dtype]
    for length in shape:
        total *= length
    return total


def write_all(descriptor: int, parts: Iterable[bytes | memoryview]) -> None:
    """Write bytes to their end. Raises OSError."""
    for part in parts:
        view = memoryview(part)
        while view:
            view = view[os.write(descriptor, view) :]


def message(header: dict[str, Any]) -> bytes:
    """A JSON object with its length in front."""
    text = json.dumps(header).encode()
    return HEAD.pack(len(text)) + text


def read_exactly(descriptor: int, size: int) -> bytes:
    """`size` bytes. Raises EOFError."""
    parts = []
    while size:
        part = os.read(descriptor, min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_message(descriptor: int) -> dict[str, Any]:
    """The next JSON object. Raises EOFError."""
    (size,) = HEAD.unpack(read_exactly(descriptor, HEAD.size))
    found: dict[str, Any] = json.loads(read_exactly(descriptor, size))
    return found


def safe_text(text: object, longest: int = LONGEST_TEXT) -> str:
    """One line without characters that can't be printed, cut to `longest`."""
    line = " ".join(str(text)[: 10 * longest].split())
    shown = "".join(letter if letter.isprintable() else "?" for letter in line)
    return shown if len(shown) <= longest else shown[: longest - 3] + "..."


def raised(error: BaseException) -> str:
    """An exception in words, whatever its own methods do."""
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:
        text = "an exception that can't be shown"
    return safe_text(text)
