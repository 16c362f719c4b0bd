"""One program from source to outputs, and what goes wrong on the way."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from truekernel import cases, corpus
from truekernel.execution import simt
from truekernel.model import Case
from truekernel.trial.run_program import run_program

PROGRAM = corpus.programs()["softplus"]
PROBLEM = corpus.problems()[PROGRAM.problem]
AXES = PROBLEM.audit_axes()
INPUTS = cases.make_inputs(PROBLEM, Case.of(PROBLEM.name, AXES, "uniform", 3))


def changed(**fields: str):
    return dataclasses.replace(PROGRAM, **fields)


@pytest.mark.parametrize("checked", [False, True])
def test_a_right_program_gives_the_reference(checked):
    outcome, outputs = run_program(PROGRAM, PROBLEM, AXES, INPUTS, checked=checked, schedule="reverse")
    assert outcome.status == "ok" and outputs is not None
    torch.testing.assert_close(outputs[0], PROBLEM.reference(INPUTS, AXES)[0], rtol=1e-5, atol=1e-6)


def test_what_does_not_compile_and_plans_that_fail_are_outcomes():
    with simt.Server() as server:
        outcome, outputs = run_program(
            changed(source=PROGRAM.source.replace("{", "{ nothing;", 1)), PROBLEM, AXES, INPUTS, server=server
        )
        assert (
            (outcome.status, outputs) == ("compile_error", None) and outcome.where.line and "nothing" in outcome.message
        )
        plan = PROGRAM.plan_source.replace("return ", "return 3 or ")
        outcome, outputs = run_program(changed(plan_source=plan), PROBLEM, AXES, INPUTS, server=server)
        assert (outcome.status, outputs) == ("compile_error", None) and "launch plan" in outcome.message
        assert run_program(PROGRAM, PROBLEM, AXES, INPUTS, server=server)[0].status == "ok"
