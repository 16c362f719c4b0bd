"""The process that trains the agent's network: maskable PPO of sb3-contrib, in a fork of its own.

It is a process apart since a process that has used torch's gradients can't fork executors that use them too. Schulman et al., arXiv 1707.06347; masks: Huang & Ontañón,
arXiv 2006.14171.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from truekernel.errors import BadInputError, MachineError
from truekernel.fuzz.policies.network import Weights

PACKAGES = ("gymnasium", "stable_baselines3", "sb3_contrib")


@dataclass(frozen=True, slots=True)
class Learning:
    """Hyper-parameters of PPO. `steps`: decisions between two trainings; `batch`: of one gradient step; `epochs`: passes over the steps; `discount` of each further decision;
    `trace`: lambda of the generalised advantage estimate; `clip`: how far a chance may move in one training; `entropy`: weight of the entropy bonus."""

    inputs: int
    outputs: int
    hidden: int = 64
    steps: int = 1024
    batch: int = 256
    epochs: int = 4
    rate: float = 1e-3
    discount: float = 0.99
    trace: float = 0.95
    clip: float = 0.2
    entropy: float = 0.01
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Rollout:
    """`steps` decisions: observations (float32), actions, rewards, values and logarithms of chances as they were, masks (bool), `starts` (bool: first of a case); then the
    value of the state after the last, and whether that begins another case."""

    observations: npt.NDArray[np.float32]
    actions: npt.NDArray[np.int64]
    rewards: npt.NDArray[np.float32]
    values: npt.NDArray[np.float32]
    chances: npt.NDArray[np.float32]
    masks: npt.NDArray[np.bool_]
    starts: npt.NDArray[np.bool_]
    last_value: float
    last_start: bool


def missing_packages() -> list[str]:
    """What the agent needs and is not installed."""
    return [name for name in PACKAGES if find_spec(name) is None]


def model(learning: Learning, weights: Weights) -> Any:
    """sb3-contrib's MaskablePPO with these weights. Uses torch's gradients from `train` on."""
    import gymnasium
    import torch
    from sb3_contrib import MaskablePPO
    from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
    from stable_baselines3.common.logger import configure
    from stable_baselines3.common.torch_layers import MlpExtractor

    class Extractor(MlpExtractor):
        """Layers over the features; the prior goes past them to the head."""

        def forward_actor(self, features: torch.Tensor) -> torch.Tensor:
            return torch.cat([super().forward_actor(features[:, : learning.inputs]), features[:, learning.inputs :]], 1)

        def forward_critic(self, features: torch.Tensor) -> torch.Tensor:
            return super().forward_critic(features[:, : learning.inputs])

    class PriorPolicy(MaskableActorCriticPolicy):
        """Adds the prior to what the head says."""

        def _build_mlp_extractor(self) -> None:
            self.mlp_extractor = Extractor(learning.inputs, self.net_arch, self.activation_fn, self.device)

        def _get_action_dist_from_latent(self, latent_pi: torch.Tensor) -> Any:
            hidden, prior = latent_pi[:, : learning.hidden], latent_pi[:, learning.hidden :]
            return self.action_dist.proba_distribution(action_logits=self.action_net(hidden) + prior)

    class Spaces(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (learning.inputs + learning.outputs,), np.float32)
        action_space = gymnasium.spaces.Discrete(learning.outputs)

    layers = [learning.hidden, learning.hidden]
    made = MaskablePPO(
        PriorPolicy,
        Spaces(),
        learning_rate=learning.rate,
        n_steps=learning.steps,
        batch_size=learning.batch,
        n_epochs=learning.epochs,
        gamma=learning.discount,
        gae_lambda=learning.trace,
        clip_range=learning.clip,
        ent_coef=learning.entropy,
        policy_kwargs={"net_arch": {"pi": layers, "vf": layers}},
        seed=learning.seed,
        device="cpu",
    )
    made.set_logger(configure(None, []))
    made.policy.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in weights.items()})
    return made


def train(made: Any, rollout: Rollout) -> tuple[dict[str, npt.NDArray[np.float32]], dict[str, float]]:
    """One training of `model`: (weights after it, what sb3 logs)."""
    import torch

    buffer = made.rollout_buffer
    buffer.reset()
    buffer.observations[:, 0] = rollout.observations
    buffer.actions[:, 0, 0] = rollout.actions
    buffer.rewards[:, 0] = rollout.rewards
    buffer.values[:, 0] = rollout.values
    buffer.log_probs[:, 0] = rollout.chances
    buffer.action_masks[:, 0] = rollout.masks
    buffer.episode_starts[:, 0] = rollout.starts
    buffer.pos, buffer.full = buffer.buffer_size, True
    last = torch.tensor([[rollout.last_value]])
    buffer.compute_returns_and_advantage(last_values=last, dones=np.array([rollout.last_start]))
    made.train()
    weights = {name: value.numpy().copy() for name, value in made.policy.state_dict().items()}
    logged = {name: float(value) for name, value in made.logger.name_to_value.items()}
    made.logger.name_to_value.clear()
    return weights, logged


class Trainer:
    """A forked process that holds the model. Raises BadInputError when packages are missing, MachineError when the process dies."""

    def __init__(self, learning: Learning, weights: Weights) -> None:
        missing = missing_packages()
        if missing:
            raise BadInputError(f"policy agent needs {', '.join(missing)}: pip install 'truekernel[agent]'")
        requests, self._requests = os.pipe()
        self._replies, replies = os.pipe()
        self._owner = os.getpid()
        self._child = os.fork()
        if not self._child:
            try:
                os.close(self._requests)
                os.close(self._replies)
                _serve(learning, weights, requests, replies)
            finally:
                os._exit(0)
        os.close(requests)
        os.close(replies)
        self.processor_seconds = 0.0
        self.logged: dict[str, float] = {}

    def train(self, rollout: Rollout) -> Weights:
        """Weights after a training on `rollout`."""
        try:
            _send(self._requests, rollout)
            answer = _receive(self._replies)
        except OSError:
            answer = None
        if not isinstance(answer, tuple):
            raise MachineError(
                f"the agent's training process ended: {answer or 'out of memory?'}; start again with --resume"
            )
        weights, self.logged, self.processor_seconds = answer
        return weights

    def close(self) -> None:
        """End the process."""
        child, self._child = self._child, 0
        if child and self._owner == os.getpid():
            with contextlib.suppress(OSError):
                os.close(self._requests)
                os.close(self._replies)
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def _serve(learning: Learning, weights: Weights, requests: int, replies: int) -> None:
    ctypes.CDLL(None).prctl(
        1, signal.SIGKILL
    )  # PR_SET_PDEATHSIG: other children of the parent hold its end of the pipe too
    try:
        import torch

        torch.set_num_threads(1)
        made = model(learning, weights)
        while (rollout := _receive(requests)) is not None:
            _send(replies, (*train(made, rollout), time.process_time()))
    except Exception as error:
        with contextlib.suppress(OSError):
            _send(replies, f"{type(error).__name__}: {error}")


def _send(handle: int, value: Any) -> None:
    data = pickle.dumps(value, protocol=5)
    view = memoryview(struct.pack("<Q", len(data)) + data)
    while view:
        view = view[os.write(handle, view) :]


def _receive(handle: int) -> Any:
    head = _exactly(handle, 8)
    return pickle.loads(_exactly(handle, struct.unpack("<Q", head)[0])) if len(head) == 8 else None


def _exactly(handle: int, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = os.read(handle, min(count - len(parts), 1 << 20))
        if not part:
            break
        parts += part
    return bytes(parts)


def learning_names() -> tuple[str, ...]:
    """Names of the hyper-parameters that a user may set."""
    return tuple(name for name in Learning.__dataclass_fields__ if name not in ("inputs", "outputs", "seed"))


def as_mapping(learning: Learning) -> Mapping[str, float]:
    """Hyper-parameters by name, as a checkpoint keeps them."""
    return {name: getattr(learning, name) for name in learning_names()}
