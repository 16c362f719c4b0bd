"""Deaths are told apart, blamed on the right case, and survived."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from library_of_controls import case, install

from truekernel.fuzz.executor import Executor, Limits
from truekernel.fuzz.records import TensorValue

LIMITS = Limits(seconds=0.5, idle_seconds=0.5, memory=3 << 30, blow_up=64 << 20)


@pytest.fixture
def executor(monkeypatch):
    library = install(monkeypatch)
    with Executor(library, limits=LIMITS, oracles=[oracle.name for oracle in library.oracles()]) as made:
        yield made


@pytest.mark.parametrize(
    ("name", "kind", "error"),
    [
        ("honest", "valid", ""),
        ("crash", "crash", "SIGSEGV"),
        ("spin", "hang", "timeout"),
        ("sleep", "hang", "timeout"),
        ("greedy", "memory", ""),
        ("asserts", "assert", "RuntimeError"),
        ("refuses", "refused", "ValueError"),
    ],
)
def test_ends_are_told_apart(executor, name, kind, error):
    outcome = executor.run(case(name), ()).worst
    assert (outcome.kind, outcome.error) == (kind, error)
    assert executor.run(case("honest"), ()).worst.kind == "valid"


def test_an_assertion_says_where(executor):
    assert executor.run(case("asserts"), ()).worst.location == "aten/src/ATen/native/Thing.cpp:77"


def test_oracles_report_through_the_process(executor):
    report = executor.run(case("imprecise"), ("determinism", "precision"))
    assert [outcome.oracle for outcome in report.outcomes] == ["execution", "precision"]
    assert set(report.asked) == {"determinism", "precision"}


def test_a_crash_under_an_oracle_is_blamed_on_it(monkeypatch, executor):
    import torch
    from library_of_controls import NAMESPACE, crash

    monkeypatch.setattr(
        getattr(torch, NAMESPACE), "honest", lambda x: crash(x) if x.dtype == torch.float64 else x.sin()
    )
    from truekernel.fuzz.libraries import torch_operators

    torch_operators.resolve.cache_clear()
    executor.stop()
    worst = executor.run(case("honest", TensorValue((3,))), ("precision",)).worst
    torch_operators.resolve.cache_clear()
    assert (worst.kind, worst.oracle) == ("crash", "precision")


def test_what_cannot_be_made_is_refused(executor):
    assert executor.run(case("honest", TensorValue((3,), "float33")), ()).worst.kind == "refused"
