"""Where a worker's cases lie: real memory in two regions, and on all sides of both a sink that takes stray accesses. Standard library only.

An access that meets no memory ends the context, and a GPU makes only a few contexts a second. So one small piece of memory is mapped again and again over
gigabytes of addresses around the regions: a stray read finds poison there, a stray write is seen as a change of the piece, and the context lives on.
Which accesses would have ended it can still be shown: `hide` takes the sink away.
"""

from __future__ import annotations

from truekernel.execution.cuda.driver import Driver

STEP = 16 << 20
"""Bytes of the sink, and of each piece of real memory."""
SPAN = 1 << 30
"""Bytes of addresses without real memory before, between and behind the regions."""
REGION = 2 << 30
SINK_BYTE = 0xFF
_ALIGNMENT = 512


class Region:
    """A range of addresses that real memory fills as far as it is needed. First fit."""

    def __init__(self, space: Space, start: int) -> None:
        self._space, self._start = space, start
        self._holes = [(start, REGION)]
        self._sizes: dict[int, int] = {}

    def allocate(self, nbytes: int) -> int | None:
        """Address of `nbytes`, None when the region is too small. Raises DriverError when the device's memory is used up."""
        wanted = -(-max(nbytes, 1) // _ALIGNMENT) * _ALIGNMENT
        for number, (start, size) in enumerate(self._holes):
            if size < wanted:
                continue
            self._space.fill(start, wanted)
            rest = [(start + wanted, size - wanted)] if size > wanted else []
            self._holes[number : number + 1] = rest
            self._sizes[start] = wanted
            return start
        return None

    def owns(self, address: int) -> bool:
        """Whether `allocate` gave this address."""
        return address in self._sizes

    def free(self, address: int) -> None:
        """Take an address back; its memory stays with the region."""
        holes = sorted([*self._holes, (address, self._sizes.pop(address))])
        self._holes = []
        for start, size in holes:
            if self._holes and sum(self._holes[-1]) == start:
                self._holes[-1] = (self._holes[-1][0], self._holes[-1][1] + size)
            else:
                self._holes.append((start, size))


class Space:
    """Both regions with the sink around them. `resident` is for what no kernel may write, `arena` for what kernels write: between them lies a gibibyte of sink.
    `sink`: where the sink itself can always be read."""

    def __init__(self, driver: Driver, device: int) -> None:
        self._driver, self._device = driver, device
        self._piece = driver.create(STEP, device)
        self.sink = driver.reserve(STEP)
        driver.map(self.sink, [self._piece], STEP, device)
        self.refill()
        total = 3 * SPAN + 2 * REGION
        self._base = driver.reserve(total)
        self._real: list[int] = [0] * (total // STEP)
        self._hidden = True
        self.show()
        self.resident = Region(self, self._base + SPAN)
        self.arena = Region(self, self._base + 2 * SPAN + REGION)

    def refill(self) -> None:
        """Give the sink its content."""
        self._driver.call("cuMemsetD8Async", self.sink, SINK_BYTE, STEP, None)

    def hide(self) -> None:
        """Take the sink away: from now on stray accesses end the context."""
        if not self._hidden:
            self._driver.call("cuCtxSynchronize")
            for first, count in self._runs():
                self._driver.unmap(self._base + first * STEP, count * STEP)
            self._hidden = True

    def show(self) -> None:
        """Put the sink back."""
        if self._hidden:
            for first, count in self._runs():
                self._driver.map(self._base + first * STEP, [self._piece] * count, STEP, self._device)
            self._hidden = False

    def fill(self, start: int, nbytes: int) -> None:
        """Have real memory under a range of addresses. Raises DriverError when there is none left."""
        first, last = (start - self._base) // STEP, (start + nbytes - 1 - self._base) // STEP
        lacking = [number for number in range(first, last + 1) if not self._real[number]]
        if lacking:
            self._driver.call("cuCtxSynchronize")
        for number in lacking:
            piece = self._driver.create(STEP, self._device)
            address = self._base + number * STEP
            if not self._hidden:
                self._driver.unmap(address, STEP)
            self._driver.map(address, [piece], STEP, self._device)
            self._real[number] = piece

    def _runs(self) -> list[tuple[int, int]]:
        """Neighbouring steps without real memory: first, number."""
        runs: list[tuple[int, int]] = []
        for number, piece in enumerate(self._real):
            if piece:
                continue
            if runs and sum(runs[-1]) == number:
                runs[-1] = (runs[-1][0], runs[-1][1] + 1)
            else:
                runs.append((number, 1))
        return runs
