"""Where a worker's cases lie: real memory in two regions, and on all sides of both a sink that takes stray accesses. Standard library only.

An access that meets no memory ends the context, and a GPU makes only a few contexts a second. So one small piece of memory is mapped again and again to the
addresses around the regions: a stray read finds poison there, a stray write is seen as a change of the piece, and the context lives on. A loop that runs
away leaves the sink soon and ends. Which accesses would have ended the context can still be shown: `hide` takes the sink away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from truekernel.execution.cuda.driver import Driver

STEP = 16 << 20
"""Bytes of the sink, and of each piece of real memory."""
SPAN = 1 << 30
"""Bytes of the sink's addresses around the regions. Nearly every wrong index goes astray by less than that, at the sizes of audits; a loop that runs away
leaves the sink after a while, and ends."""
REGION = 2 << 30
_SINK = -1
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
    """Both regions, with the sink around them and wherever they have no memory yet. `resident` is for what no kernel may write, `arena` for what kernels
    write. `sink`: where the sink itself can always be read."""

    def __init__(self, driver: Driver, device: int) -> None:
        self._driver, self._device = driver, device
        self._piece = driver.create(STEP, device)
        self.sink = driver.reserve(STEP)
        driver.map(self.sink, [self._piece], STEP, device)
        self.refill()
        total = 3 * SPAN + 2 * REGION
        self._base = driver.reserve(total)
        self._steps = [_SINK] * (total // STEP)
        """What lies at each step: the sink, or the handle of a piece of real memory."""
        self._hidden = True
        self.show()
        starts = (self._base + SPAN, self._base + 2 * SPAN + REGION)
        self.resident, self.arena = (Region(self, start) for start in starts)

    def refill(self) -> None:
        """Give the sink its content."""
        self._driver.call("cuMemsetD8Async", self.sink, SINK_BYTE, STEP, None)

    def hide(self) -> None:
        """Take the sink away: from now on stray accesses end the context."""
        if not self._hidden:
            self._driver.call("cuCtxSynchronize")
            for number in self._sinks():
                self._driver.unmap(self._base + number * STEP, STEP)
            self._hidden = True

    def show(self) -> None:
        """Put the sink back."""
        if self._hidden:
            for first, length in _runs(self._sinks()):
                self._driver.map(self._base + first * STEP, [self._piece] * length, STEP, self._device)
            self._hidden = False

    def fill(self, start: int, nbytes: int) -> None:
        """Have real memory under a range of addresses. Raises DriverError when there is none left."""
        first, last = self._number(start), self._number(start + nbytes - 1)
        lacking = [number for number in range(first, last + 1) if self._steps[number] == _SINK]
        if lacking:
            self._driver.call("cuCtxSynchronize")
        for begin, length in _runs(lacking):
            piece = self._driver.create(length * STEP, self._device)
            for number in range(begin, begin + length):
                if not self._hidden:
                    self._driver.unmap(self._base + number * STEP, STEP)
                self._steps[number] = piece
            self._driver.map(self._base + begin * STEP, [piece], length * STEP, self._device)

    def _number(self, address: int) -> int:
        return (address - self._base) // STEP

    def _sinks(self) -> list[int]:
        return [number for number, content in enumerate(self._steps) if content == _SINK]


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First number and length of each run of consecutive numbers, which ascend."""
    begin = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1:
            yield numbers[begin], at - begin
            begin = at
