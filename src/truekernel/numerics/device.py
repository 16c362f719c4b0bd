"""Statistics where the output lies: one pass over device memory instead of a copy to the host.

`DeviceJudge` computes what `statistics.statistics` means, and the digest of `digest.py`, with the kernels of `native/statistics.cuh`. Counts and maxima equal the CPU's
exactly; `rms` and `bias` differ in the order of their sums. The same output gives the same bits in every run and on every device: neither grid nor order depend on the hardware.

An output is a `DeviceOutput`, or comes in consecutive parts, each with its part of the references, of which only one need exist at a time. Besides that, a judge holds one
megabyte of device memory. Without truth and scale only the statistics of published checkers are found (flat, unwritten, elements, precision,
mismatch); output and published value are then each read once, and nothing else.

The judge reaches the device through a `Machine`; `cuda_core.CudaCore` is one. This file needs the standard library alone, so that a process that runs kernels can load it by
its path without the rest of the package.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

CODES: dict[str, int] = {
    "float32": 0,
    "float16": 1,
    "bfloat16": 2,
    "float64": 3,
    "int32": 4,
    "int64": 5,
    "uint8": 6,
}
"""Element types as the kernels number them, in the order of model.ITEM_BYTES."""
ITEM_BYTES = (4, 2, 2, 8, 4, 8, 1)
PRECISION = (24, 11, 8, 53, 0, 0, 0)
THREADS = 256
MOST_BLOCKS = 1056
"""Enough for several waves on any present GPU; a fixed number, so that sums have one order everywhere."""
VECTORS_A_THREAD = 2
VECTORS_OF_OUTPUT = 1 << 40
_INDEX = 0x9E3779B97F4A7C15
_PLAIN_WORDS = 7
_PARTIAL_ROWS = 32
COMBINE, DIGEST = "tk_combine", "tk_digest"

Tolerance = tuple[float, float]


def source() -> str:
    """CUDA C++ of the kernels. Compile without contraction of multiply and add, without flushing of subnormals, with exact division."""
    folder = Path(__file__).parent / "native"
    return "\n".join((folder / name).read_text() for name in ("items.cuh", "statistics.cuh"))


def judge_kernel(dtype: str, full: bool, aligned: bool, tolerances: int, rhos: int, *, spread: bool = False) -> str:
    """Name expression of the kernel for outputs of a type. `full`: with the statistics of the error; `tolerances`, `rhos`: their numbers; `aligned`: all
    addresses are multiples of 16; `spread`: where the honest panel's is given, which costs registers."""
    flags = ", ".join(str(flag).lower() for flag in (full, aligned))
    return f"tk_judge<{CODES[dtype]}, {flags}, {tolerances}, {rhos if full else 0}, {str(full and spread).lower()}>"


@dataclass(frozen=True, slots=True)
class DeviceOutput:
    """An output, or a part of one, in device memory; addresses are those of the part's first element, 0 where there is none.

    `output`, `published`: `elements` items of `dtype`. `truth`, `scale`, `spread`: as many float64 values; `ties`: a float64 table with `ties_length` columns, for
    index outputs. See `Expected` for what they mean. `first`: number of the part's first element in the whole output, a multiple of 16.
    """

    output: int
    published: int
    elements: int
    dtype: str
    kind: Literal["value", "index", "permutation", "code", "exact"] = "value"
    truth: int = 0
    scale: int = 0
    spread: int = 0
    ties: int = 0
    ties_length: int = 0
    first: int = 0

    @property
    def full(self) -> bool:
        """Whether the error can be measured."""
        return bool(self.truth and self.scale)


class Machine(Protocol):
    """What a judge needs of a device. All four happen in order, as on one stream."""

    def allocate(self, nbytes: int) -> int:
        """Address of new device memory, 256-byte aligned."""
        ...

    def upload(self, address: int, data: bytes) -> None:
        """Copy host bytes to the device."""
        ...

    def download(self, address: int, nbytes: int) -> bytes:
        """Copy device bytes to the host, once everything before has happened."""
        ...

    def launch(self, kernel: str, blocks: int, threads: int, arguments: Sequence[bytes]) -> None:
        """Launch a kernel of `source()` by its name expression; each argument is its bytes."""
        ...


class DeviceJudge:
    """Judges outputs on one device. Not for several threads at once."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._settings: dict[tuple[tuple[Tolerance, ...], tuple[float, ...]], int] = {}
        self._partials = self.state = 0
        self._rows = 0

    def statistics(
        self,
        outputs: Sequence[DeviceOutput | Iterable[DeviceOutput]],
        fill: str,
        tolerances: Sequence[Tolerance] = (),
        rhos: Sequence[float] | None = None,
    ) -> tuple[dict[str, float], str]:
        """All statistics of one execution by name, and the digest of its outputs.

        `outputs`: one entry for each output, in order. `fill`: "poison" where unwritten elements hold 0xFF bytes. `rhos`: the usual ladder by default.
        Statistics of the error are left out unless all outputs have truth and scale. Raises ValueError for parts that do not follow each other.
        """
        from truekernel.numerics.names import RHO_LADDER, statistic_names

        ladder = RHO_LADDER if rhos is None else tuple(rhos)
        values, digest = self.values(outputs, fill, tolerances, ladder)
        names = statistic_names(tolerances, ladder)
        return {name: value for name, value in zip(names, values, strict=True) if value is not None}, digest

    def values(
        self,
        outputs: Sequence[DeviceOutput | Iterable[DeviceOutput]],
        fill: str,
        tolerances: Sequence[Tolerance],
        rhos: Sequence[float],
    ) -> tuple[list[float | None], str]:
        """The same in the order of `names.statistic_names`, None for statistics that were not measured."""
        execution = self.start(fill, tolerances, rhos)
        for number, output in enumerate(outputs):
            for part in [output] if isinstance(output, DeviceOutput) else output:
                execution.add(number, part)
        return execution.values()

    def start(self, fill: str, tolerances: Sequence[Tolerance], rhos: Sequence[float]) -> DeviceExecution:
        """An execution whose outputs come in parts; those of several outputs may alternate. Ends the one that was started before."""
        if any(atol < 0 or rtol < 0 for atol, rtol in tolerances):
            raise ValueError("tolerances must not be negative")
        settings = self._uploaded(tuple(tolerances), tuple(rhos))
        self._reserve(_PLAIN_WORDS + len(tolerances) + len(rhos))
        return DeviceExecution(self, fill == "poison", len(tolerances), len(rhos), settings)

    def digest(self, ranges: Sequence[tuple[int, int]]) -> str:
        """The digest of (address, bytes) ranges, addresses being multiples of 16; what `digest.digest` gives for tensors of those bytes."""
        self._reserve(_PLAIN_WORDS)
        launched = False
        for number, (address, nbytes) in enumerate(ranges):
            if not nbytes:
                continue
            if address % 16:
                raise ValueError(f"address {address:#x} is not a multiple of 16")
            blocks = _blocks(nbytes)
            first = number * VECTORS_OF_OUTPUT
            arguments = [_word(address), _signed(nbytes), _word(first), _word(self._partials)]
            self._machine.launch(DIGEST, blocks, THREADS, arguments)
            self._combine(blocks, 1, -1, not launched)
            launched = True
        total = self.words(1)[0] if launched else 0
        length = sum(nbytes for _, nbytes in ranges)
        return f"{(total + length * _INDEX) & ((1 << 64) - 1):016x}"

    def launch_judge(
        self, part: DeviceOutput, number: int, poison: bool, tolerances: int, rhos: int, settings: int, replace: bool
    ) -> None:
        """Launch the kernels for one part; for `DeviceExecution`."""
        size = ITEM_BYTES[CODES[part.dtype]]
        table = part.kind == "index" and part.ties != 0
        references = (part.truth, part.scale, part.spread) if part.full else (0, 0, 0)
        aligned = all(address % 16 == 0 for address in (part.output, part.published, *references))
        blocks = _blocks(part.elements * size)
        first = number * VECTORS_OF_OUTPUT + part.first * size // 16
        arguments = [
            *map(_word, (part.output, part.published, *references, part.ties if table and part.full else 0)),
            _signed(part.ties_length),
            _signed(part.elements),
            _word(first),
            struct.pack("<i", int(poison)),
            _word(settings),
            _word(self._partials),
        ]
        kernel = judge_kernel(part.dtype, part.full, aligned, tolerances, rhos, spread=part.spread != 0)
        self._machine.launch(kernel, blocks, THREADS, arguments)
        self._combine(blocks, _PLAIN_WORDS + tolerances + (rhos if part.full else 0), tolerances, replace)

    def _combine(self, blocks: int, rows: int, tolerances: int, replace: bool) -> None:
        arguments = [
            _word(self._partials),
            struct.pack("<i", blocks),
            struct.pack("<i", tolerances),
            struct.pack("<i", int(replace)),
            _word(self.state),
        ]
        self._machine.launch(COMBINE, rows, THREADS, arguments)

    def _uploaded(self, tolerances: tuple[Tolerance, ...], rhos: tuple[float, ...]) -> int:
        key = (tolerances, rhos)
        if key not in self._settings:
            numbers = [*(atol for atol, _ in tolerances), *(rtol for _, rtol in tolerances), *rhos, 0.0]
            address = self._machine.allocate(8 * len(numbers))
            self._machine.upload(address, struct.pack(f"<{len(numbers)}d", *numbers))
            self._settings[key] = address
        return self._settings[key]

    def _reserve(self, rows: int) -> None:
        if rows > self._rows:
            self._rows = max(rows, _PARTIAL_ROWS)
            self._partials = self._machine.allocate(8 * self._rows * MOST_BLOCKS)
            self.state = self._machine.allocate(8 * self._rows)

    def words(self, count: int) -> tuple[int, ...]:
        """The first words of the state, once everything launched has ended."""
        return struct.unpack(f"<{count}Q", self._machine.download(self.state, 8 * count))


class DeviceExecution:
    """The outputs of one execution on their way through a judge."""

    def __init__(self, judge: DeviceJudge, poison: bool, tolerances: int, rhos: int, settings: int) -> None:
        self._judge, self._poison, self._settings = judge, poison, settings
        self._tolerances, self._rhos = tolerances, rhos
        self._reached: dict[int, int] = {}
        self._measured: set[bool] = set()
        self._precisions: list[int] = []
        self._elements = self._bytes = 0

    def add(self, number: int, part: DeviceOutput) -> None:
        """The next part of output `number`. Its memory, references included, must stay as it is until what is launched here has run."""
        reached = self._reached.get(number, 0)
        if part.first != reached or part.first % 16:
            raise ValueError(
                f"part of output {number} starts at element {part.first}: {reached} and a multiple of 16 expected"
            )
        code = CODES[part.dtype]
        self._precisions.append(PRECISION[code])
        self._reached[number] = reached + part.elements
        self._elements += part.elements
        self._bytes += part.elements * ITEM_BYTES[code]
        if not part.elements:
            return
        first = not self._measured
        self._measured.add(part.full)
        if len(self._measured) > 1:
            raise ValueError("either all outputs have truth and scale, or none")
        self._judge.launch_judge(part, number, self._poison, self._tolerances, self._rhos, self._settings, first)

    def values(self) -> tuple[list[float | None], str]:
        """Statistics in the order of `names.statistic_names`, and the digest, of all parts."""
        _, count = self.state()
        return self.decoded(self._judge.words(count) if count else ())

    def state(self) -> tuple[int, int]:
        """Address and number of the words that `decoded` takes, 0 when nothing was launched. What this execution launched has written them when it has
        run; what the next one launches overwrites them."""
        full = False not in self._measured
        count = _PLAIN_WORDS + self._tolerances + (self._rhos if full else 0)
        return self._judge.state, count if self._measured else 0

    def decoded(self, words: Sequence[int]) -> tuple[list[float | None], str]:
        """What the words of `state` say, as `values`."""
        full = False not in self._measured
        digest = ((words[6] if words else 0) + self._bytes * _INDEX) & ((1 << 64) - 1)
        precision = min((bits for bits in self._precisions if bits), default=0)
        found = _decoded(words, self._elements, precision, full, self._tolerances, self._rhos)
        return found, f"{digest:016x}"


def _decoded(
    words: Sequence[int], elements: int, precision: int, full: bool, tolerances: int, rhos: int
) -> list[float | None]:
    """Statistics in the order of their names from the words of the state."""
    if not words:
        return [*[0.0] * 7, float(precision), *[0.0] * (tolerances + rhos)]

    def number(word: int) -> float:
        value: float = struct.unpack("<d", struct.pack("<Q", word))[0]
        return value

    flat, worst, squares, signed = map(number, words[:4])
    rms = math.sqrt(squares / elements) if squares > 0 else 0.0
    bias = signed / math.sqrt(squares) if squares > 0 else 0.0
    found: list[float | None] = [flat, float(words[4]), worst, rms, bias, float(words[5]), float(elements)]
    found.append(float(precision))
    found += [float(count) for count in words[_PLAIN_WORDS : _PLAIN_WORDS + tolerances]]
    if not full:
        found[1:5] = [None] * 4
        return [*found, *[None] * rhos]
    return [*found, *map(number, words[_PLAIN_WORDS + tolerances :])]


def _blocks(nbytes: int) -> int:
    return max(1, min(MOST_BLOCKS, -(-nbytes // (16 * THREADS * VECTORS_A_THREAD))))


def _word(value: int) -> bytes:
    return struct.pack("<Q", value)


def _signed(value: int) -> bytes:
    return struct.pack("<q", value)
