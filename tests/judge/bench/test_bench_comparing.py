"""From pairs to a verdict."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truekernel.errors import BadInputError
from truekernel.judge.bench.comparing import MARGIN, agree, compare

NOISE = (0.001, -0.001, 0.002, -0.002, 0.0005, -0.0005, 0.0, 0.0)


@pytest.mark.parametrize(
    ("ratio", "word"), [(1.0, "SAME"), (1.05, "FASTER"), (0.95, "SLOWER"), (3.0, "FASTER"), (1.01, "SAME")]
)
def test_a_clear_difference_has_a_verdict(ratio: float, word: str) -> None:
    found = compare([math.log(ratio) + noise for noise in NOISE])
    assert found.word == word
    assert found.low < ratio < found.high
    assert found.ratio == pytest.approx(ratio, rel=1e-3)


def test_noise_as_large_as_the_difference_is_ambiguous() -> None:
    assert compare([0.2, -0.1, 0.15, -0.2, 0.1, 0.05]).word == "AMBIGUOUS"


def test_a_difference_at_the_margin_is_ambiguous() -> None:
    assert compare([math.log1p(MARGIN) + noise for noise in NOISE]).word == "AMBIGUOUS"


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=40))
def test_the_interval_holds_the_mean_and_swapping_sides_mirrors_it(values: list[float]) -> None:
    found, mirrored = compare(values), compare([-value for value in values])
    assert found.low <= found.ratio * (1 + 1e-12)
    assert found.ratio <= found.high * (1 + 1e-12)
    assert mirrored.ratio == pytest.approx(1 / found.ratio)
    assert mirrored.low == pytest.approx(1 / found.high)
    opposite = {"FASTER": "SLOWER", "SLOWER": "FASTER"}
    assert mirrored.word == opposite.get(found.word, found.word)


def test_one_pair_has_no_interval() -> None:
    with pytest.raises(BadInputError, match="2 or more"):
        compare([0.1])


def test_a_time_of_zero_is_refused() -> None:
    with pytest.raises(BadInputError, match="not finite"):
        compare([0.1, math.inf])


def test_clocks_agree_within_a_launch_or_a_twentieth() -> None:
    assert agree(5e-6, 7e-6)
    assert agree(1e-3, 1.04e-3)
    assert not agree(1e-3, 2e-3)
    assert not agree(1e-6, 5e-3)
