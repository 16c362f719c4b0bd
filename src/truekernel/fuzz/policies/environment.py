"""The space as a Gymnasium environment, for algorithms that want to drive it themselves.

    environment = FuzzEnvironment(space, execute, seed=1)
    model = MaskablePPO("MlpPolicy", environment)          # it asks `environment.action_masks()`
    model.learn(10_000)

An episode is one case, a step one choice; the reward comes with the last step, when the case is executed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from truekernel.fuzz.choices import Node, Options
from truekernel.fuzz.policies.encoding import LEFT_TO_CHANCE, Encoder, Seen
from truekernel.fuzz.policies.rewards import Reward, RewardSettings
from truekernel.fuzz.policies.tallies import WAYS, Tallies
from truekernel.fuzz.policy import State
from truekernel.fuzz.records import Feedback, TestCase
from truekernel.fuzz.space import Space


class FuzzEnvironment(gymnasium.Env[npt.NDArray[np.float32], Any]):
    """Observations: float32, `encoding.Encoder.inputs` by name, then the logarithms of the open options' weights. Actions: `encoding.Encoder.outputs` by name; those that
    `action_masks` leaves. `info` has the `feedback` when an episode ends.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - gymnasium's own name

    def __init__(
        self,
        space: Space,
        execute: Callable[[TestCase], Feedback],
        seed: int = 0,
        rewards: RewardSettings | None = None,
    ) -> None:
        self._space, self._execute = space, execute
        self._reward = Reward(rewards)
        self._tallies = Tallies([operator.name for operator in space.operators()])
        self.encoder = Encoder(space, self._tallies)
        self._random = random.Random(seed)
        self._draws = np.random.default_rng(seed)
        self.state = State()
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (self.encoder.width,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(len(self.encoder.outputs))
        self._steps: Any = None
        self._node: Node
        self._options: Options
        self._seen: Seen

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Begin a case."""
        super().reset(seed=seed, options=options)
        if seed is not None:
            self._random, self._draws = random.Random(seed), np.random.default_rng(seed)
        self._steps = self._space.questions(self._random, self.state)
        self._node, self._options = next(self._steps)
        done = self._forward()
        assert done is None, "a case without a choice"
        return self.encoder.observation(self._seen), {}

    def step(self, action: int) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Choose. Raises ValueError for an action that is not open."""
        if action not in self._seen.actions:
            raise ValueError(f"action {action} ({self.encoder.outputs[action]}) is not open: ask action_masks()")
        option = self.encoder.option(self._node, int(action))
        if self._node.kind == "operator":
            option = self._tallies.pick(WAYS[option], self._options, self._draws)
        case = self._answer(option) or self._forward()
        if case is None:
            return self.encoder.observation(self._seen), 0.0, False, False, {}
        feedback = self._execute(case)
        operators = tuple(call.operator for call in case.calls)
        reward = self._reward.of(feedback, operators)
        self._tallies.learn(operators, feedback, reward)
        self.encoder.step(feedback)
        self._space.learn(feedback, case)
        self.state.recent.append(feedback)
        self.state.executed += 1
        self.state.valid += feedback.outcome.kind != "refused"
        self.state.functions += len(feedback.functions)
        self.state.findings += feedback.fresh
        return self.encoder.observation(self._seen), reward, True, False, {"feedback": feedback, "case": case}

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Which actions are open now."""
        return self.encoder.mask(self._seen)

    def _answer(self, option: int) -> TestCase | None:
        """Tell the space; the case when it is whole."""
        self.state.choices.append((self._node, option))
        try:
            self._node, self._options = self._steps.send(option)
        except StopIteration as done:
            case: TestCase = done.value
            return case
        return None

    def _forward(self) -> TestCase | None:
        """Answer what is left to chance; the case when no question is left."""
        while self._node.kind in LEFT_TO_CHANCE or len(self._options.open) == 1:
            option = self._random.choices(self._options.open, self._options.weights)[0]
            case = self._answer(option)
            if case is not None:
                return case
        self._seen = self.encoder.see(self._node, self._options, self.state)
        return None
