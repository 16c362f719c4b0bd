import pytest

from truekernel.model import Configuration, Execution, Outcome
from truekernel.trial.witness import HonestRange, proves_wrong


def execution(status="ok", worst=1.0, nonfinite=0.0):
    statistics = {"worst": worst, "nonfinite": nonfinite} if status == "ok" else {}
    return Execution("c", Configuration(), Outcome(status), statistics)


HONEST = HonestRange.of([execution(worst=1.0), execution(worst=3.0), execution("timeout")])


def test_range_is_that_of_the_worst_honest_variant():
    assert HonestRange(3.0, False) == HONEST
    assert HonestRange.of([]) == HonestRange(0.0, False)


@pytest.mark.parametrize("worst", [0.0, 3.0, 6.0])
def test_errors_within_twice_the_honest_ones_prove_nothing(worst):
    assert proves_wrong(execution(worst=worst), HONEST) is None


def test_a_larger_error_a_nan_and_a_crash_are_proof():
    assert "6.1" in proves_wrong(execution(worst=6.1), HONEST)
    assert "NaN" in proves_wrong(execution(nonfinite=2.0), HONEST)
    assert "out of bounds" in proves_wrong(execution("out_of_bounds"), HONEST)


def test_nan_that_honest_variants_show_too_and_faults_of_the_machine_are_not():
    assert proves_wrong(execution(nonfinite=2.0), HonestRange(3.0, True)) is None
    for status in ("infrastructure", "host_differs", "compile_error"):
        assert proves_wrong(execution(status), HONEST) is None


def test_where_honest_programs_are_exact_any_error_is_proof():
    assert proves_wrong(execution(worst=1e-9), HonestRange(0.0, False))
    assert proves_wrong(execution(worst=0.0), HonestRange(0.0, False)) is None
