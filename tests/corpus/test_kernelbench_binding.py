"""Programs of the corpus for problems of a checkout."""

import dataclasses

import pytest
import torch
from kernelbench_files import GOOD, NORM, SOFTMAX, write

from truekernel import corpus
from truekernel.cases import make_inputs
from truekernel.corpus.kernelbench import load
from truekernel.corpus.kernelbench.binding import NotBoundError, bind, verify
from truekernel.model import Case

KL = """
import torch

class Model(torch.nn.Module):
    def forward(self, p, q):
        return torch.nn.functional.kl_div(torch.log(p), q, reduction="batchmean")

rows = 8192 * 2
width = 8192 * 2

def get_inputs():
    return [torch.rand(rows, width).softmax(-1), torch.rand(rows, width).softmax(-1)]

def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def adapted(tmp_path_factory):
    files = {"23_Softmax": SOFTMAX, "24_Wrong": SOFTMAX.replace("torch.softmax", "torch.log_softmax")}
    files |= {"35_Norm": NORM, "98_Loss": KL, "2_Conv": GOOD["2_Conv"]}
    return load(write(tmp_path_factory.mktemp("checkout"), files), seconds=20.0).adapted


def official_case(problem, axes=None):
    return make_inputs(problem, Case.of(problem.name, axes or problem.audit_axes(), "official", 5))


@pytest.mark.parametrize(("name", "number"), [("softmax", 23), ("group_norm", 35), ("kl_div", 98)])
def test_a_bound_problem_has_our_names_and_their_reference(adapted, name, number):
    ours = corpus.problems()[name]
    assert ours.kernelbench == f"level1/{number}"
    bound = bind(ours, adapted[ours.kernelbench])
    assert (bound.axes, bound.outputs) == (ours.axes, ours.outputs)
    inputs = official_case(bound)
    verify(bound, ours, inputs, bound.audit_axes())
    for spec in bound.tensors:
        assert inputs[spec.name].shape == official_case(ours)[spec.name].shape


def test_inputs_of_a_bound_problem_are_of_the_benchmark(adapted):
    bound = bind(corpus.problems()["kl_div"], adapted["level1/98"])
    inputs = official_case(bound, {"B": 3, "N": 50})
    assert torch.allclose(inputs["predictions"].sum(-1), torch.ones(3))


def test_a_reference_that_computes_something_else_is_found(adapted):
    ours = corpus.problems()["softmax"]
    bound = bind(ours, adapted["level1/24"])
    with pytest.raises(NotBoundError, match="compute different things"):
        verify(bound, ours, official_case(bound), bound.audit_axes())


def test_other_tensors_and_other_sizes_are_refused(adapted):
    ours = corpus.problems()["softmax"]
    with pytest.raises(NotBoundError, match="they are not the same problem"):
        bind(ours, adapted["level1/2"])
    axes = dict(ours.axes) | {"rows": dataclasses.replace(ours.axes["rows"], official=100)}
    with pytest.raises(NotBoundError, match="official size"):
        bind(dataclasses.replace(ours, axes=axes), adapted["level1/23"])


def test_what_the_corpus_states_is_unique_and_well_formed():
    stated = [p.kernelbench for p in corpus.problems().values() if p.kernelbench]
    assert len(stated) == len(set(stated)) >= 30
    for text in stated:
        level, _, number = text.partition("/")
        assert level in ("level1", "level2")
        assert number.isdigit()
