import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from truekernel.audit.intervals import cluster_bootstrap, settling, two_factor_split, wilson


@given(n=st.integers(1, 5000), share=st.floats(0, 1))
def test_wilson_agrees_with_scipy(n, share):
    hits = round(n * share)
    want = binomtest(hits, n).proportion_ci(method="wilson")
    assert wilson(hits, n) == pytest.approx((want.low, want.high), abs=1e-9)


def test_wilson_of_nothing_says_nothing():
    assert wilson(0, 0) == (0.0, 1.0)


def test_clusters_that_agree_within_give_a_wider_interval_than_wilson():
    clusters = {f"p{i}": (100.0 * (i % 2), 100.0) for i in range(10)}
    low, high = cluster_bootstrap(clusters)
    assert high - low > 3 * (wilson(500, 1000)[1] - wilson(500, 1000)[0])
    alike = {f"p{i}": (50.0, 100.0) for i in range(10)}
    assert cluster_bootstrap(alike) == (0.5, 0.5)
    assert cluster_bootstrap({"only": (1, 2), "empty": (0, 0)}) is None


def test_cluster_bootstrap_does_not_depend_on_the_order_of_names():
    a = {"x": (1.0, 5.0), "y": (3.0, 4.0), "z": (0.0, 9.0)}
    assert cluster_bootstrap(a) == cluster_bootstrap(dict(reversed(a.items())))


def test_settling_narrows_and_ends_at_the_rate():
    rng = np.random.default_rng(1)
    values = list(rng.random(2000) < 0.2)
    points = settling(values)
    widths = [high - low for _, _, low, high in points]
    assert widths[0] > 3 * widths[-2]
    assert points[-1][:2] == (2000, pytest.approx(sum(values) / 2000))


@given(*[st.floats(-1, 1) for _ in range(4)])
def test_the_means_of_a_split_add_up(base, first, second, both):
    split = two_factor_split(base, first, second, both)
    assert math.isclose(split["first"][2] + split["second"][2], both - base, abs_tol=1e-12)
