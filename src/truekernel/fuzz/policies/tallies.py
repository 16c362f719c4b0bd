"""What a policy remembers of each operator, and ways to pick one of many."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truekernel.fuzz.choices import Options
from truekernel.fuzz.records import Feedback

WAYS = ("weighted", "untried", "worthy", "failing", "stale", "refused")
"""Ways to pick an operator of a family: by the space's weights; among those tried least; by what cases were worth; among those that failed; among those whose
last try is longest ago; among those that refuse most. What a learner chooses instead of one of thousands of names, of each of which it sees a few cases."""

WAY_WEIGHTS = (0.7, 0.1, 0.1, 0.03, 0.04, 0.03)

FIGURES = ("tried", "valid", "worth", "failures", "news", "since")


@dataclass(slots=True)
class Tally:
    """Of one operator. `worth`: of its cases, forgotten slowly. `news`, `last`: cases that reached something new; number of the run's case that tried it last."""

    tried: int = 0
    valid: int = 0
    failures: int = 0
    news: int = 0
    worth: float = 0.0
    last: int = 0


class Tallies:
    """Tallies of all operators of a space, by their place in it."""

    def __init__(self, names: Sequence[str]) -> None:
        self._places = {name: place for place, name in enumerate(names)}
        self._names = list(names)
        self._of: dict[int, Tally] = {}
        self.cases = 0
        self.mean = 0.0

    def learn(self, operators: Sequence[str], feedback: Feedback, worth: float) -> None:
        """A case that called `operators` was worth `worth`."""
        self.cases += 1
        self.mean += (worth - self.mean) / min(self.cases, 300)
        news = bool(feedback.functions or feedback.overloads or feedback.lines or feedback.kernels)
        for name in set(operators):
            place = self._places.get(name)
            if place is None:
                continue
            tally = self._of.setdefault(place, Tally())
            tally.tried += 1
            tally.valid += feedback.outcome.kind != "refused"
            tally.failures += bool(feedback.outcome.failed)
            tally.news += news
            tally.worth += (worth - tally.worth) / min(tally.tried, 20)
            tally.last = self.cases

    def figures(self, name: str) -> tuple[float, ...]:
        """`FIGURES` of an operator, each about 0 to 1."""
        tally = self._of.get(self._places.get(name, -1))
        if tally is None:
            return (0.0, 0.5, 0.1, 0.0, 0.0, 1.0)
        since = math.log1p(self.cases - tally.last) / 10
        shares = tally.valid / tally.tried, math.tanh(tally.worth / 8), math.log1p(tally.failures) / 5
        return (math.log1p(tally.tried) / 8, *shares, tally.news / tally.tried, since)

    def ways(self, options: Options) -> tuple[bool, ...]:
        """Which of `WAYS` pick something else than the first."""
        known = [self._of[place] for place in options.open if place in self._of]
        untried = len(known) < len(options.open)
        return (
            True,
            len(options.open) > 1 and (untried or len({tally.tried for tally in known}) > 1),
            bool(known),
            any(tally.failures for tally in known),
            bool(known),
            any(tally.valid < tally.tried for tally in known),
        )

    def pick(self, way: str, options: Options, random: np.random.Generator) -> int:
        """An element of `options.open`."""
        weights = np.array(options.weights)
        if way != "weighted":
            weights = weights**0.5 * self._factors(way, options.open)
        total = weights.cumsum()
        if not total[-1] > 0:
            return options.open[int(random.integers(len(weights)))]
        place = int(np.searchsorted(total, random.random() * total[-1], side="right"))
        return options.open[min(place, len(weights) - 1)]

    def _factors(self, way: str, open_: Sequence[int]) -> np.ndarray:
        nobody = Tally()
        tallies = [self._of.get(place, nobody) for place in open_]
        if way == "untried":
            tried = np.array([tally.tried for tally in tallies])
            return (tried == tried.min()).astype(float)
        if way == "worthy":
            return np.array([math.exp(min(tally.worth - self.mean, 20.0)) if tally.tried else 1.0 for tally in tallies])
        if way == "failing":
            return np.array([tally.failures / max(tally.tried, 1) for tally in tallies])
        if way == "stale":
            last = np.array([tally.last if tally.tried else self.cases for tally in tallies])
            return (last <= np.quantile(last, 0.1)).astype(float)
        return np.array([1.0 - tally.valid / tally.tried if tally.tried else 0.0 for tally in tallies])

    def document(self) -> dict[str, list[float]]:
        """As JSON, by name."""
        return {
            self._names[place]: [tally.tried, tally.valid, tally.failures, tally.news, tally.worth, tally.last]
            for place, tally in self._of.items()
        }

    def load(self, document: Mapping[str, Sequence[float]], cases: int, mean: float) -> None:
        """Go on from `document`; operators that are gone are left out."""
        self.cases, self.mean = cases, mean
        for name, (tried, valid, failures, news, worth, last) in document.items():
            place = self._places.get(name)
            if place is not None:
                self._of[place] = Tally(int(tried), int(valid), int(failures), int(news), float(worth), int(last))
