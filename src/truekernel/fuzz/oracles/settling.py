"""What a judge's word is worth: asked only about lawful calls, and laid to what caused it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from truekernel.fuzz.libraries.torch_contracts import violation
from truekernel.fuzz.library import Oracle, Ran
from truekernel.fuzz.oracles.determinism import Determinism
from truekernel.fuzz.oracles.moderating import below_limits, finite, moderate, pointwise
from truekernel.fuzz.oracles.single import run
from truekernel.fuzz.records import Call, Operator, Outcome, TestCase

WHATEVER_THE_CALL = frozenset({"neighbours"})
"""Judges of memory, which must be kept to for any arguments that are not refused."""
NOT_OF_VALUES = frozenset({"neighbours", "metadata", "determinism"})
"""Judges whose word the size of values can't explain away."""
SAME_FORMAT = frozenset({"layout", "in_place", "out"})
"""Judges that compare one function at one dtype."""


class Settled:
    """A judge for torch that is not asked about calls which break a documented precondition. A mismatch of values that memory which nobody wrote decides is the fault that `determinism` names;
    one that is gone at moderate values is no mismatch but of kind `extreme`."""

    def __init__(self, inner: Oracle) -> None:
        self.inner = inner
        self.name, self.cost, self.patience = inner.name, inner.cost, inner.patience
        self._memory = Determinism()

    def applies(self, case: TestCase, operators: Sequence[Operator]) -> bool:
        """Where the judge's own condition holds and the call is lawful."""
        return self.inner.applies(case, operators) and (
            self.name in WHATEVER_THE_CALL or not violation(case.calls[0], operators[0])
        )

    def judge(self, ran: Ran) -> Outcome | None:
        """The judge's word, settled."""
        found = self.inner.judge(ran)
        if found is None or found.kind != "mismatch" or self.name in NOT_OF_VALUES:
            return found
        if self.name != "compile" and self._memory.decided_by_memory(ran):
            return self._memory.judge(ran)
        return found if self._stays(ran) else replace(found, kind="extreme")

    def script(self, case: TestCase) -> list[str]:
        """The judge's."""
        return self.inner.script(case)

    def _stays(self, ran: Ran) -> bool:
        """Whether a mismatch is one of ordinary values, or one of a kind that no order of operations explains."""
        call, operator = ran.case.calls[0], ran.operators[0]
        tame = moderate(call, operator)
        if tame is call:
            return True
        if not pointwise(operator):
            return self._found(tame, ran)
        if self.name not in SAME_FORMAT:
            return below_limits(call) or self._found(tame, ran)
        one = finite(call)
        return self._found(tame, ran) or (one is not None and self._found(one, ran))

    def _found(self, call: Call, ran: Ran) -> bool:
        """Whether the judge finds a mismatch in a call as well."""
        try:
            return self.inner.judge(Ran(replace(ran.case, calls=(call,)), ran.operators, (run(call),), 0.0)) is not None
        except Exception:
            return False
