"""What a suite says of executions that a fault cut short."""

import math

import pytest

from truekernel import checkers
from truekernel.audit.records import CaseRecord, HonestRecord, ProblemRecord, SuiteEntry
from truekernel.audit.tradeoff import flat_needed
from truekernel.audit.verdicts import Bench
from truekernel.model import Case, Configuration, Execution, Outcome

AXES = {"B": 2, "N": 3}
CASES = [Case.of("mse_loss", AXES, "uniform", seed) for seed in (1, 2, 3)]
STATISTICS = {"flat": 0.5, "precision": 24.0, "mismatch:0.01:0.01": 0.0, "nonfinite": 0.0}


@pytest.fixture(scope="module")
def bench():
    record = ProblemRecord(
        name="mse_loss",
        family="loss",
        linear=False,
        cases=tuple(CaseRecord(id=c.id, axes=AXES, recipe=c.recipe, seed=c.seed) for c in CASES),
        suites={
            "kernelbench@1e-2": tuple(
                SuiteEntry(case_id=c.id, schedule="gpu", schedule_seed=1, fill="stale") for c in CASES
            )
        },
        vacuous=(),
        official_note={},
    )
    return Bench(checkers.resolve(["kernelbench@1e-2"]), {"mse_loss": record})


def subject(*statuses):
    """A subject whose cases ended as told; None: not executed."""
    configuration = Configuration("gpu", 1, "stale")
    executions = tuple(
        Execution(case.id, configuration, Outcome(status), STATISTICS if status == "ok" else {})
        for case, status in zip(CASES, statuses, strict=True)
        if status is not None
    )
    return HonestRecord(
        id="x",
        problem="mse_loss",
        program="x",
        rule="",
        role="outer",
        independent=False,
        gate="",
        executions=executions,
    )


@pytest.mark.parametrize(
    ("statuses", "state", "cases", "flat"),
    [
        (("ok", "ok", "ok"), "accept", ("accept", "accept", "accept"), 0.5),
        (("ok", "crash", None), "reject", ("accept", "reject", "undetermined"), math.inf),
        ((None, None, "trap"), "reject", ("undetermined", "undetermined", "reject"), math.inf),
        (("ok", "host_differs", "ok"), "undetermined", ("accept", "undetermined", "accept"), None),
        (("ok", None, "ok"), "undetermined", ("accept", "undetermined", "accept"), None),
    ],
)
def test_a_fault_decides_and_what_follows_it_stays_empty(bench, statuses, state, cases, flat):
    verdict = bench.verdict(subject(*statuses), "kernelbench@1e-2")
    assert (verdict.state, verdict.cases) == (state, cases)
    assert flat_needed(subject(*statuses), bench, "kernelbench@1e-2") == flat
