"""Which samples count."""

from __future__ import annotations

from truekernel.judge.bench.conditions import Conditions, Meter, rejected


def test_samples_of_a_steady_gpu_all_count() -> None:
    readings = [Conditions(sm_clock=1980 - k, reasons=1) for k in range(8)]
    assert rejected(readings) == [""] * 8


def test_a_slow_clock_and_heat_are_rejected_with_the_reason() -> None:
    readings = [Conditions(sm_clock=1980)] * 6 + [Conditions(sm_clock=1200), Conditions(sm_clock=1980, reasons=0x20)]
    found = rejected(readings)
    assert found[:6] == [""] * 6
    assert "1200 MHz" in found[6]
    assert found[7] == "heat"


def test_without_a_gpu_nothing_is_read_and_nothing_rejected() -> None:
    meter = Meter()
    if not meter.why:
        return  # a machine with a GPU
    assert "not recorded" in meter.why
    assert rejected([meter.read()] * 3) == [""] * 3
