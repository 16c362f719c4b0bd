"""From frequent to rare operators: which may be chosen yet."""

from __future__ import annotations

from truekernel.fuzz.choices import Node, Options
from truekernel.fuzz.policy import Vocabularies

STAGES = (0.25, 0.5, 1.0)
"""Shares of the operators that are open, the most frequent first."""
WINDOW = 100
"""Cases that the mean reward is taken over."""
EXHAUSTED = 0.4
"""A stage has nothing more to teach when the mean reward is below this share of its best."""


class Curriculum:
    """Opens the next stage when the present one is exhausted, or after `patience` cases; with `patience` 0 everything is open from the start.

    Frequent are operators of great weight in the space: those that it knows valid calls of, that are documented, and that the user prefers.
    """

    def __init__(self, space: Vocabularies, patience: int) -> None:
        operators = list(space.operators())
        self._families = {name: place for place, name in enumerate(space.vocabulary("family"))}
        ranked = sorted(
            range(len(operators)),
            key=lambda place: (operators[place].weight, operators[place].documented, operators[place].public),
            reverse=True,
        )
        self._open: list[tuple[frozenset[int], frozenset[int]]] = []
        for share in STAGES:
            chosen = ranked[: max(1, round(share * len(ranked)))]
            families = frozenset(self._families[operators[place].family] for place in chosen)
            self._open.append((frozenset(chosen), families))
        self._patience = patience
        self.stage = 0 if patience else len(STAGES) - 1
        self._rewards: list[float] = []
        self._best = 0.0

    def narrowed(self, node: Node, options: Options) -> Options:
        """The options that are open in this stage."""
        if self.stage == len(STAGES) - 1 or node.kind not in ("family", "operator"):
            return options
        allowed = self._open[self.stage][node.kind == "family"]
        places = [place for place, option in enumerate(options.open) if option in allowed]
        if not places:
            return options
        return Options(
            tuple(options.open[place] for place in places), tuple(options.weights[place] for place in places)
        )

    def learn(self, reward: float) -> None:
        """What a case was worth."""
        if self.stage == len(STAGES) - 1:
            return
        self._rewards.append(max(reward, 0.0))
        if len(self._rewards) < WINDOW:
            return
        mean = sum(self._rewards[-WINDOW:]) / WINDOW
        self._best = max(self._best, mean)
        if mean < EXHAUSTED * self._best or len(self._rewards) >= self._patience:
            self.stage += 1
            self._rewards.clear()
            self._best = 0.0
