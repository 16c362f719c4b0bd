import pytest
from synthetic_summary import make_summary

from truekernel.audit.scores import ERROR_SIZES, GROSS, error_size


@pytest.mark.parametrize(
    ("status", "why", "worst", "size"),
    [
        ("out_of_bounds", "ends in out of bounds", None, "fault"),
        ("timeout", "ends in timeout", 3.0, "fault"),
        ("ok", "3 elements are NaN or infinite where the truth is not, or the reverse", 0.2, "NaN or infinity"),
        ("ok", "worst error 1e+300 error scales", 1e300, "over 100 error scales"),
        ("ok", "worst error 100.1 error scales", 100.1, "over 100 error scales"),
        ("ok", "worst error 100 error scales", 100.0, "5 to 100"),
        ("ok", "worst error 5 error scales", 5.0, "5 to 100"),
        ("ok", "worst error 4.9 error scales", 4.9, "under 5"),
    ],
)
def test_size_of_an_error(status, why, worst, size):
    assert error_size(status, why, worst) == size


def test_gross_sizes_come_first_and_sum_up():
    assert ERROR_SIZES[: len(GROSS)] == GROSS and len(GROSS) < len(ERROR_SIZES)
    for score in make_summary(per_rule=2).checkers:
        sizes = {group.name: group.rate for group in score.miss_by_size}
        assert sum(rate.n for rate in sizes.values()) == score.miss.n
        assert sum(sizes[name].hits for name in GROSS) == score.miss_gross.hits


def test_survivors_begin_with_those_that_most_accept_and_are_most_wrong():
    survivors = make_summary(per_rule=2).survivors
    keys = [(-len(s.accepted_by), ERROR_SIZES.index(s.witness.size), -(s.witness.worst or 0)) for s in survivors]
    assert keys == sorted(keys) and len(set(keys)) > 10
