"""What state a GPU was in while something was timed, as NVIDIA's management library tells it: clocks, temperature, power, reasons for slowing down.

Nothing is set, only read: hosts that are shared forbid it, and clocks that were locked do not hold against the power limit. Functions and bits: NVML API reference.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_uint, c_ulonglong, c_void_p
from dataclasses import dataclass
from statistics import median

_SM_CLOCK, _MEMORY_CLOCK, _TEMPERATURE = 1, 2, 0
SLOWED = {0x08: "hardware slowdown", 0x20: "heat", 0x40: "heat (hardware)", 0x80: "power brake"}
"""Reasons that make a sample worthless; a cap on power shows in the clock."""
LEAST_CLOCK = 0.9
"""Of the median over all samples: slower ones tell of the machine."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Clocks in MHz, temperature in degrees Celsius, power in watts, reasons for slowing down as bits; 0 where it can't be read."""

    sm_clock: int = 0
    memory_clock: int = 0
    temperature: int = 0
    power: float = 0.0
    reasons: int = 0


class Meter:
    """Reads one GPU; without the library, or without a GPU, all readings are 0 and `why` says so."""

    def __init__(self, device: int = 0) -> None:
        self._library: ctypes.CDLL | None = None
        self._device = c_void_p()
        self.why = ""
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError as error:
            self.why = f"conditions are not recorded: {error}"
            return
        if library.nvmlInit_v2() or library.nvmlDeviceGetHandleByIndex_v2(device, byref(self._device)):
            self.why = "conditions are not recorded: the management library finds no GPU"
            return
        self._library = library

    def read(self) -> Conditions:
        """The conditions now."""
        if self._library is None:
            return Conditions()
        sm, memory, heat, power, reasons = c_uint(), c_uint(), c_uint(), c_uint(), c_ulonglong()
        self._library.nvmlDeviceGetClockInfo(self._device, _SM_CLOCK, byref(sm))
        self._library.nvmlDeviceGetClockInfo(self._device, _MEMORY_CLOCK, byref(memory))
        self._library.nvmlDeviceGetTemperature(self._device, _TEMPERATURE, byref(heat))
        self._library.nvmlDeviceGetPowerUsage(self._device, byref(power))
        self._library.nvmlDeviceGetCurrentClocksThrottleReasons(self._device, byref(reasons))
        return Conditions(sm.value, memory.value, heat.value, power.value / 1e3, reasons.value)


def rejected(readings: Sequence[Conditions]) -> list[str]:
    """For each reading why its sample does not count, "" where it does."""
    clocks = [reading.sm_clock for reading in readings if reading.sm_clock]
    usual = median(clocks) if clocks else 0
    found = []
    for reading in readings:
        why = [text for bit, text in SLOWED.items() if reading.reasons & bit]
        if reading.sm_clock and reading.sm_clock < LEAST_CLOCK * usual:
            why.append(f"clock {reading.sm_clock} MHz, usually {usual:g}")
        found.append(", ".join(why))
    return found
