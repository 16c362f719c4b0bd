import os
import random
import warnings

import numpy as np
import pytest
from coverage_child import in_child
from policy_space import feedback_of, play, share_rich, space

from truekernel.errors import BadInputError, MachineError, RunDirectoryError
from truekernel.fuzz import policies
from truekernel.fuzz.choices import Node, Options
from truekernel.fuzz.policies import training
from truekernel.fuzz.policies.curriculum import Curriculum
from truekernel.fuzz.policies.encoding import LEFT_TO_CHANCE, Encoder
from truekernel.fuzz.policies.network import Network, fresh, moved
from truekernel.fuzz.policies.tallies import WAYS, Tallies
from truekernel.fuzz.policies.training import Learning, Rollout
from truekernel.fuzz.policy import State
from truekernel.fuzz.records import Feedback, Outcome

QUICK = {"steps": 256, "batch": 64, "hidden": 16, "rate": 0.003, "patience": 0}
VALID = Outcome("valid")

needs_packages = pytest.mark.skipif(bool(training.missing_packages()), reason="gymnasium and sb3-contrib are extras")


@pytest.fixture(scope="module", autouse=True)
def imported():
    """Import once what every forked process would import."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not training.missing_packages():
            import sb3_contrib  # noqa: F401


def encoder_of(where):
    return Encoder(where, Tallies([operator.name for operator in where.operators()]))


def seen_nodes(where, encoder, count=200):
    """What an encoder sees at nodes of random cases."""
    dice, state, seen = random.Random(3), State(), []
    while len(seen) < count:
        steps = where.questions(dice, state)
        node, options = next(steps)
        try:
            while True:
                if node.kind not in LEFT_TO_CHANCE:
                    seen.append((node, options, encoder.see(node, options, state)))
                chosen = dice.choices(options.open, options.weights)[0]
                state.choices.append((node, chosen))
                node, options = steps.send(chosen)
        except StopIteration:
            continue
    return seen


def test_masks_leave_what_is_open_and_actions_stand_for_options():
    where = space()
    encoder = encoder_of(where)
    kinds = set()
    for node, options, seen in seen_nodes(where, encoder):
        kinds.add(node.kind)
        mask = encoder.mask(seen)
        assert mask.sum() == len(seen.actions) == len(seen.prior)
        names = [encoder.outputs[action] for action in seen.actions]
        assert all(name.startswith(f"{node.kind}:") for name in names)
        if node.kind != "operator":
            assert [encoder.option(node, int(action)) for action in seen.actions] == list(options.open)
            vocabulary = where.vocabulary(node.kind)
            assert names == [f"{node.kind}:{vocabulary[option]}" for option in options.open]
        assert np.exp(seen.prior).sum() == pytest.approx(1, abs=1e-3)
        assert len(seen.features) == len(encoder.inputs)
        assert np.isfinite(encoder.observation(seen)).all()
    assert {"family", "operator", "pattern", "origin", "calls"} <= kinds


def test_names_of_inputs_and_outputs_are_unique():
    encoder = encoder_of(space())
    assert len(set(encoder.inputs)) == len(encoder.inputs)
    assert len(set(encoder.outputs)) == len(encoder.outputs)


def test_the_last_ten_steps_are_seen_newest_first():
    where = space()
    encoder = encoder_of(where)
    node, options = Node("calls"), Options((0, 1), (0.5, 0.5))
    for count in range(12):
        encoder.step(Feedback(VALID, functions=tuple(range(2**count - 1))))
    features = encoder.see(node, options, State()).features
    steps = [features[encoder.inputs.index(f"step {number} functions")] for number in range(10)]
    assert steps == pytest.approx([count / 8 for count in range(11, 1, -1)])


def test_tallies_tell_operators_apart():
    tallies = Tallies(["a", "b", "c", "d"])
    options = Options((0, 1, 2, 3), (1.0, 1.0, 1.0, 1.0))
    assert tallies.ways(options) == (True, True, False, False, False, False)
    for _ in range(5):
        tallies.learn(("a",), Feedback(VALID, functions=(1,)), 9.0)
        tallies.learn(("b",), Feedback(Outcome("refused")), 0.0)
        tallies.learn(("c",), Feedback(Outcome("crash")), 0.0)
    assert tallies.ways(options) == (True,) * 6
    draw = np.random.default_rng(1)
    picked = {way: [tallies.pick(way, options, draw) for _ in range(200)] for way in WAYS}
    assert set(picked["weighted"]) == {0, 1, 2, 3}
    assert set(picked["untried"]) == {3}
    assert picked["worthy"].count(0) > 150
    assert set(picked["failing"]) == {2}
    assert set(picked["refused"]) == {1}
    assert set(picked["stale"]) == {0}
    copy = Tallies(["b", "a", "new"])
    copy.load(tallies.document(), tallies.cases, tallies.mean)
    assert copy.figures("a") == tallies.figures("a")
    assert copy.figures("new") == Tallies(["x"]).figures("x")


def test_the_curriculum_goes_from_frequent_to_rare():
    where = space()
    curriculum = Curriculum(where, 250)
    everything = Options(tuple(range(8)), (1.0,) * 8)
    stages = []
    for _ in range(700):
        opened = curriculum.narrowed(Node("operator"), everything).open
        if not stages or stages[-1] != opened:
            stages.append(opened)
        curriculum.learn(1.0)
    assert stages == [(3, 7), (2, 3, 6, 7), tuple(range(8))]  # weights are 1 to 4 in each family
    assert Curriculum(where, 0).narrowed(Node("operator"), everything) == everything
    assert curriculum.narrowed(Node("pattern"), everything) == everything


def test_the_curriculum_goes_on_when_a_stage_is_exhausted():
    curriculum = Curriculum(space(), 10_000)
    for reward in [5.0] * 200 + [0.1] * 100:
        curriculum.learn(reward)
    assert curriculum.stage == 1
    for _ in range(300):
        curriculum.learn(5.0)
    assert curriculum.stage == 1


def test_a_fresh_network_chooses_as_the_space_would():
    where = space()
    encoder = encoder_of(where)
    network = Network(fresh(len(encoder.inputs), len(encoder.outputs), 16, 1))
    for _, _, seen in seen_nodes(where, encoder, 30):
        chances, value = network.judge(seen)
        assert chances == pytest.approx(np.exp(seen.prior), rel=1e-4)
        assert value == 0


def random_weights(encoder, seed=1, hidden=16):
    dice = np.random.default_rng(seed)
    weights = fresh(len(encoder.inputs), len(encoder.outputs), hidden, seed)
    return {
        name: (value + 0.3 * dice.standard_normal(value.shape)).astype(np.float32) for name, value in weights.items()
    }


@needs_packages
def test_the_network_is_the_one_that_is_trained():
    where = space()
    encoder = encoder_of(where)
    weights = random_weights(encoder)
    learning = Learning(len(encoder.inputs), len(encoder.outputs), hidden=16, steps=64, batch=64)
    nodes = [seen for _, _, seen in seen_nodes(where, encoder, 40)]
    actions = [int(seen.actions[-1]) for seen in nodes]

    def child():
        import torch

        policy = training.model(learning, weights).policy
        observations = torch.from_numpy(np.stack([encoder.observation(seen) for seen in nodes]))
        masks = torch.from_numpy(np.stack([encoder.mask(seen) for seen in nodes]))
        values, chances, _ = policy.evaluate_actions(observations, torch.tensor(actions), masks)
        return values.flatten().tolist(), chances.tolist()

    values, chances = in_child(child)
    network = Network(weights)
    for seen, value, chance in zip(nodes, values, chances, strict=True):
        mine, worth = network.judge(seen)
        assert np.log(mine[-1]) == pytest.approx(chance, abs=1e-4)
        assert worth == pytest.approx(value, abs=1e-4)


@needs_packages
def test_training_makes_what_paid_likelier():
    inputs, outputs, steps = 4, 3, 64
    learning = Learning(inputs, outputs, hidden=8, steps=steps, batch=32, rate=0.01)
    weights = fresh(inputs, outputs, 8, 1)
    dice = np.random.default_rng(1)
    actions = dice.integers(0, 2, steps)
    observations = np.zeros((steps, inputs + outputs), np.float32)
    observations[:, 0] = 1
    masks = np.tile([True, True, False], (steps, 1))
    rollout = Rollout(
        observations,
        actions,
        (actions == 1).astype(np.float32),
        np.full(steps, 0.5, np.float32),
        np.full(steps, np.log(0.5), np.float32),
        masks,
        np.ones(steps, bool),
        0.0,
        True,
    )

    def child():
        trainer = training.Trainer(learning, weights)
        after = trainer.train(rollout)
        after = trainer.train(rollout)
        trainer.close()
        return after, trainer.logged, trainer.processor_seconds

    after, logged, seconds = in_child(child)
    assert after["action_net.bias"][1] > after["action_net.bias"][0]
    assert abs(after["action_net.bias"][2]) < 1e-3 < after["action_net.bias"][1]  # the last was never open
    assert logged["train/n_updates"] == 2 * learning.epochs
    assert seconds > 0


@needs_packages
def test_the_agent_finds_what_pays(tmp_path):
    def child():
        agent = policies.make("agent", space(), 1, QUICK)
        made = play(agent, space(), 600)
        agent.save(tmp_path)
        agent.close()
        return share_rich(made[:25]), share_rich(made[-150:]), agent.trainings

    before, after, trainings = in_child(child)
    assert before < 0.8
    assert after > 0.85
    assert trainings >= 5

    def goes_on():
        loaded = policies.make("agent", space(families=("added", "plain", "rich")), 2, QUICK)
        loaded.load(tmp_path)
        made = play(loaded, space(families=("added", "plain", "rich")), 60)
        loaded.close()
        return share_rich(made)

    assert in_child(goes_on) > 0.6


@needs_packages
def test_the_agent_learns_nothing_where_all_pays_the_same():
    def child():
        agent = policies.make("agent", space(), 1, QUICK)
        made = play(agent, space(), 250, feedback=lambda case: Feedback(VALID))
        agent.close()
        return share_rich(made[-150:])

    assert 0.25 < in_child(child) < 0.75


@needs_packages
def test_the_agent_leaves_gradients_to_executors_that_it_forks():
    def child():
        import torch

        agent = policies.make("agent", space(), 1, QUICK)
        play(agent, space(), 60)
        agent.close()

        def gradient():
            x = torch.ones(2, requires_grad=True)
            (x * 3).sum().backward()
            return x.grad.tolist()

        return agent.trainings, in_child(gradient)

    trainings, gradient = in_child(child)
    assert trainings > 0
    assert gradient == [3.0, 3.0]


@needs_packages
def test_a_training_process_that_dies_is_told_of():
    def child():
        agent = policies.make("agent", space(), 1, QUICK)
        os.kill(agent._trainer._child, 9)
        with pytest.raises(MachineError, match="training process ended"):
            play(agent, space(), 100)
        return True

    assert in_child(child)


@needs_packages
def test_checkpoints_are_checked(tmp_path):
    def child():
        agent = policies.make("agent", space(), 1, QUICK)
        with pytest.raises(RunDirectoryError, match="no saved agent"):
            agent.load(tmp_path)
        agent.save(tmp_path)
        other = policies.make("agent", space(), 1, QUICK | {"hidden": 8})
        with pytest.raises(RunDirectoryError, match="set hidden=16"):
            other.load(tmp_path)
        (tmp_path / "agent.npz").write_bytes(b"nonsense")
        with pytest.raises(RunDirectoryError, match="no saved agent"):
            agent.load(tmp_path)
        agent.close()
        other.close()
        return True

    assert in_child(child)


def test_missing_packages_are_told_of(monkeypatch):
    monkeypatch.setattr(training, "PACKAGES", ("no_such_package",))
    with pytest.raises(BadInputError, match="needs no_such_package: pip install"):
        policies.make("agent", space(), 1)


def test_settings_of_the_agent_are_checked():
    with pytest.raises(BadInputError, match="divisor of steps=100"):
        policies.make("agent", space(), 1, {"steps": 100, "batch": 64})


def test_weights_move_by_name():
    weights = fresh(2, 3, 4, 1)
    weights["action_net.weight"][:] = np.arange(12).reshape(3, 4)
    after = moved(weights, (("a", "b"), ("new", "b", "a")), (("x", "y", "z"), ("z", "w", "x")))
    first = "mlp_extractor.policy_net.0.weight"
    assert (after[first][:, 0] == 0).all()
    assert (after[first][:, [2, 1]] == weights[first]).all()
    assert after["action_net.weight"].tolist() == [[8, 9, 10, 11], [0, 0, 0, 0], [0, 1, 2, 3]]
    assert len(after["action_net.bias"]) == 3


@needs_packages
def test_the_environment_can_be_learned_from():
    def child():
        from sb3_contrib import MaskablePPO

        from truekernel.fuzz.policies.environment import FuzzEnvironment

        environment = FuzzEnvironment(space(), feedback_of, seed=1)
        observation, _ = environment.reset(seed=3)
        assert environment.observation_space.contains(observation)
        ended, rewards = 0, []
        dice = np.random.default_rng(1)
        for _ in range(900):
            masks = environment.action_masks()
            with pytest.raises(ValueError, match="is not open"):
                environment.step(int(np.flatnonzero(~masks)[0]))
            observation, reward, terminated, truncated, info = environment.step(int(dice.choice(np.flatnonzero(masks))))
            assert environment.observation_space.contains(observation)
            assert not truncated
            if terminated:
                ended += 1
                rewards.append((reward, bool(info["feedback"].functions)))
                environment.reset()
            else:
                assert reward == 0
        assert ended > 10
        assert min(value for value, new in rewards if new) > max(
            value for value, new in rewards[len(rewards) // 2 :] if not new
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MaskablePPO("MlpPolicy", environment, n_steps=64, batch_size=64, n_epochs=1, device="cpu")
            model.learn(128)
        return environment.state.executed

    assert in_child(child) > 10
