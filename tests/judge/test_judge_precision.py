"""What a declared lower precision allows."""

import pytest
import torch
from judge_files import REFERENCE

from truekernel.checkers import checkers
from truekernel.judge.check import CHECKER
from truekernel.judge.posing import pose
from truekernel.judge.precision import Precision, allowing, twin
from truekernel.judge.steps import steps

BFLOAT16 = Precision("bfloat16", 8, outputs=False)
FLOAT8 = Precision("float8", 4, outputs=False)


@pytest.fixture(scope="module")
def widened(tmp_path_factory):
    path = tmp_path_factory.mktemp("linear") / "ref.py"
    path.write_text(REFERENCE)
    problem = pose(str(path)).problem
    made, _ = steps(problem, checkers()[CHECKER], "a secret")
    return problem, allowing(problem, made, "bfloat16")


def worst(problem, step, precision):
    outputs = twin(problem, step, precision)
    return max(
        float(((output - want.truth).abs() / want.scale).nan_to_num(0.0).max())
        for output, want in zip(outputs, step.expected, strict=True)
    )


def test_rounding_to_nearest_is_allowed_on_every_case(widened):
    # Along a ramp neighbours round alike, and their errors add up.
    problem, made = widened
    assert any(step.case.recipe.startswith("ramp*") for step in made)
    assert max(worst(problem, step, BFLOAT16) for step in made) <= 1.0


def test_a_still_lower_precision_is_not(widened):
    problem, made = widened
    assert max(worst(problem, step, FLOAT8) for step in made) > 5.0


def test_what_is_not_declared_is_not_widened(widened):
    problem, made = widened
    unwidened = allowing(problem, made, "float32")
    assert all(torch.equal(a.expected[0].scale, b.expected[0].scale) for a, b in zip(made, unwidened, strict=True))
