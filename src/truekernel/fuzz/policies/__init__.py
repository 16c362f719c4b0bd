"""Policies: what to try next. `naive`, `uniform` and `opinfo` learn nothing (`unlearned`); `thompson` is a bandit; `agent` learns by reinforcement (`agent`)."""

from __future__ import annotations

from collections.abc import Mapping

from truekernel.errors import UnknownNameError
from truekernel.fuzz.policies.rewards import Settings
from truekernel.fuzz.policy import Policy, Vocabularies

NAMES = ("naive", "uniform", "opinfo", "thompson", "agent")


def make(name: str, space: Vocabularies, seed: int, settings: Mapping[str, float] | None = None) -> Policy:
    """A policy of `NAMES`, for one run in one process. `settings`: numbers by name, which the policies' docstrings list.

    Raises UnknownNameError for a name or setting that does not exist, BadInputError for a setting out of range or, for `agent`, missing packages.
    """
    given = Settings(dict(settings or {}))
    policy = _made(name, space, seed, given)
    given.check()
    return policy


def _made(name: str, space: Vocabularies, seed: int, settings: Settings) -> Policy:
    from truekernel.fuzz.policies import unlearned

    if name == "naive":
        return unlearned.Naive(seed)
    if name == "uniform":
        return unlearned.Uniform(seed, flat=settings.get("flat", 0, 0, 1) > 0)
    if name == "opinfo":
        return unlearned.OpInfo(seed)
    if name == "thompson":
        from truekernel.fuzz.policies.thompson import Thompson

        return Thompson(space, seed, settings)
    if name == "agent":
        from truekernel.fuzz.policies.agent import Agent

        return Agent(space, seed, settings)
    raise UnknownNameError("policy", name, list(NAMES))
