"""How the tree of choices looks to a network: what it observes at a node, and which output stands for which option.

An action is an option of the kind of node at hand: outputs of all kinds stand side by side, and the mask leaves those that are open. At a node `operator` an action is a way
to pick one (`tallies.WAYS`). Inputs and outputs have names, by which a checkpoint finds its places in another version of a library.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from truekernel.fuzz.choices import ORIGINS, PATTERNS, RISKS, VOCABULARY, Node, Options
from truekernel.fuzz.policies.tallies import FIGURES, WAY_WEIGHTS, WAYS, Tallies
from truekernel.fuzz.policy import REMEMBERED, State, Vocabularies
from truekernel.fuzz.records import Feedback

LEFT_TO_CHANCE = frozenset({"form", "argument", "axis", "text"})
"""Kinds of nodes whose options mean something else for each operator: the space's weights decide there."""

_SHOWN = (("pattern", PATTERNS), ("origin", ORIGINS), ("risk", RISKS))
_STEP = ("functions", "overloads", "valid", "failed")
_RUN = ("executed", "valid", "functions", "findings")
Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a network sees at a node. `features`: float32, one for each of `Encoder.inputs`. `actions`: numbers of the outputs that are open, ascending.
    `prior`: float32, logarithms of their weights, so that a network that says nothing chooses as the space's weights do."""

    features: Vector
    actions: npt.NDArray[np.int64]
    prior: Vector


class Encoder:
    """Of one space. `inputs`, `outputs`: names."""

    def __init__(self, space: Vocabularies, tallies: Tallies) -> None:
        self._tallies = tallies
        everything: tuple[str, ...] = ("family", "operator", *VOCABULARY)
        kinds = [kind for kind in everything if kind not in LEFT_TO_CHANCE]
        self._kinds = {kind: place for place, kind in enumerate(kinds)}
        self.outputs: list[str] = []
        self._starts: dict[str, int] = {}
        for kind in kinds:
            self._starts[kind] = len(self.outputs)
            names = WAYS if kind == "operator" else space.vocabulary(kind)
            self.outputs += [f"{kind}:{name}" for name in names]
        self.inputs = [f"kind {kind}" for kind in kinds] + ["call", "slot", "axis"]
        self._at_features = len(self.inputs)
        self.inputs += [f"operator {name}" for name in space.feature_names]
        self._at_figures = len(self.inputs)
        self.inputs += [f"figure {name}" for name in FIGURES]
        self._at_shown: dict[str, int] = {}
        for kind, names in _SHOWN:
            self._at_shown[kind] = len(self.inputs)
            self.inputs += [f"{kind} {name}" for name in names]
        self._at_run = len(self.inputs)
        self.inputs += [f"run {name}" for name in _RUN]
        self._at_steps = len(self.inputs)
        self.inputs += [f"step {number} {name}" for number in range(REMEMBERED) for name in _STEP]
        self._steps = np.zeros(REMEMBERED * len(_STEP), np.float32)

    def step(self, feedback: Feedback) -> None:
        """A case has ended: the newest of the last ten steps comes first."""
        size = len(_STEP)
        self._steps[size:] = self._steps[:-size].copy()
        self._steps[:size] = (
            math.log2(1 + len(feedback.functions)) / 8,
            math.log2(1 + len(feedback.overloads)) / 4,
            feedback.outcome.kind != "refused",
            feedback.outcome.failed,
        )

    def see(self, node: Node, options: Options, state: State) -> Seen:
        """What there is to see at a node that is not left to chance."""
        features = np.zeros(len(self.inputs), np.float32)
        kinds = len(self._kinds)
        features[self._kinds[node.kind]] = 1.0
        features[kinds : kinds + 3] = (node.call / 6, (node.slot + 1) / 24, (node.axis + 1) / 8)
        if state.operator is not None and node.kind not in ("family", "operator"):
            features[self._at_features : self._at_figures] = state.operator.features
            figures = self._tallies.figures(state.operator.name)
            features[self._at_figures : self._at_figures + len(FIGURES)] = figures
        for made, chosen in state.choices:
            place = self._at_shown.get(made.kind)
            if place is not None and made.call == node.call:
                features[place + chosen] = 1.0
        features[self._at_run : self._at_steps] = (
            math.log1p(state.executed) / 15,
            state.valid / max(state.executed, 1),
            math.log1p(state.functions) / 12,
            math.log1p(state.findings) / 6,
        )
        features[self._at_steps :] = self._steps
        start = self._starts[node.kind]
        if node.kind == "operator":
            open_ = np.flatnonzero(self._tallies.ways(options))
            weights = np.asarray(WAY_WEIGHTS)[open_]
        else:
            open_, weights = np.asarray(options.open), np.asarray(options.weights)
        prior = np.log(np.maximum(weights / weights.sum(), 1e-6)).astype(np.float32)
        return Seen(features, open_ + start, prior)

    def option(self, node: Node, action: int) -> int:
        """Which option of the node's vocabulary, or which of `WAYS`, an action stands for."""
        return action - self._starts[node.kind]

    def mask(self, seen: Seen) -> npt.NDArray[np.bool_]:
        """The open outputs, as one bool for each output."""
        mask = np.zeros(len(self.outputs), bool)
        mask[seen.actions] = True
        return mask

    def observation(self, seen: Seen) -> Vector:
        """What the network of `training` takes: features, then the prior of each output, 0 where it is not open."""
        vector = np.zeros(len(self.inputs) + len(self.outputs), np.float32)
        vector[: len(self.inputs)] = seen.features
        vector[len(self.inputs) + seen.actions] = seen.prior
        return vector

    @property
    def width(self) -> int:
        """Length of `observation`."""
        return len(self.inputs) + len(self.outputs)
