"""CUDA source plus a launch plan that solves a problem."""

from __future__ import annotations

from dataclasses import dataclass


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
