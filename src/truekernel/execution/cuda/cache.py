"""Machine code that was compiled before, by the content it was compiled from; least recently used entries go when it grows too large."""

from __future__ import annotations

import contextlib
import os
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path

from truekernel.execution.cuda.wire import HEAD, MAGIC, ClosedError, decode, encode
from truekernel.execution.simt.cache import cache_root

LIMIT_BYTES = 512 << 20
"""About 50,000 entries of the usual size."""
SWEEP_EVERY = 256
"""Writes between two looks at the size."""


class CubinCache:
    """Entries are files of one folder: a frame of `wire`, the symbols as its JSON. Any number of processes may use it at once."""

    def __init__(self, folder: Path | None = None, *, limit: int = LIMIT_BYTES) -> None:
        self.folder = folder or cache_root() / "cubin"
        self.limit = limit
        self._writes = 0

    def get(self, key: str) -> tuple[dict[str, str], bytes] | None:
        """Symbols and machine code under `key`, None when they are not there or not whole."""
        path = self.folder / f"{key}.bin"
        try:
            data = path.read_bytes()
            magic, header, payload = HEAD.unpack_from(data)
            if magic != MAGIC or len(data) != HEAD.size + header + payload:
                return None
            symbols = decode(data[HEAD.size : HEAD.size + header])
            os.utime(path)
        except (OSError, ClosedError, struct.error):
            return None
        return {str(name): str(symbol) for name, symbol in symbols.items()}, data[HEAD.size + header :]

    def put(self, key: str, symbols: Mapping[str, str], cubin: bytes) -> None:
        """Keep an entry; a disk that is full or read-only only costs the cache."""
        text = encode(dict(symbols))
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, partial = tempfile.mkstemp(prefix=".", dir=self.folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(HEAD.pack(MAGIC, len(text), len(cubin)) + text + cubin)
                Path(partial).rename(self.folder / f"{key}.bin")
            except BaseException:
                Path(partial).unlink(missing_ok=True)
                raise
        if self._writes % SWEEP_EVERY == 0:
            self.sweep()
        self._writes += 1

    def sweep(self) -> None:
        """Remove entries, longest unused first, until the rest takes 80 % of the limit; nothing when the limit is kept."""
        entries = []
        with contextlib.suppress(OSError):
            for path in self.folder.iterdir():
                with contextlib.suppress(OSError):
                    status = path.stat()
                    entries.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in entries)
        if total <= self.limit:
            return
        for _, size, path in sorted(entries):
            with contextlib.suppress(OSError):
                path.unlink()
                total -= size
            if total <= 0.8 * self.limit:
                return
