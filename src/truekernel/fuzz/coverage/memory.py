"""A log of things seen for the first time, in memory that forked processes share: what a killed process saw stays known."""

from __future__ import annotations

import mmap

import numpy as np


class SeenLog:
    """Numbers below `size`, each logged once. One process writes at a time; any of its family may read."""

    def __init__(self, size: int) -> None:
        self._seen = mmap.mmap(-1, max(size, 1))
        self._log = np.frombuffer(mmap.mmap(-1, 8 * (size + 2)), np.int64)
        self._size = size
        # places 0 and 1 hold how many are logged, and how many were when the case began

    def add(self, number: int) -> None:
        """Log `number` unless it was seen before."""
        if not self._seen[number]:
            self._seen[number] = 1
            logged = int(self._log[0])
            self._log[logged + 2] = number
            self._log[0] = logged + 1

    def forget(self, number: int) -> None:
        """Never log `number`."""
        self._seen[number] = 1

    def begin(self) -> None:
        """`since` counts from here."""
        self._log[1] = self._log[0]

    def since(self) -> list[int]:
        """What was logged since `begin`, in that order."""
        logged, start = int(self._log[0]), int(self._log[1])
        if not 0 <= start <= logged <= self._size:  # a process that went wild wrote here
            return []
        return [number for number in self._log[start + 2 : logged + 2].tolist() if 0 <= number < self._size]

    def __contains__(self, number: int) -> bool:
        return bool(self._seen[number])
