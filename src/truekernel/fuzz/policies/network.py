"""The agent's network, evaluated with numpy for one node at a time: many times faster than through torch, and without its threads in a process that forks.

`training` holds the same network in torch and changes it; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from truekernel.fuzz.policies.encoding import Seen

Weights = Mapping[str, npt.NDArray[np.float32]]

POLICY = ("mlp_extractor.policy_net.0", "mlp_extractor.policy_net.2")
VALUE = ("mlp_extractor.value_net.0", "mlp_extractor.value_net.2")
ACTION_HEAD, VALUE_HEAD = "action_net", "value_net"
FIRST_LAYERS = (POLICY[0], VALUE[0])


class Network:
    """Two hidden layers of tanh for the policy, two for the value; the policy's outputs are added to the prior."""

    def __init__(self, weights: Weights) -> None:
        self._weights = {name: np.asarray(value, np.float32) for name, value in weights.items()}

    def judge(self, seen: Seen) -> tuple[npt.NDArray[np.float64], float]:
        """(chances of the open actions, value of the state)."""
        hidden = self._layers(seen.features, POLICY)
        weights = self._weights
        logits = weights[f"{ACTION_HEAD}.weight"][seen.actions] @ hidden + weights[f"{ACTION_HEAD}.bias"][seen.actions]
        scores = (logits + seen.prior).astype(np.float64)
        scores = np.exp(scores - scores.max())
        value = weights[f"{VALUE_HEAD}.weight"] @ self._layers(seen.features, VALUE) + weights[f"{VALUE_HEAD}.bias"]
        return scores / scores.sum(), float(value[0])

    def _layers(self, x: npt.NDArray[np.float32], names: Sequence[str]) -> npt.NDArray[np.float32]:
        for name in names:
            x = np.tanh(self._weights[f"{name}.weight"] @ x + self._weights[f"{name}.bias"])
        return x


def fresh(inputs: int, outputs: int, hidden: int, seed: int) -> dict[str, npt.NDArray[np.float32]]:
    """Weights of a network that says nothing yet: orthogonal layers, and heads of zeros, so that the prior alone decides."""
    random = np.random.default_rng(seed)
    weights: dict[str, npt.NDArray[np.float32]] = {}
    for names in (POLICY, VALUE):
        for name, (high, wide) in zip(names, ((hidden, inputs), (hidden, hidden)), strict=True):
            square = random.standard_normal((max(high, wide), min(high, wide)))
            orthogonal = np.linalg.qr(square)[0]
            weights[f"{name}.weight"] = (np.sqrt(2) * (orthogonal if high >= wide else orthogonal.T)).astype(np.float32)
            weights[f"{name}.bias"] = np.zeros(high, np.float32)
    for name, high in ((ACTION_HEAD, outputs), (VALUE_HEAD, 1)):
        weights[f"{name}.weight"] = np.zeros((high, hidden), np.float32)
        weights[f"{name}.bias"] = np.zeros(high, np.float32)
    return weights


def moved(
    weights: Weights, inputs: tuple[Sequence[str], Sequence[str]], outputs: tuple[Sequence[str], Sequence[str]]
) -> dict[str, npt.NDArray[np.float32]]:
    """The weights of a network whose inputs and outputs have other names: (old, new) of each. What is new starts at 0; what is gone is dropped."""
    result = dict(weights)
    old, new = _matches(*inputs)
    for name in FIRST_LAYERS:
        before = weights[f"{name}.weight"]
        after = np.zeros((len(before), len(inputs[1])), np.float32)
        after[:, new] = before[:, old]
        result[f"{name}.weight"] = after
    old, new = _matches(*outputs)
    for part in ("weight", "bias"):
        before = weights[f"{ACTION_HEAD}.{part}"]
        after = np.zeros((len(outputs[1]), *before.shape[1:]), np.float32)
        after[new] = before[old]
        result[f"{ACTION_HEAD}.{part}"] = after
    return result


def _matches(old: Sequence[str], new: Sequence[str]) -> tuple[list[int], list[int]]:
    places = {name: place for place, name in enumerate(old)}
    pairs = [(places[name], place) for place, name in enumerate(new) if name in places]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
