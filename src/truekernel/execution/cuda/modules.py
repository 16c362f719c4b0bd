"""Machine code on the device: loaded when it is first run, kept until it is unloaded. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import c_void_p

from truekernel.execution.cuda.driver import Driver, DriverError


class Module:
    """A cubin and, once needed, its module; loading one takes milliseconds."""

    def __init__(self, driver: Driver, cubin: bytes) -> None:
        self._driver, self._cubin = driver, cubin
        self._module: c_void_p | None = None
        self._functions: dict[str, c_void_p] = {}

    def functions(self, symbols: Mapping[str, str]) -> dict[str, c_void_p]:
        """Kernels by name expression; one that is not there is left out, and the execution that needs it says so. Raises DriverError when the driver does not
        load the cubin."""
        if self._module is None:
            self._module = self._driver.load(self._cubin)
        found: dict[str, c_void_p] = {}
        for kernel, symbol in symbols.items():
            if symbol not in self._functions:
                try:
                    self._functions[symbol] = self._driver.function(self._module, symbol)
                except DriverError:
                    continue
            found[kernel] = self._functions[symbol]
        return found

    def unload(self) -> None:
        """Give its memory back; the next `functions` loads it again."""
        module, self._module = self._module, None
        self._functions.clear()
        if module is not None:
            self._driver.unload(module)
