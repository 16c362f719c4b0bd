import json

import pytest
from policy_space import feedback_of, play, share_rich, space

from truekernel.errors import BadInputError, RunDirectoryError, UnknownNameError
from truekernel.fuzz import policies
from truekernel.fuzz.policies.rewards import Reward, RewardSettings
from truekernel.fuzz.records import Feedback, Outcome

LEARNS_NOTHING = ("naive", "uniform", "opinfo")
VALID = Outcome("valid")


@pytest.mark.parametrize("name", [*LEARNS_NOTHING, "thompson"])
def test_every_policy_builds_cases_and_repeats_them_for_a_seed(name):
    first = play(policies.make(name, space(), 5), space(), 30)
    again = play(policies.make(name, space(), 5), space(), 30)
    other = play(policies.make(name, space(), 6), space(), 30)
    assert first == again
    assert first != other


def test_naive_uses_types_alone():
    assert {case.origin for case in play(policies.make("naive", space(), 1), space(), 60)} == {"free"}


def test_opinfo_mutates_samples():
    assert {case.origin for case in play(policies.make("opinfo", space(), 1), space(), 60)} == {"seed"}


def test_uniform_uses_all_origins():
    origins = {case.origin for case in play(policies.make("uniform", space(), 1), space(), 400)}
    assert {"constrained", "seed"} <= origins


def test_uniform_follows_weights_unless_it_is_flat():
    followed = play(policies.make("uniform", space(), 1), space(), 300)
    flat = play(policies.make("uniform", space(), 1, {"flat": 1}), space(), 300)

    def odd(cases):
        return sum(case.origin == "free" for case in cases)

    assert odd(followed) < 30 < odd(flat)


@pytest.mark.parametrize("name", LEARNS_NOTHING)
def test_what_learns_nothing_stays_the_same(name):
    assert 0.3 < share_rich(play(policies.make(name, space(), 1), space(), 300)[-200:]) < 0.7


def test_the_bandit_finds_what_pays():
    made = play(policies.make("thompson", space(), 1), space(), 400)
    assert share_rich(made[-200:]) > 0.7


def test_the_bandit_learns_nothing_where_all_pays_the_same():
    made = play(policies.make("thompson", space(), 1), space(), 400, feedback=lambda case: Feedback(VALID))
    assert 0.3 < share_rich(made[-200:]) < 0.7


def test_the_bandit_turns_away_from_what_is_exhausted():
    policy = policies.make("thompson", space(), 1, {"memory": 20})
    assert share_rich(play(policy, space(), 300)[-100:]) > 0.7
    after = play(policy, space(), 400, feedback=lambda case: Feedback(VALID))
    assert share_rich(after[-150:]) < 0.75


def test_the_bandit_goes_on_where_it_was(tmp_path):
    policy = policies.make("thompson", space(), 1)
    play(policy, space(), 400)
    policy.save(tmp_path)
    loaded = policies.make("thompson", space(), 2)
    loaded.load(tmp_path)
    fresh = policies.make("thompson", space(), 2)
    assert share_rich(play(loaded, space(), 60, feedback=lambda case: Feedback(VALID))[:30]) > 0.7
    assert share_rich(play(fresh, space(), 60, feedback=lambda case: Feedback(VALID))[:30]) < 0.7


def test_the_bandit_goes_on_in_another_version_of_the_library(tmp_path):
    policy = policies.make("thompson", space(), 1)
    play(policy, space(), 400)
    policy.save(tmp_path)
    changed = {"families": ("added", "rich"), "each": 5}
    loaded = policies.make("thompson", space(**changed), 2)
    loaded.load(tmp_path)
    learned, kept = (made._table("operator", "operator") for made in (policy, loaded))
    assert kept[:, 5:9].tolist() == learned[:, 4:8].tolist()
    assert kept[:, :5].sum() == kept[:, 9].sum() == 0
    assert learned[:, 4:8].sum() > 0
    play(loaded, space(**changed), 5)


@pytest.mark.parametrize("text", ["", "{}", '{"arms": {"no kind": {"a": [1, 2]}}, "worth": 1, "cases": 2}'])
def test_a_bandit_that_is_no_bandit_is_refused(tmp_path, text):
    (tmp_path / "thompson.json").write_text(text)
    with pytest.raises(RunDirectoryError, match="no saved bandit"):
        policies.make("thompson", space(), 1).load(tmp_path)


def test_names_and_settings_are_checked():
    with pytest.raises(UnknownNameError, match=r"'thomson'.*thompson"):
        policies.make("thomson", space(), 1)
    with pytest.raises(UnknownNameError, match=r"'powr'.*power"):
        policies.make("thompson", space(), 1, {"powr": 2})
    with pytest.raises(UnknownNameError, match="'power'"):
        policies.make("uniform", space(), 1, {"power": 2})
    with pytest.raises(BadInputError, match="from 0 to 50"):
        policies.make("thompson", space(), 1, {"power": -1})


def test_rewards_have_tiers():
    reward = Reward(RewardSettings(second=0, path=0))
    nothing = reward.of(Feedback(VALID), ("a",))
    one, hundred = (reward.of(Feedback(VALID, functions=tuple(range(n))), ("a",)) for n in (1, 100))
    assert nothing == 0 < one < hundred < 10 * one
    crash = Outcome("crash", error="SIGSEGV")
    values = [
        reward.of(Feedback(crash, finding="k", fresh=True, severity=severity), ("a",))
        for severity in ("low", "medium", "high", "critical")
    ]
    assert values == sorted(values)
    assert values[-1] > hundred
    assert reward.of(Feedback(crash, finding="k", severity="critical"), ("a",)) == 0


def test_kinds_of_coverage_have_constants_of_their_own():
    reward = Reward(RewardSettings(functions=0, lines=0, kernels=0, path=0))
    assert reward.of(Feedback(VALID, functions=(1, 2), lines=("a:1",), kernels=("k",)), ("a",)) == 0
    assert reward.of(Feedback(VALID, overloads=("o",)), ("a",)) > 0


def test_a_path_pays_once():
    reward = Reward(RewardSettings(refused=0))
    first, elsewhere = (Feedback(Outcome("assert", error="RuntimeError", location=place)) for place in ("a:3", "a:9"))
    assert [reward.of(item, ("op",)) for item in (first, first, elsewhere)] == [1.0, 0.0, 1.0]
    assert reward.of(first, ("other",)) == 1.0


def test_refusals_are_no_way_to_earn():
    reward = Reward()
    refused = Feedback(Outcome("refused", error="RuntimeError", location="a.cpp:3"))
    assert reward.of(refused, ("op",)) < 0
    assert reward.of(refused, ("op",)) < reward.of(Feedback(VALID), ("op",))
    fresh = Feedback(Outcome("refused", error="RuntimeError", location="a.cpp:9"), functions=(1,))
    assert reward.of(fresh, ("op",)) > 0


def test_time_and_waste_cost():
    reward = Reward()
    reward.of(Feedback(VALID), ("a",))
    assert reward.of(Feedback(VALID, seconds=1.0), ("a",)) == RewardSettings().second
    assert reward.of(Feedback(VALID, duplicate=True), ("a",)) == RewardSettings().duplicate


def test_constants_of_the_reward_are_settings(tmp_path):
    policy = policies.make("thompson", space(), 1, {"functions": 0, "path": 0, "overloads": 0})
    made = play(policy, space(), 400)
    assert 0.3 < share_rich(made[-200:]) < 0.7
    policy.save(tmp_path)
    assert json.loads((tmp_path / "thompson.json").read_text())["cases"] == 400


def test_the_imagined_library_pays_where_it_says():
    made = play(policies.make("uniform", space(), 1), space(), 50)
    assert {bool(feedback_of(case).functions) for case in made} == {False, True}
