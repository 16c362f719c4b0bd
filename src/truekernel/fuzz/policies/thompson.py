"""A bandit: Thompson sampling over the options of each kind of node.

Each option has a Beta distribution of how much a case with it is worth (rewards squeezed into [0, 1]), forgotten slowly, since coverage runs out. At a node a worth is
drawn for each open option, and one is chosen in proportion to worth times weight. Thompson, Biometrika 25 (1933); discounting: Raj & Kalyani, arXiv 1707.09727.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np

from truekernel.errors import RunDirectoryError
from truekernel.fuzz.choices import VOCABULARY, Node, Options
from truekernel.fuzz.policies.encoding import LEFT_TO_CHANCE
from truekernel.fuzz.policies.rewards import Reward, Settings
from truekernel.fuzz.policy import State, Vocabularies
from truekernel.fuzz.records import Feedback

FILE = "thompson.json"
MOST_DRAWN = 64
CANDIDATES = 32
"""Of more than `MOST_DRAWN` options, such as operators, so many are drawn by weight, and the bandit chooses among those: worth is drawn for few."""


class Thompson:
    """See the module. Settings: `power`: how strongly worth counts against weight; `memory`: cases with an option after which half of what they taught is forgotten;
    `scale`: the reward that is worth 0.63; and the constants of the reward."""

    name = "thompson"

    def __init__(self, space: Vocabularies, seed: int, settings: Settings) -> None:
        self._random, self._dice = np.random.default_rng(seed), random.Random(seed)
        self._reward = Reward(settings.rewards())
        self._power = settings.get("power", 2.0, 0.0, 50.0)
        self._kept = 0.5 ** (1.0 / settings.get("memory", 200.0, 1.0, 1e9))
        self._scale = settings.get("scale", 4.0, 1e-6, 1e6)
        kinds: tuple[str, ...] = ("family", "operator", *VOCABULARY)
        self._names = {kind: list(space.vocabulary(kind)) for kind in kinds}
        self._arms: dict[str, np.ndarray] = {}
        self._worth, self._cases = 0.05, 0
        self._chosen: list[tuple[str, int]] = []
        self._state: State | None = None

    def choose(self, node: Node, options: Options, state: State) -> int:
        """See `policy.Policy.choose`."""
        if not state.choices:
            self._chosen.clear()
        self._state = state
        if node.kind in LEFT_TO_CHANCE and node.kind != "form":
            return self._dice.choices(options.open, options.weights)[0]
        if len(options.open) == 1:
            return options.open[0]
        key = self._key(node, state)
        open_, weights = options.open, options.weights
        if len(open_) > MOST_DRAWN:
            open_ = tuple(self._dice.choices(open_, weights, k=CANDIDATES))
            weights = (1.0,) * CANDIDATES
        arms = self._table(key, node.kind)[:, open_]
        # An option without a history is thought to be worth a little more than the average case.
        prior = min(max(1.5 * self._worth, 0.01), 0.9)
        drawn = self._random.beta(arms[0] + 2 * prior, arms[1] + 2 * (1 - prior))
        scores = (np.array(weights) * drawn**self._power + 1e-300).cumsum()
        place = int(np.searchsorted(scores, self._dice.random() * scores[-1], side="right"))
        chosen = open_[min(place, len(open_) - 1)]
        self._chosen.append((key, chosen))
        return chosen

    def learn(self, feedback: Feedback) -> None:
        """See `policy.Policy.learn`."""
        operators = tuple(call.operator for call in self._state.calls) if self._state else ()
        worth = 1.0 - float(np.exp(-max(self._reward.of(feedback, operators), 0.0) / self._scale))
        self._cases += 1
        self._worth += (worth - self._worth) / min(self._cases, 500)
        for key, option in self._chosen:
            arm = self._arms[key][:, option]
            arm *= self._kept
            arm += (worth, 1.0 - worth)
        self._chosen.clear()

    def save(self, directory: Path) -> None:
        """Options are kept by name, so that another version of the library can go on."""
        arms: dict[str, dict[str, list[float]]] = {}
        for key, table in self._arms.items():
            names = self._names[key.split("|")[0]]
            arms[key] = {names[place]: table[:, place].tolist() for place in np.flatnonzero(table.sum(0))}
        text = json.dumps({"arms": arms, "worth": self._worth, "cases": self._cases})
        (directory / FILE).write_text(text, encoding="utf-8")

    def load(self, directory: Path) -> None:
        """See `policy.Policy.load`."""
        path = directory / FILE
        try:
            document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            self._worth, self._cases = float(document["worth"]), int(document["cases"])
            for key, arms in document["arms"].items():
                kind = key.split("|")[0]
                places = {name: place for place, name in enumerate(self._names[kind])}
                table = self._table(key, kind)
                for name, counts in arms.items():
                    if name in places:
                        table[:, places[name]] = counts
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunDirectoryError(f"{path} holds no saved bandit: start without it") from error

    def _key(self, node: Node, state: State) -> str:
        # What a form is differs from operator to operator; all else means the same everywhere.
        return f"form|{state.operator.name}" if node.kind == "form" and state.operator else node.kind

    def _table(self, key: str, kind: str) -> np.ndarray:
        if key not in self._arms:
            self._arms[key] = np.zeros((2, len(self._names[kind])))
        return self._arms[key]
