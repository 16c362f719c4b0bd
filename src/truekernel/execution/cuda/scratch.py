"""Small pieces of device memory that the host fills, such as tables: cut from large ones, and sent together. Standard library only."""

from __future__ import annotations

from collections import defaultdict

from truekernel.execution.cuda.driver import Driver

SLAB = 1 << 20
_LEAST = 256


class _Slab:
    """A large piece, its content on the host, and which part of that the device lacks."""

    def __init__(self, driver: Driver, nbytes: int) -> None:
        self.base = driver.allocate(nbytes)
        self.content = bytearray(nbytes)
        self.used = 0
        self.low, self.high = nbytes, 0

    def put(self, at: int, data: bytes) -> None:
        self.content[at : at + len(data)] = data
        self.low, self.high = min(self.low, at), max(self.high, at + len(data))

    def send(self, driver: Driver) -> None:
        if self.low < self.high:
            driver.upload(self.base + self.low, memoryview(self.content)[self.low : self.high])
            self.low, self.high = len(self.content), 0


class Scratch:
    """Pieces of powers of two. A copy to the device waits for all that runs there, so there is one for everything that was put since the last."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._slabs: list[_Slab] = []
        self._places: dict[int, tuple[_Slab, int, int]] = {}
        self._free: dict[int, list[tuple[_Slab, int, int]]] = defaultdict(list)

    def put(self, data: bytes) -> int:
        """Address at which `data` will lie after the next `send`, 256-byte aligned."""
        size = max(_LEAST, 1 << (len(data) - 1).bit_length())
        slab, at, _ = place = self._free[size].pop() if self._free[size] else self._cut(size)
        slab.put(at, data)
        self._places[slab.base + at] = place
        return slab.base + at

    def free(self, address: int) -> None:
        """Take a piece back. What was launched with it must have ended."""
        place = self._places.pop(address)
        self._free[place[2]].append(place)

    def send(self) -> None:
        """Have everything on the device that was put."""
        for slab in self._slabs:
            slab.send(self._driver)

    def _cut(self, size: int) -> tuple[_Slab, int, int]:
        if not self._slabs or self._slabs[-1].used + size > len(self._slabs[-1].content):
            self._slabs.append(_Slab(self._driver, max(SLAB, size)))
        slab = self._slabs[-1]
        at, slab.used = slab.used, slab.used + size
        return slab, at, size
