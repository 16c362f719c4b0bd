"""The agent: a network chooses at each node of the tree, and proximal policy optimisation teaches it what paid.

Each case is an episode, each choice a step; the reward comes with the last. Choices are made here with numpy (`network`), training happens in a process of its own (`training`).
"""

from __future__ import annotations

import json
import math
import random
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from truekernel.errors import BadInputError, RunDirectoryError
from truekernel.fuzz.choices import Node, Options
from truekernel.fuzz.policies.curriculum import Curriculum
from truekernel.fuzz.policies.encoding import LEFT_TO_CHANCE, Encoder, Seen
from truekernel.fuzz.policies.network import Network, fresh, moved
from truekernel.fuzz.policies.rewards import Reward, Settings
from truekernel.fuzz.policies.tallies import WAYS, Tallies
from truekernel.fuzz.policies.training import Learning, Rollout, Trainer, as_mapping
from truekernel.fuzz.policy import State, Vocabularies
from truekernel.fuzz.records import Feedback

WEIGHTS, NOTES = "agent.npz", "agent.json"


class Agent:
    """See the module. Settings: the constants of the reward; the hyper-parameters of `training.Learning`; `patience` of the curriculum, in cases (0: none); `scale`, by which
    rewards are divided. Needs gymnasium and sb3-contrib."""

    name = "agent"

    def __init__(self, space: Vocabularies, seed: int, settings: Settings) -> None:
        self._random, self._dice = np.random.default_rng(seed), random.Random(seed)
        self._reward = Reward(settings.rewards())
        self._scale = settings.get("scale", 5.0, 1e-6, 1e6)
        operators = [operator.name for operator in space.operators()]
        self.tallies = Tallies(operators)
        self.encoder = Encoder(space, self.tallies)
        self.curriculum = Curriculum(space, round(settings.get("patience", 400, 0, 1e9)))
        self.learning = _learning(settings, len(self.encoder.inputs), len(self.encoder.outputs), seed)
        weights = fresh(self.learning.inputs, self.learning.outputs, self.learning.hidden, seed)
        self._begin(weights)
        self._state: State | None = None
        self.trainings = 0

    def choose(self, node: Node, options: Options, state: State) -> int:
        """See `policy.Policy.choose`."""
        self._state = state
        if not state.choices:
            self._first = True
        if node.kind in LEFT_TO_CHANCE:
            return self._dice.choices(options.open, options.weights)[0]
        options = self.curriculum.narrowed(node, options)
        if len(options.open) == 1:
            return options.open[0]
        seen = self.encoder.see(node, options, state)
        chances, value = self._network.judge(seen)
        if self._filled == self.learning.steps:
            self._train(value)
            chances, value = self._network.judge(seen)
        place = min(int(np.searchsorted(chances.cumsum(), self._random.random())), len(chances) - 1)
        action = int(seen.actions[place])
        self._keep(seen, action, math.log(max(chances[place], 1e-30)), value)
        option = self.encoder.option(node, action)
        return self.tallies.pick(WAYS[option], options, self._random) if node.kind == "operator" else option

    def learn(self, feedback: Feedback) -> None:
        """See `policy.Policy.learn`."""
        operators = tuple(call.operator for call in self._state.calls) if self._state else ()
        reward = self._reward.of(feedback, operators)
        if self._filled and not self._first:
            self._rewards[self._filled - 1] += reward / self._scale
        if not feedback.duplicate:
            self.tallies.learn(operators, feedback, reward)
            self.encoder.step(feedback)
            self.curriculum.learn(reward)

    def save(self, directory: Path) -> None:
        """Weights by layer, and inputs and outputs by name, so that another version of the library, with other operators and families, can go on."""
        np.savez(directory / WEIGHTS, **self._weights)  # type: ignore[arg-type]
        notes = {
            "inputs": self.encoder.inputs,
            "outputs": self.encoder.outputs,
            "learning": as_mapping(self.learning),
            "stage": self.curriculum.stage,
            "tallies": self.tallies.document(),
            "cases": self.tallies.cases,
            "mean": self.tallies.mean,
            "trainings": self.trainings,
        }
        (directory / NOTES).write_text(json.dumps(notes), encoding="utf-8")

    def load(self, directory: Path) -> None:
        """See `policy.Policy.load`. The size of the hidden layers must be that of the checkpoint; the optimiser starts anew."""
        try:
            notes: dict[str, Any] = json.loads((directory / NOTES).read_text(encoding="utf-8"))
            with np.load(directory / WEIGHTS, allow_pickle=False) as file:
                weights = {name: file[name] for name in file.files}
            hidden = int(notes["learning"]["hidden"])
            if hidden != self.learning.hidden:
                raise RunDirectoryError(f"{directory} has hidden layers of {hidden}: set hidden={hidden}")
            inputs, outputs = (notes["inputs"], self.encoder.inputs), (notes["outputs"], self.encoder.outputs)
            weights = moved(weights, inputs, outputs)
            self.tallies.load(notes["tallies"], int(notes["cases"]), float(notes["mean"]))
            self.curriculum.stage = max(self.curriculum.stage, int(notes["stage"]))
            self.trainings = int(notes["trainings"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise RunDirectoryError(f"{directory} holds no saved agent: start without it") from error
        self._trainer.close()
        self._begin(weights)

    def processor_seconds(self) -> float:
        """Of the training process so far."""
        return self._trainer.processor_seconds

    def figures(self) -> dict[str, float]:
        """Of the last training, as sb3 names them, e.g. "train/approx_kl"."""
        return dict(self._trainer.logged)

    def close(self) -> None:
        """End the training process."""
        self._trainer.close()

    def _begin(self, weights: dict[str, np.ndarray]) -> None:
        self._weights = weights
        self._network = Network(weights)
        self._trainer = Trainer(self.learning, weights)
        weakref.finalize(self, self._trainer.close)
        steps, width, outputs = self.learning.steps, self.encoder.width, self.learning.outputs
        self._filled, self._first = 0, True
        self._observations = np.zeros((steps, width), np.float32)
        self._masks = np.zeros((steps, outputs), bool)
        self._actions = np.zeros(steps, np.int64)
        self._rewards, self._values, self._chances = (np.zeros(steps, np.float32) for _ in range(3))
        self._starts = np.zeros(steps, bool)

    def _keep(self, seen: Seen, action: int, chance: float, value: float) -> None:
        at = self._filled
        self._observations[at] = self.encoder.observation(seen)
        self._masks[at] = self.encoder.mask(seen)
        self._actions[at], self._chances[at], self._values[at], self._rewards[at] = action, chance, value, 0.0
        self._starts[at], self._first = self._first, False
        self._filled += 1

    def _train(self, value: float) -> None:
        rollout = Rollout(
            self._observations,
            self._actions,
            self._rewards,
            self._values,
            self._chances,
            self._masks,
            self._starts,
            value,
            self._first,
        )
        self._weights = dict(self._trainer.train(rollout))
        self._network = Network(self._weights)
        self._filled = 0
        self.trainings += 1


def _learning(settings: Settings, inputs: int, outputs: int, seed: int) -> Learning:
    default = Learning(inputs, outputs)
    learning = Learning(
        inputs,
        outputs,
        hidden=round(settings.get("hidden", default.hidden, 1, 4096)),
        steps=round(settings.get("steps", default.steps, 8, 1 << 20)),
        batch=round(settings.get("batch", default.batch, 2, 1 << 20)),
        epochs=round(settings.get("epochs", default.epochs, 1, 1000)),
        rate=settings.get("rate", default.rate, 0.0, 1.0),
        discount=settings.get("discount", default.discount, 0.0, 1.0),
        trace=settings.get("trace", default.trace, 0.0, 1.0),
        clip=settings.get("clip", default.clip, 1e-3, 10.0),
        entropy=settings.get("entropy", default.entropy, 0.0, 10.0),
        seed=seed % (1 << 32),
    )
    if learning.steps % learning.batch:
        raise BadInputError(f"policy setting batch={learning.batch}: give a divisor of steps={learning.steps}")
    return learning
