"""What a candidate can't know before a check: which lengths it is asked, and where one element changes."""

import dataclasses
import itertools

import pytest
from judge_files import PLAIN_REFERENCE, REFERENCE, model

from truekernel.checkers import checkers
from truekernel.corpus import problems
from truekernel.judge.candidates import Candidate
from truekernel.judge.check import CHECKER, check, prepare
from truekernel.judge.posing import pose
from truekernel.judge.secret_shapes import secret_shapes
from truekernel.judge.steps import PARTS, new_secret, steps

KEPT_FOR_A_PART = """
import torch

known = {{}}


def kernel(x, y):
    key = (tuple(x.shape), *(t.reshape(-1)[{part}].numpy().tobytes() for t in (x, y)))
    if key not in known:
        known[key] = torch.exp(-x * x) + y
    return known[key].clone()
"""
KNOWN_LENGTHS = """
import torch


def kernel(x, y):
    return torch.exp(-x * x) + (y if {right} else 0.5)
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    path = tmp_path_factory.mktemp("plain") / "ref.py"
    path.write_text(PLAIN_REFERENCE)
    posed = pose(str(path))
    return posed, prepare(posed, new_secret())


@pytest.fixture(scope="module")
def elu_suite():
    posed = pose("elu")
    return posed, prepare(posed, new_secret())


def judged(plain, text):
    posed, suite = plain
    return check(Candidate("c", "function", text, attribute="kernel"), posed, suite=suite)


@pytest.mark.parametrize(
    ("part", "word"),
    [
        ("t.numel() // 2 :", "wrong"),
        (": t.numel() // 2", "wrong"),
        (": 3 * t.numel() // 4", "wrong"),
        ("t.numel() // 4 :", "wrong"),
        (":", "right"),
    ],
)
def test_an_answer_kept_for_part_of_the_contents_is_wrong(plain, part, word):
    assert judged(plain, KEPT_FOR_A_PART.format(part=part)).word == word


def test_one_element_changes_in_every_part():
    found, _ = steps(problems()["softmax"], checkers()[CHECKER], new_secret())
    places = []
    for before, step in itertools.pairwise(found):
        if step.near:
            changed = (before.inputs["x"] != step.inputs["x"]).reshape(-1).nonzero().reshape(-1).tolist()
            assert len(changed) == 1
            places.append(changed[0] * PARTS // step.inputs["x"].numel())
    assert sorted(places) == list(range(PARTS))


def test_one_weight_changes_in_every_part():
    found, _ = steps(problems()["layer_norm"], checkers()[CHECKER], new_secret())
    places = []
    for before, step in itertools.pairwise(found):
        if step.weights:
            assert step.near and step.follows and "one weight changed" in step.label
            assert before.inputs["x"].equal(step.inputs["x"])
            for name in ("weight", "bias"):
                changed = (before.inputs[name] != step.inputs[name]).nonzero().reshape(-1).tolist()
                assert len(changed) == 1
                places.append(changed[0] * PARTS // step.inputs[name].numel())
    assert sorted(places) == sorted([*range(PARTS)] * 2)


@pytest.mark.parametrize(
    ("key", "word"), [("weight.flatten()[:40]", "wrong"), ("weight.flatten()[500:]", "wrong"), ("weight", "right")]
)
def test_weights_kept_for_part_of_them_are_wrong(tmp_path, key, word):
    (tmp_path / "ref.py").write_text(REFERENCE)
    posed = pose(str(tmp_path / "ref.py"))
    text = model("torch.nn.functional.linear(x, self.kept(), self.linear.bias).tanh()") + (
        f"\n    def kept(self):\n        weight = self.linear.weight.detach()\n        key = {key}.numpy().tobytes()\n"
        "        return known.setdefault((tuple(weight.shape), key), weight.clone())\n"
    )
    candidate = Candidate("c", "model", f"known = {{}}\n{text}", attribute="ModelNew")
    assert check(candidate, posed).word == word


def test_secret_lengths_are_legal_and_follow_from_the_secret():
    problem = problems()["matmul"]
    known = [case.lengths for case in checkers()[CHECKER].suite(problem)]
    found = secret_shapes(problem, "a", known)
    assert found == secret_shapes(problem, "a", known) != secret_shapes(problem, "b", known)
    assert len(found) == 3 and not any(axes in known for axes in found)
    longest = {name: max(axis.audit, *axis.odd) for name, axis in problem.axes.items()}
    assert [any(axes[name] > longest[name] for name in axes) for axes in found] == [False, False, True]
    assert secret_shapes(problem, "a", [*known, *found]) != found


def test_no_secret_lengths_where_axes_may_not_vary():
    problem = problems()["softmax"]
    fixed = {name: dataclasses.replace(axis, odd=()) for name, axis in problem.axes.items()}
    assert secret_shapes(dataclasses.replace(problem, axes=fixed), "a", []) in ([], [problem.audit_axes()])
    assert secret_shapes(dataclasses.replace(problem, axes=fixed), "a", [problem.audit_axes()]) == []


def test_right_on_public_lengths_alone_is_wrong(plain):
    posed, _ = plain
    known = {tuple(case.lengths.values()) for case in checkers()[CHECKER].suite(posed.problem)}
    assert judged(plain, KNOWN_LENGTHS.format(right=f"tuple(x.shape) in {known}")).word == "wrong"
    assert judged(plain, KNOWN_LENGTHS.format(right="x.dim() == 2")).word == "right"


def test_right_on_all_but_what_a_benchmark_draws_is_wrong(elu_suite):
    drawn = "bool((x >= 0).all()) and bool((x < 1).all()) and x.numel() > 8 and bool((x.reshape(-1).diff() < 0).any())"
    posed, suite = elu_suite
    text = "import torch\n\n\ndef kernel(x):\n    return torch.nn.functional.elu(x) {then}\n"
    for then, word in ((f"* (1.5 if {drawn} else 1.0)", "wrong"), (f"* (1.0 if {drawn} else 1.0)", "right")):
        candidate = Candidate("c", "function", text.format(then=then), attribute="kernel")
        assert check(candidate, posed, suite=suite).word == word
