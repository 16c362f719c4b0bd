"""Eager against `torch.compile`. Dear: seconds a case with inductor, so a tier of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch

from truekernel.fuzz.libraries.torch_operators import resolve
from truekernel.fuzz.libraries.torch_script import tensor_names
from truekernel.fuzz.library import Ran
from truekernel.fuzz.oracles.bounds import bounds, unit_of
from truekernel.fuzz.oracles.closeness import assertion
from truekernel.fuzz.oracles.comparing import disagreement
from truekernel.fuzz.oracles.layout import dtypes_of
from truekernel.fuzz.oracles.single import (
    assignments,
    has_one_answer,
    is_single,
    mismatch,
    mutates,
    outputs,
    run,
    text_of,
)
from truekernel.fuzz.records import Operator, Outcome, TestCase

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # a pool of compilers would outlive the executor
BACKEND = os.environ.get("TRUEKERNEL_FUZZ_BACKEND", "inductor")
"""`inductor`, or `aot_eager_decomp_partition`: decompositions without code generation, which is some ten times faster."""


class Compiled:
    """Valid for determined functions that write nothing. A graph that can't be compiled says nothing unless the compiler itself fails: that is an exception of
    the compiler's own code, where eager mode accepted the input."""

    name = "compile"
    cost = 1.0
    patience = 30.0

    def applies(self, case: TestCase, operators: Sequence[Operator]) -> bool:
        """A single call of a determined function."""
        return is_single(case) and has_one_answer(operators[0]) and not mutates(operators[0])

    def judge(self, ran: Ran) -> Outcome | None:
        """Compare results."""
        call = ran.case.calls[0]
        eager = [part.clone() for part in outputs(ran.results[0])]
        torch._dynamo.reset()
        compiled = torch.compile(resolve(call.operator), backend=BACKEND, dynamic=False)
        try:
            other = outputs(run(call, function=compiled))
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            ours = type(error).__name__ in (
                "InductorError",
                "LoweringException",
                "BackendCompilerFailed",
                "CppCompileError",
                "InternalTorchDynamoError",
            )
            return mismatch(self.name, f"compiler fails: {' '.join(text.split())[:600]}") if ours else None
        wrong = disagreement(
            eager,
            other,
            lambda: bounds(call, ran.operators[0], unit_of(dtypes_of(call)), [part.dtype for part in eager]),
        )
        return None if wrong is None else mismatch(self.name, f"{wrong}; eager against {BACKEND}")

    def script(self, case: TestCase) -> list[str]:
        """Both calls."""
        call = case.calls[0]
        names = ", ".join(tensor_names(call, 0).values())
        return [
            *assignments(call),
            f"f = lambda {names}: {text_of(call)}",
            f"eager = f({names})",
            f"compiled = torch.compile(f, backend={BACKEND!r})({names})",
            "print('eager   ', eager); print('compiled', compiled)",
            assertion("compiled", "eager"),
        ]
