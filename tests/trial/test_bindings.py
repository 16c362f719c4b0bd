"""Problems of ours bound to a checkout: which axes may vary there."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from kernelbench_files import NORM, SOFTMAX, write

from truekernel import corpus
from truekernel.cases import make_inputs
from truekernel.cases.witness import witness_cases
from truekernel.trial.bindings import bindings, rebound


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return bindings(write(tmp_path_factory.mktemp("checkout"), {"23_Softmax": SOFTMAX, "35_Norm": NORM}))


def test_an_axis_that_is_a_constant_of_their_reference_keeps_its_length(found):
    assert found.fixed == {"softmax": (), "group_norm": ("groups",)}
    bound, ours = found.bound["group_norm"], corpus.problems()["group_norm"]
    cases = witness_cases(bound)
    assert {case.lengths["groups"] for case in cases} == {ours.audit_axes()["groups"]}
    assert len({case.lengths["width"] for case in cases}) > 3, "what their reference follows still varies"
    for case in cases[:20]:
        inputs = {name: value.double() for name, value in make_inputs(bound, case).items()}
        assert bound.reference(inputs, case.lengths)[0].allclose(
            ours.reference(inputs, case.lengths)[0], equal_nan=True
        )


def test_what_is_fixed_stays_fixed_when_another_process_binds_again(found):
    again = rebound("group_norm", found.documents()["group_norm"])
    assert again.axes == found.bound["group_norm"].axes
    assert again.axes["groups"].odd == () and again.axes["width"].odd
