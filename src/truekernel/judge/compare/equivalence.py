"""How far the outputs of two candidates lie apart. Both left processes behind walls as bytes, on the same secret inputs; they meet only here, in the judge's process."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import torch

from truekernel.judge.compare.records import Pair
from truekernel.judge.judging import same_bits
from truekernel.judge.steps import Step
from truekernel.numerics import statistics
from truekernel.numerics.names import bound_name

Outputs = Mapping[str, Sequence[torch.Tensor]]
"""Of each case, by its id, what an execution gave."""


def equivalence(first: str, second: str, one: Outputs, other: Outputs, steps: Mapping[str, Step]) -> Pair:
    """Compare two candidates' outputs. `steps`: by case id, with error scales of the problem's own precision."""
    largest: float | None = None
    where, equal, nonfinite, others = "", True, 0, 0
    shared = [case for case in steps if case in one and case in other]
    for case in shared:
        step = steps[case]
        equal &= same_bits(one[case], other[case])
        for got, against, want in zip(one[case], other[case], step.expected, strict=True):
            if want.kind != "value":
                others += int((got != against).sum())
                continue
            # The other's output stands where the truth does otherwise: the errors are the differences.
            instead = dataclasses.replace(want, published=against, truth=against.double(), spread=None)
            found = statistics([got], [instead], "stale", (), (0.0,))
            nonfinite += int(found["nonfinite"])
            distance = found[bound_name(0.0)]
            if distance > (largest or 0.0):
                where = step.label
            largest = max(largest or 0.0, distance)
    return Pair(
        first=first,
        second=second,
        cases=len(shared),
        same_bits=equal if shared else None,
        largest=largest,
        where=where,
        nonfinite=nonfinite,
        others=others,
        time=None,
    )
