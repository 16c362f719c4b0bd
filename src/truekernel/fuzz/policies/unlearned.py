"""Policies that learn nothing: the baselines."""

from __future__ import annotations

import random
from pathlib import Path

from truekernel.fuzz.choices import ORIGINS, PATTERNS, Node, Options
from truekernel.fuzz.policy import State
from truekernel.fuzz.records import Feedback

SELECTION = ("calls", "relation", "family", "operator")
"""Kinds of nodes at which even `naive` follows the weights: they hold what the user asked for and how large families are."""


class Uniform:
    """The whole space, and chances as the space gives them: ordinary cases more often than odd ones. `flat`: the same chance for all that is open instead."""

    name = "uniform"

    def __init__(self, seed: int, *, flat: bool = False) -> None:
        self._random = random.Random(seed)
        self._flat = flat

    def choose(self, node: Node, options: Options, state: State) -> int:  # noqa: ARG002
        """See `policy.Policy.choose`."""
        if self._flat and node.kind not in SELECTION:
            return self._random.choice(options.open)
        return self._random.choices(options.open, options.weights)[0]

    def learn(self, feedback: Feedback) -> None:
        """Nothing."""

    def save(self, directory: Path) -> None:
        """Nothing."""

    def load(self, directory: Path) -> None:
        """Nothing."""


class Naive(Uniform):
    """Types from the signature, and beyond that random values, with no constraints, samples or patterns: what the first fuzzers of such libraries do."""

    name = "naive"

    def choose(self, node: Node, options: Options, state: State) -> int:
        """See `policy.Policy.choose`."""
        if node.kind in SELECTION:
            return super().choose(node, options, state)
        preferred = {"origin": ORIGINS.index("free"), "pattern": PATTERNS.index("none")}.get(node.kind)
        return preferred if preferred in options.open else self._random.choice(options.open)


class OpInfo(Uniform):
    """Samples of the library's own tests, each changed a little: mutation without constraints and patterns."""

    name = "opinfo"

    def choose(self, node: Node, options: Options, state: State) -> int:
        """See `policy.Policy.choose`."""
        preferred = {"origin": ORIGINS.index("seed"), "pattern": PATTERNS.index("none")}.get(node.kind)
        return preferred if preferred in options.open else super().choose(node, options, state)
