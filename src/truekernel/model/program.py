"""CUDA source plus a launch plan that solves a problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Program:
    """A program. `source`: text of the .cu file; `plan_source`: text of the .py file that defines `launch(run, inputs, axes)`.

    `traits`: what is special about it ("half", "atomics", "multi-kernel", "wmma", ...).
    `backends`: where it runs ("simt", "cuda").
    """

    name: str
    problem: str
    source: str
    plan_source: str
    traits: frozenset[str] = frozenset()
    backends: tuple[str, ...] = ("simt", "cuda")
    path: str = ""

    def document(self) -> dict[str, Any]:
        """As JSON types."""
        return {
            "name": self.name,
            "problem": self.problem,
            "source": self.source,
            "plan_source": self.plan_source,
            "traits": sorted(self.traits),
            "backends": list(self.backends),
            "path": self.path,
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Program:
        """The program of a `document`."""
        return cls(
            **{**document, "traits": frozenset(document["traits"]), "backends": tuple(document["backends"])},
        )
