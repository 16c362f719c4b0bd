"""Gates of cases: honest programs near a limit make a case invalid, results in lower precision that pass make it blind."""

import pytest
import torch

from truekernel import checkers, corpus
from truekernel.audit.gates import case_gates, without_invalid
from truekernel.cases import make_inputs
from truekernel.model import Case, Configuration, Execution, Outcome
from truekernel.numerics import expect, statistics
from truekernel.trial.stage import Prepared

PROBLEM = corpus.problems()["matmul"]
NAMES = ["kernelbench@1e-2", "truekernel"]


@pytest.fixture(scope="module")
def ready():
    found = checkers.resolve(NAMES)
    axes = {"M": 16, "K": 16, "N": 16}
    case = Case.of("matmul", axes, "normal", 5)
    inputs = make_inputs(PROBLEM, case)
    prepared = {case.id: Prepared(case, inputs, expect(PROBLEM, inputs, axes), [])}
    return found, {name: [case] for name in NAMES}, prepared


def panel(ready, scale):
    """One honest program whose error is `scale` error scales on every element."""
    found, _, prepared = ready
    ((case_id, one),) = prepared.items()
    want = one.expected[0]
    output = (want.truth + scale * want.scale).float()
    tolerances = sorted({pair for checker in found.values() for pair in checker.tolerances})
    executions = []
    for name in NAMES:
        for configuration in found[name].configurations(one.case):
            values = statistics([output], one.expected, configuration.fill, tolerances)
            executions.append(Execution(case_id, configuration, Outcome("ok"), values))
    return executions


def gates(ready, scale):
    found, suites, prepared = ready
    return {g.checker: g for g in case_gates(PROBLEM, found, suites, prepared, [panel(ready, scale)])}


def test_lower_precision_passes_a_loose_tolerance_and_fails_ours(ready):
    told = gates(ready, 0.1)
    assert told["kernelbench@1e-2"].blind
    assert not told["truekernel"].blind


def test_a_panel_far_inside_is_valid_and_one_near_the_limit_is_not(ready):
    assert gates(ready, 0.1)["truekernel"].valid
    near = gates(ready, 1.4)["truekernel"]
    assert not near.valid
    assert near.share > 0.5


def test_only_a_gated_checker_drops_its_invalid_cases(ready):
    found, suites, _ = ready
    told = [gate.model_copy(update={"valid": False}) for gate in gates(ready, 0.1).values()]
    left = without_invalid(found, suites, told)
    assert left["truekernel"] == []
    assert left["kernelbench@1e-2"] == suites["kernelbench@1e-2"]


def test_without_a_panel_a_case_is_valid(ready):
    found, suites, prepared = ready
    assert all(gate.valid for gate in case_gates(PROBLEM, found, suites, prepared, []))


def test_configurations_of_other_checkers_do_not_count(ready):
    found, suites, prepared = ready
    ((case_id, one),) = prepared.items()
    wild = statistics([torch.zeros_like(one.expected[0].published)], one.expected, "stale", found[NAMES[0]].tolerances)
    stranger = Execution(case_id, Configuration("random", 9), Outcome("ok"), wild)
    assert all(gate.share == 0 for gate in case_gates(PROBLEM, found, suites, prepared, [[stranger]]))
