"""The same call twice gives the same bits."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch

from truekernel.fuzz.library import Ran
from truekernel.fuzz.oracles.bounds import UNITS
from truekernel.fuzz.oracles.closeness import assertion, close
from truekernel.fuzz.oracles.single import (
    assignments,
    is_determined,
    is_single,
    mismatch,
    outputs,
    run,
    same_bits,
    text_of,
)
from truekernel.fuzz.records import Operator, Outcome, TestCase

STALE = (0x00, 0x3E, 0xC1)
"""Bytes whose values differ in every dtype, and so do those of their complements."""
PERTURB = -6
"""M_PERTURB of glibc's mallopt: memory that is freed is filled with a byte, fresh memory with its complement."""
MOST_BYTES = 1 << 20
ROUNDINGS = 1024.0
"""Roundoffs of the largest element that two calls may differ by."""


class Determinism:
    """Valid for operators that neither chance nor unwritten memory decides, on one thread; differences of a few roundings are let pass. The calls find memory
    filled with other bytes, so that elements which nobody writes show what lay there before, in results and on the way to them."""

    name = "determinism"
    cost = 3.0
    patience = 2.0

    def applies(self, case: TestCase, operators: Sequence[Operator]) -> bool:
        """A single call of a determined operator."""
        return is_single(case) and is_determined(operators[0])

    def judge(self, ran: Ran) -> Outcome | None:
        """Compare three calls whose stale memory differs."""
        found = self._calls(ran, STALE)
        for place, other in enumerate(found[1:], 1):
            if _apart(found[0], other):
                return mismatch(
                    self.name,
                    f"the same call gives something else: call 1 {first_difference(found[0], other)} call {place + 1}",
                )
        return None

    def decided_by_memory(self, ran: Ran) -> bool:
        """Whether nothing but what memory holds that nobody wrote decides between two results: each filling gives one of its own, every time. What is read from anywhere in memory does not."""
        if not self.applies(ran.case, ran.operators):
            return False
        one, other, again, still = self._calls(ran, STALE[1:] * 2)
        return _apart(one, other) and same_bits(one, again) and same_bits(other, still)

    def _calls(self, ran: Ran, fillings: Sequence[int]) -> list[list[torch.Tensor]]:
        """Results of calls that find memory filled."""
        sizes = [part.numel() * part.element_size() for part in outputs(ran.results[0])]
        found = []
        try:
            for byte in fillings:
                _perturb(byte)
                stale = [
                    torch.full((size,), byte, dtype=torch.uint8)
                    for size in sizes
                    if 0 < size <= MOST_BYTES
                    for _ in range(2)
                ]
                del stale
                found.append([part.clone() for part in outputs(run(ran.case.calls[0]))])
        finally:
            _perturb(0)
        return found

    def script(self, case: TestCase) -> list[str]:
        """Three calls that find memory filled with other bytes."""
        call = case.calls[0]
        lines = ["import ctypes", "results = []", f"for byte in {STALE}:  # what memory holds that nobody wrote"]
        lines += [f"    {line}" for line in assignments(call)]
        lines += [
            f"    ctypes.CDLL(None).mallopt({PERTURB}, byte)  # M_PERTURB",
            f"    results.append({text_of(call)})",
            "    print(results[-1])",
            f"for r in results: {assertion('r', 'results[0]')}",
        ]
        return lines


def _perturb(byte: int) -> None:
    """Fill what malloc gives and takes from now on; 0: no more. Nothing where the C library can't."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(PERTURB, byte)


def _apart(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    """Whether results differ by more than roundings, and by more than a script lets pass."""
    if same_bits(one, other) or _rounded(one, other):
        return False
    return [part.shape for part in one] != [part.shape for part in other] or not all(map(close, one, other))


def _rounded(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    """Whether results differ by no more than sums do whose order depends on how memory is aligned."""
    for a, b in zip(one, other, strict=True):
        unit = UNITS.get(a.dtype, 0.0)
        if a.shape != b.shape or a.dtype != b.dtype or (unit == 0.0 and not torch.equal(a, b)):
            return False
        if unit and a.numel():
            largest = a.abs().double().nan_to_num_(nan=0.0, posinf=0.0).max()
            gap = (a - b).abs().double()
            same = (a == b) | (a.isnan() & b.isnan())
            if not (same | (gap <= ROUNDINGS * unit * largest)).all():
                return False
    return True


def first_difference(one: list[torch.Tensor], other: list[torch.Tensor]) -> str:
    """The first element that differs, as text that goes before "call 2"."""
    for a, b in zip(one, other, strict=False):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{tuple(a.shape)} against {tuple(b.shape)} of"
        wrong = ~((a == b) | (a.isnan() & b.isnan())).reshape(-1)
        if wrong.any():
            place = int(wrong.nonzero()[0])
            return f"{a.reshape(-1)[place].item()} against {b.reshape(-1)[place].item()} (element {place}, {int(wrong.sum())} of {a.numel()}) of"
    return "differs from"
