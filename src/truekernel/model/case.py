"""One concrete input."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Case:
    """Axis values + value recipe + seed: the same bits on every machine. `recipe`: name of a value recipe, with factors where it takes
    them ("uniform", "uniform*3", "normal+1000"). `id`: hash of the content, 16 hex digits."""

    problem: str
    axes: tuple[tuple[str, int], ...]
    recipe: str
    seed: int
    id: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        content = json.dumps([self.problem, self.axes, self.recipe, self.seed])
        object.__setattr__(self, "id", hashlib.sha256(content.encode()).hexdigest()[:16])

    @classmethod
    def of(cls, problem: str, axes: Mapping[str, int], recipe: str, seed: int) -> Case:
        """A case from a mapping of axis lengths."""
        return cls(problem, tuple(sorted(axes.items())), recipe, seed)

    @property
    def lengths(self) -> dict[str, int]:
        """Axis lengths by name."""
        return dict(self.axes)
