"""Which values a domain holds."""

import math

import pytest
import torch

from truekernel.model import Domain


@pytest.mark.parametrize(
    ("domain", "value", "legal"),
    [
        (Domain(), 1e30, True),
        (Domain(), math.inf, False),
        (Domain(), math.nan, False),
        (Domain(nonfinite=True), math.nan, True),
        (Domain(nonfinite=True), -math.inf, True),
        (Domain(1e-6, 1.0), 0.0, False),
        (Domain(1e-6, 1.0), 1.0, True),
        (Domain(1e-6, 1.0), 1.5, False),
        (Domain(0.0, 1.0, nonfinite=True), math.inf, True),
        (Domain(0.0, 1.0, nonfinite=True), 2.0, False),
    ],
)
def test_values_inside_are_legal_and_one_outside_is_enough(domain, value, legal):
    assert domain.holds(torch.tensor([0.5, value])) == legal
    assert domain.holds(torch.tensor([0.5])) and domain.holds(torch.empty(0))


def test_whole_numbers_and_indices_are_not_judged():
    assert Domain(kind="index", below="N").holds(torch.tensor([7]))
    assert Domain(0.0, 1.0).holds(torch.tensor([7]))
