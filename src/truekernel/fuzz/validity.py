"""Which choices an operator accepts, learned from what came of them.

Three levels lend each other evidence: an option anywhere, any change of one leaf of a form, and one option at that leaf. A refused call blames its choices
in proportion to how doubtful they were. Caution is held for each operator so that about the share `REFUSED_SHARE` of constrained calls is refused: less would
try nothing new, more would waste time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

REFUSED_SHARE = 0.04
STEP = 0.5
FIRST_CAUTION = 0.8
_PRIOR = (4.0, 1.0)


class Validity:
    """Counts of accepted and refused choices. A choice is (key of its leaf, kind, option)."""

    def __init__(self) -> None:
        self._anywhere: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._leaf: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._option: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._caution: dict[str, float] = {}

    def estimate(self, key: str, kind: str, option: str) -> float:
        """How likely a choice is accepted, in (0, 1)."""
        accepted, refused = self._anywhere[f"{kind}:{option}"]
        mean = (accepted + _PRIOR[0]) / (accepted + refused + sum(_PRIOR))
        accepted, refused = self._leaf[f"{key}|{kind}"]
        mean = (accepted + 4 * mean) / (accepted + refused + 4)
        accepted, refused = self._option[f"{key}|{kind}:{option}"]
        return (accepted + 3 * mean) / (accepted + refused + 3)

    def learn(self, choices: Iterable[tuple[str, str, str]], accepted: bool) -> None:
        """What came of a call with these choices."""
        choices = list(choices)
        doubts = [1.0 - self.estimate(*choice) for choice in choices]
        total = sum(doubts) or 1.0
        for (key, kind, option), doubt in zip(choices, doubts, strict=True):
            place, amount = (0, 1.0) if accepted else (1, doubt / total)
            for table, name in (
                (self._anywhere, f"{kind}:{option}"),
                (self._leaf, f"{key}|{kind}"),
                (self._option, f"{key}|{kind}:{option}"),
            ):
                table[name][place] += amount

    def caution(self, operator: str) -> float:
        """From 0, anything goes, to 1, only what samples have."""
        return self._caution.get(operator, FIRST_CAUTION)

    def adjust(self, operator: str, accepted: bool) -> None:
        """Move an operator's caution after a constrained call."""
        move = -REFUSED_SHARE if accepted else 1.0 - REFUSED_SHARE
        self._caution[operator] = min(1.0, max(0.0, self.caution(operator) + STEP * 0.5 * move))

    def document(self) -> dict[str, Any]:
        """All counts as JSON."""
        return {
            "anywhere": dict(self._anywhere),
            "leaf": dict(self._leaf),
            "option": dict(self._option),
            "caution": self._caution,
        }

    def load(self, document: Mapping[str, Any]) -> None:
        """Go on from `document`."""
        for table, name in ((self._anywhere, "anywhere"), (self._leaf, "leaf"), (self._option, "option")):
            table.update({key: list(counts) for key, counts in document[name].items()})
        self._caution.update(document["caution"])
