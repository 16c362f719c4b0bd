"""What a case was worth: coverage, failures by severity, outcomes not seen before; less what it cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from truekernel.errors import BadInputError, UnknownNameError
from truekernel.fuzz.records import Feedback, Severity


@dataclass(frozen=True, slots=True)
class RewardSettings:
    """Constants of the tiers. Those of coverage are for each doubling of one more than what was new of that kind: the hundredth new function says less than the first.

    `critical` to `low`: for a finding that is new in this run. `path`: for an outcome (kind, error and place in the library) that the operators of the case did not
    have before; `refusal`: the same for one that is a refusal, of which every operator has many. `refused`, `duplicate`: for a case that was refused, or made before.
    `second`: for each second that the case took.
    """

    functions: float = 1.0
    overloads: float = 0.5
    lines: float = 0.25
    kernels: float = 0.5
    critical: float = 20.0
    high: float = 12.0
    medium: float = 8.0
    low: float = 2.0
    path: float = 1.0
    refusal: float = 0.2
    refused: float = -0.5
    duplicate: float = -0.2
    second: float = -2.0


SETTINGS = tuple(part.name for part in fields(RewardSettings))


class Reward:
    """The reward of a run's cases, one after the other."""

    def __init__(self, settings: RewardSettings | None = None) -> None:
        self.settings = settings or RewardSettings()
        self._paths: set[tuple[str, ...]] = set()

    def of(self, feedback: Feedback, operators: tuple[str, ...]) -> float:
        """What a case was worth that called `operators`."""
        settings = self.settings
        if feedback.duplicate:
            return settings.duplicate
        value = settings.second * min(feedback.seconds, 10.0)
        for kind in ("functions", "overloads", "lines", "kernels"):
            value += getattr(settings, kind) * math.log2(1 + len(getattr(feedback, kind)))
        outcome = feedback.outcome
        if feedback.fresh:
            value += self._severe(feedback.severity)
        path = (*operators, outcome.kind, outcome.oracle, outcome.error, outcome.location)
        if path not in self._paths:
            self._paths.add(path)
            value += settings.refusal if outcome.kind == "refused" else settings.path
        if outcome.kind == "refused":
            value += settings.refused
        return value

    def _severe(self, severity: Severity | None) -> float:
        return float(getattr(self.settings, severity or "low"))


@dataclass(frozen=True, slots=True)
class Settings:
    """What a policy is made with: numbers by name. `taken`: names that the policy has asked for."""

    values: Mapping[str, float]
    taken: set[str] = field(default_factory=set)

    def get(self, name: str, default: float, low: float, high: float) -> float:
        """The setting `name`; raises BadInputError outside of [low, high]."""
        self.taken.add(name)
        value = float(self.values.get(name, default))
        if not low <= value <= high:
            raise BadInputError(f"policy setting {name}={value:g}: give a number from {low:g} to {high:g}")
        return value

    def rewards(self) -> RewardSettings:
        """Constants of the reward, each under its own name."""
        defaults = RewardSettings()
        return RewardSettings(**{name: self.get(name, getattr(defaults, name), -1e6, 1e6) for name in SETTINGS})

    def check(self) -> None:
        """Raise UnknownNameError for a setting that nobody has asked for."""
        for name in self.values:
            if name not in self.taken:
                raise UnknownNameError("policy setting", name, sorted(self.taken))
