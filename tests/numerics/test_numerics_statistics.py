import math

import pytest
import torch

from truekernel.numerics.expected import Expected
from truekernel.numerics.formats import TORCH_DTYPES, from_bytes
from truekernel.numerics.statistics import LIMIT, statistic_names, statistics

INF, NAN = math.inf, math.nan


def expect_values(truth, scale=1.0, dtype="float32", **more):
    truth = torch.tensor(truth, dtype=torch.float64)
    more.setdefault("kind", "value")
    return Expected(
        "y", dtype, published=truth.to(TORCH_DTYPES[dtype]), truth=truth, scale=torch.full_like(truth, scale), **more
    )


def measure(values, want, fill="stale", **more):
    return statistics([torch.tensor(values, dtype=want.published.dtype)], [want], fill, **more)


def test_a_perfect_output_has_no_error():
    want = expect_values([1.0, -2.0, INF, NAN])
    found = measure([1.0, -2.0, INF, NAN], want, tolerances=[(0.01, 0.01)])
    # torch.allclose never accepts a NaN, and neither does a flat tolerance.
    assert found.pop("mismatch:0.01:0.01") == 1
    assert found.pop("flat") == LIMIT
    assert (found.pop("elements"), found.pop("precision")) == (4, 24)
    assert set(found.values()) == {0.0}


def test_worst_and_bound_use_their_units():
    want = expect_values([1.0, 100.0], scale=0.5, spread=torch.tensor([0.0, 4.0], dtype=torch.float64))
    found = measure([2.0, 104.0], want, rhos=[0.0, 1.0])
    assert found["worst"] == 8.0
    assert found["bound:0"] == 8.0
    assert found["bound:1"] == 2.0


def test_bound_allows_an_ulp_where_the_scale_is_zero():
    want = expect_values([1.0], scale=0.0)
    found = measure([1.0 + 2.0**-23], want)
    assert found["bound:0"] == 1.0
    assert found["worst"] == LIMIT


def test_nonfinite_counts_classes():
    want = expect_values([1.0, INF, -INF, NAN, 0.0])
    assert measure([NAN, INF, INF, NAN, INF], want)["nonfinite"] == 3


def test_flat_is_the_least_tolerance():
    want = expect_values([3.0, 0.0])
    found = measure([4.0, 0.1], want)
    assert found["flat"] == pytest.approx(0.2)
    assert measure([4.0, 0.1], want, tolerances=[(0.21, 0.21)])["mismatch:0.21:0.21"] == 0
    assert measure([4.0, 0.1], want, tolerances=[(0.19, 0.19)])["mismatch:0.19:0.19"] == 1
    assert measure([3.0, NAN], want)["flat"] == LIMIT


def test_the_tolerance_is_relative_to_the_output():
    want = expect_values([0.0, 1000.0])
    assert measure([0.0, 1111.0], want, tolerances=[(0.0, 0.1)])["mismatch:0:0.1"] == 0
    assert measure([0.0, 891.0], want, tolerances=[(0.0, 0.1)])["mismatch:0:0.1"] == 1


def test_bias_sees_a_common_direction_away_from_zero():
    want = expect_values([1.0, -1.0, 1.0, -1.0])
    grown = measure([1.5, -1.5, 1.5, -1.5], want)
    assert grown["bias"] == pytest.approx(2.0)
    assert grown["rms"] == pytest.approx(0.5)
    assert measure([0.5, -0.5, 0.5, -0.5], want)["bias"] == pytest.approx(-2.0)
    assert measure([1.5, -0.5, 1.5, -0.5], want)["bias"] == pytest.approx(0.0)


def test_unwritten_counts_poison_only_where_it_was_filled():
    want = expect_values([1.0, 2.0])
    output = from_bytes(b"\x00" * 4 + b"\xff" * 4, "float32", (2,))
    assert statistics([output], [want], "poison")["unwritten"] == 1
    assert statistics([output], [want], "stale")["unwritten"] == 0


def test_an_index_is_right_when_its_value_ties():
    ties = torch.tensor([[3.0, 5.0, 5.0], [1.0, 0.5, 0.0]], dtype=torch.float64)
    want = expect_values([1.0, 0.0], scale=0.25, dtype="int64", kind="index", ties=ties)
    right = measure([2, 0], want, tolerances=[(1e-2, 1e-2)])
    assert right["worst"] == 0
    assert right["mismatch:0.01:0.01"] == 1  # published checkers compare the indices themselves
    assert measure([1, 1], want)["worst"] == 2.0
    assert measure([1, 3], want)["worst"] == LIMIT
    assert measure([-1, 0], want)["bound:0"] == LIMIT


def test_several_outputs_are_combined():
    first, second = expect_values([1.0], scale=1.0), expect_values([1.0], scale=0.5)
    outputs = [torch.tensor([2.0]), torch.tensor([NAN])]
    found = statistics(outputs, [first, second], "stale", [(0.1, 0.1)])
    assert (found["worst"], found["nonfinite"], found["mismatch:0.1:0.1"]) == (1.0, 1.0, 2.0)
    assert found["rms"] == pytest.approx(math.sqrt(0.5))


def test_an_empty_output_has_zeros_everywhere():
    want = expect_values([])
    found = measure([], want, tolerances=[(0.1, 0.1)])
    assert tuple(found) == statistic_names([(0.1, 0.1)])
    assert found.pop("precision") == 24
    assert set(found.values()) == {0.0}


def test_a_wrong_shape_or_dtype_is_refused():
    want = expect_values([1.0, 2.0])
    with pytest.raises(ValueError, match="expected"):
        measure([1.0], want)
    with pytest.raises(ValueError, match="float64"):
        statistics([torch.zeros(2, dtype=torch.float64)], [want], "stale")
    with pytest.raises(ValueError, match="0 outputs"):
        statistics([], [want], "stale")
