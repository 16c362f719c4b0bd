"""Questions, masks and what is learned of them."""

import random
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from library_of_controls import NAMESPACE, Controls

from truekernel.errors import UnknownNameError
from truekernel.fuzz.choices import EXTENTS, PATTERNS
from truekernel.fuzz.forms import bounded, forms_of, resized, with_leaves
from truekernel.fuzz.patterns import applied
from truekernel.fuzz.policy import State
from truekernel.fuzz.records import Call, Feedback, Outcome, Shared, TensorValue, TestCase, document, parsed
from truekernel.fuzz.space import Space, SpaceOptions
from truekernel.fuzz.validity import Validity


class Chance:
    name = "chance"

    def __init__(self, seed=0):
        self.random = random.Random(seed)

    def choose(self, node, options, state):
        return self.random.choices(options.open, options.weights)[0]


class Fixed(Chance):
    """Answers named kinds of nodes always alike."""

    def __init__(self, seed=0, **answers):
        super().__init__(seed)
        self.answers = answers

    def choose(self, node, options, state):
        wanted = self.answers.get(node.kind)
        return wanted if wanted in options.open else super().choose(node, options, state)


def matrix_product(rows, inner, columns):
    return Call("mm", (TensorValue((rows, inner)), TensorValue((inner, columns))))


def space(**options):
    return Space(Controls(), SpaceOptions(**options))


def test_sizes_that_agree_in_all_samples_are_one_symbol():
    (form,) = forms_of("mm", [matrix_product(2, 3, 4), matrix_product(5, 6, 7), matrix_product(2, 2, 2)])
    assert sorted(form.symbols) == [((0, 0),), ((0, 1), (1, 0)), ((1, 1),)]


def test_a_number_that_names_a_size_follows_it():
    calls = [Call("norm", (TensorValue((2, size)), (size,))) for size in (3, 7)]
    (form,) = forms_of("norm", calls)
    leaves = calls[0].leaves()
    resized(leaves, next(one for one in form.symbols if (0, 1) in one), 16)
    assert with_leaves(calls[0], leaves).arguments == (TensorValue((2, 16)), (16,))


def test_indices_stay_within_sizes_that_shrink():
    before = [TensorValue((9, 4)), TensorValue((3,), "int64", values="index", bound=9, data=(0, 8, 3))]
    after = [TensorValue((9, 2)), before[1]]
    bounded(before, after)
    assert after[1].bound == 2
    assert max(after[1].data) == 1


@pytest.mark.parametrize("origin", [0, 1, 2])
def test_cases_of_every_origin_are_data(origin):
    made, state = space(), State()
    for seed in range(60):
        case = made.build(Fixed(seed, origin=origin), state, random.Random(seed))
        assert parsed(document(case)) == case
        assert 1 <= len(case.calls) <= 6
        assert all(call.operator.startswith(f"torch.{NAMESPACE}.") for call in case.calls)


def test_only_open_options_are_offered_and_answers_are_kept():
    made, state = space(), State()
    made.build(Chance(3), state, random.Random(3))
    for node, chosen in state.choices:
        assert 0 <= chosen < len(made.vocabulary(node.kind))


def test_the_same_seeds_give_the_same_case():
    cases = [space().build(Chance(9), State(), random.Random(4)) for _ in range(2)]
    assert cases[0] == cases[1]


def test_origins_can_be_closed():
    made, state = space(constraints=False, seeds=False), State()
    assert {made.build(Chance(seed), state, random.Random(seed)).origin for seed in range(30)} == {"free"}


def test_operators_are_selected_by_glob_and_family_and_unknown_ones_refused():
    assert [one.name for one in space(operators=("wrong_*",)).operators()] == [
        f"torch.{NAMESPACE}.wrong_{what}"
        for what in ("out", "variant", "variant_", "batch", "gradient", "meta", "compiled")
    ]
    elementwise = [one for one in Controls._operators if one.family == "elementwise"]
    assert len(space(operators=("elementwise",)).operators()) == len(elementwise) < len(Controls._operators)
    with pytest.raises(UnknownNameError, match="unknown operator 'nothing'"):
        space(operators=("nothing",))


def test_weights_decide_how_often():
    made, state = space(weights={"honest": 200.0}), State()
    counts = Counter(made.build(Chance(seed), state, random.Random(seed)).calls[0].operator for seed in range(200))
    assert counts[f"torch.{NAMESPACE}.honest"] > 120


def test_validity_learns_what_is_refused():
    validity = Validity()
    for _ in range(20):
        validity.learn([("op#0:s0", "extent", "0"), ("op#0:s0", "layout", "strided")], accepted=False)
        validity.learn([("op#0:s0", "layout", "strided")], accepted=True)
        validity.learn([("op#1:s0", "extent", "5")], accepted=True)
    assert validity.estimate("op#0:s0", "extent", "0") < 0.3
    assert validity.estimate("op#0:s0", "layout", "strided") > 0.8
    again = Validity()
    again.load(validity.document())
    assert again.estimate("op#0:s0", "extent", "0") == validity.estimate("op#0:s0", "extent", "0")


def test_a_space_learns_to_avoid_what_is_refused():
    """An operator that refuses empty tensors: in the end few are tried."""
    made, state, policy = space(operators=("honest",), most_calls=1), State(), Fixed(1, origin=0, pattern=0)
    refused = []
    for seed in range(700):
        case = made.build(policy, state, random.Random(seed))
        bad = any(
            isinstance(leaf, TensorValue) and (0 in leaf.shape or leaf.dtype != "float32")
            for leaf in case.calls[0].leaves()
        )
        refused.append(bad)
        made.learn(Feedback(Outcome("refused" if bad else "valid")), case)
    assert sum(refused[-300:]) < 0.15 * 300
    assert len(EXTENTS) > 30


CALL = Call("f", (TensorValue((4, 8, 8)), TensorValue((4, 8, 8), seed=1), 3, 2))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_change_calls_as_they_say(pattern):
    changed = applied(pattern, CALL, random.Random(1))
    first = changed.arguments[0]
    seen = {
        "none": changed == CALL,
        "extreme_window": any(isinstance(leaf, int) and abs(leaf) > 30 for leaf in changed.leaves()),
        "collapse": first.shape[-2:] == (1024, 1024),
        "alias": any(isinstance(leaf, Shared) for leaf in changed.leaves()),
        "repeat": changed.repeat > 1,
        "huge_stride": first.layout == "huge_stride",
        "empty": 0 in first.shape,
        "special_values": first.values != "normal",
    }
    assert seen[pattern]


def test_a_call_can_take_the_result_of_the_one_before():
    made, state = space(), State()
    cases = [made.build(Fixed(seed, calls=1, relation=2, origin=1), state, random.Random(seed)) for seed in range(20)]
    assert all(isinstance(case, TestCase) and len(case.calls) == 2 for case in cases)
    assert any("Reference" in type(leaf).__name__ for case in cases for leaf in case.calls[1].leaves())
