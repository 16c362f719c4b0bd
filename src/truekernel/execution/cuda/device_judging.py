"""Judging in the worker: `numerics/device.py`, loaded by its path since its package needs torch, on the worker's own driver.

Standard library only; runs in the worker process.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from ctypes import c_void_p
from pathlib import Path
from typing import Any

from truekernel.execution.cuda.bindings import Binding
from truekernel.execution.cuda.device_memory import Memory
from truekernel.execution.cuda.driver import Driver, parameters
from truekernel.execution.cuda.running import Decode

_PATH = Path(__file__).parents[2] / "numerics" / "device.py"


def load_device_numerics() -> Any:
    """The module `truekernel.numerics.device`, without its package."""
    name = "truekernel_numerics_device"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, _PATH)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


class JudgeMachine:
    """The `Machine` of a `DeviceJudge` in a worker; its kernels come from the parent."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.functions: dict[str, c_void_p] = {}

    def add(self, cubin: bytes, symbols: Mapping[str, str]) -> None:
        """Load kernels by name expression."""
        module = self._driver.load(cubin)
        self.functions |= {kernel: self._driver.function(module, symbol) for kernel, symbol in symbols.items()}

    def allocate(self, nbytes: int) -> int:
        """Address of new device memory."""
        return self._driver.allocate(max(nbytes, 1))

    def upload(self, address: int, data: bytes) -> None:
        """Copy host bytes to the device."""
        self._driver.upload(address, data)

    def download(self, address: int, nbytes: int) -> bytes:
        """Copy device bytes to the host, once everything before has happened."""
        return bytes(self._driver.download(address, nbytes))

    def launch(self, kernel: str, blocks: int, threads: int, arguments: Sequence[bytes]) -> None:
        """Launch a kernel by its name expression."""
        array, _alive = parameters(arguments)
        self._driver.launch(self.functions[kernel], (blocks, 1, 1), (threads, 1, 1), array)


class Judging:
    """Judges the outputs of cases whose references are resident."""

    def __init__(self, memory: Memory) -> None:
        self._numerics = load_device_numerics()
        self._memory = memory
        self.machine = JudgeMachine(memory.driver)
        self._judge = self._numerics.DeviceJudge(self.machine)

    def prepare(self, tolerances: Sequence[tuple[float, float]], rhos: Sequence[float]) -> None:
        """Have the memory that `begin` needs: once something runs, getting it would wait for that."""
        self._judge.start("poison", tolerances, rhos)

    def begin(
        self,
        case: Mapping[str, Any],
        binding: Binding,
        fill: str,
        tolerances: Sequence[tuple[float, float]],
        rhos: Sequence[float],
    ) -> tuple[int, int, Decode]:
        """Launch the judging of the case's outputs as they lie: where the result will be, and how it becomes statistics in the order of `numerics.statistic_names`."""
        execution = self._judge.start(fill, tolerances, rhos)
        for position, (number, reference) in enumerate(zip(case["outputs"], case["references"], strict=True)):
            execution.add(position, self._output(binding.addresses[number], reference))
        address, count = execution.state()
        return address, count, lambda words: list(execution.decoded(words)[0])

    def _output(self, address: int, reference: Mapping[str, Any]) -> Any:
        def place(name: str) -> int:
            content = reference[name]
            return self._memory.blobs[content].address if content is not None else 0

        return self._numerics.DeviceOutput(
            output=address,
            published=place("published"),
            elements=reference["elements"],
            dtype=reference["dtype"],
            kind=reference["kind"],
            truth=place("truth"),
            scale=place("scale"),
            spread=place("spread"),
            ties=place("ties"),
            ties_length=reference["ties_length"],
        )
