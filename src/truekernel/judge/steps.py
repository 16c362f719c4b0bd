"""The cases of a check: our checker's own suite, with seeds that nobody knew before, and a few more that follow each other as a cheat would not expect."""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from truekernel.cases import make_inputs
from truekernel.cases.seeds import SUITE_END
from truekernel.checkers import Checker
from truekernel.errors import BadInputError
from truekernel.judge.secret_shapes import secret_shapes
from truekernel.model import Case, Problem
from truekernel.numerics import Expected, expect

FOLLOWED = 3
"""So many cases are followed by another with the same weights and lengths, whose inputs lie where the first ones lay..."""
NEAR = 2
"""... and so many of these by some in which a single element of each input differs from the one before, ..."""
PARTS = 4
"""... so that all of them together change one in every quarter: an answer that is kept for part of the contents shows, whichever part that is."""


OFFICIAL = "official"
"""Values that a problem's benchmark draws. The suite does without, since they show little; but a candidate may be wrong on them alone."""
ANYWHERE = ("normal&parameters", OFFICIAL, OFFICIAL)
"""Values at secret lengths."""


@dataclass(frozen=True, slots=True)
class Step:
    """One case put to a candidate. `inputs`: all tensors, in the problem's order; `expected`: what outputs are compared with; `follows`: the model and the places of the inputs are
    those of the step before, only the contents differ; `near`: and only by one element of each input; `weights`: of each weight instead, in a new model."""

    case: Case
    inputs: dict[str, torch.Tensor]
    expected: list[Expected]
    follows: bool = False
    near: bool = False
    weights: bool = False

    @property
    def label(self) -> str:
        """For people."""
        axes = ", ".join(f"{name} {length}" for name, length in self.case.axes)
        what = "one weight" if self.weights else "one element"
        again = f", {what} changed" if self.near else ", same place as before" if self.follows else ""
        return f"'{self.case.recipe}' with {axes}{again}"


def new_secret() -> str:
    """What all seeds of a check come from, 32 hex digits: drawn when the candidate is already handed in, kept from it, and told afterwards."""
    return secrets.token_hex(16)


def secret_seed(secret: str, number: int) -> int:
    """Seed of a case, in the range of suites."""
    found = hashlib.sha256(f"{secret}/{number}".encode()).digest()
    return int.from_bytes(found[:8], "little") % SUITE_END


def steps(problem: Problem, checker: Checker, secret: str) -> tuple[list[Step], list[str]]:
    """The suite's cases with seeds of `secret`, the followers, and cases of the values that its benchmark draws and at secret lengths; and why cases are left out, where a problem's reference can't be computed on them."""
    suite = [
        dataclasses.replace(case, seed=secret_seed(secret, number))
        for number, case in enumerate(checker.suite(problem))
    ]
    if not suite:
        raise BadInputError(f"'{problem.name}' has no case that could be judged")
    found: list[Step] = []
    notes: list[str] = []
    followed = _followed(suite)
    for number, case in enumerate(suite):
        try:
            inputs = make_inputs(problem, case)
            found.append(Step(case, inputs, expect(problem, inputs, case.lengths)))
        except (RuntimeError, ValueError, IndexError) as error:
            notes.append(_failed(case, error))
            continue
        if case in followed:
            found.append(_follower(problem, found[-1], secret_seed(secret, 1000 + number)))
            if (place := followed.index(case)) < NEAR and problem.make is None:
                for part in range(PARTS - 1 - place, -1, -NEAR):
                    seed = secret_seed(secret, 2000 + PARTS * number + part)
                    found.append(_near(problem, found[-1], seed, part))
                for part in range(place, PARTS, NEAR) if problem.parameters else ():
                    seed = secret_seed(secret, 3_000_000 + PARTS * number + part)
                    found.append(_near(problem, found[-1], seed, part, weights=True))
    elsewhere = secret_shapes(problem, secret, [case.lengths for case in suite])
    more = [(problem.audit_axes(), OFFICIAL), *zip(elsewhere, ANYWHERE, strict=False)]
    for number, (axes, recipe) in enumerate(more):
        case = Case.of(problem.name, axes, recipe, secret_seed(secret, 1_000_000 + number))
        try:
            inputs = make_inputs(problem, case)
            found.append(Step(case, inputs, expect(problem, inputs, case.lengths)))
        except (RuntimeError, ValueError, IndexError) as error:
            notes.append(_failed(case, error))
    if not found:
        raise BadInputError(f"'{problem.name}': {notes[0]}")
    return found, notes


def _failed(case: Case, error: Exception) -> str:
    text = " ".join(str(error).split())[:160]
    return f"'{case.recipe}' with {dict(case.axes)}: the reference fails on it ({text})"


def _followed(suite: Sequence[Case]) -> list[Case]:
    """The first cases of random values, each of another shape."""
    found: dict[tuple[tuple[str, int], ...], Case] = {}
    for case in suite:
        if case.recipe.startswith(("normal", "signed", "uniform")) and "@" not in case.recipe:
            found.setdefault(case.axes, case)
    return list(found.values())[:FOLLOWED]


def _follower(problem: Problem, before: Step, seed: int) -> Step:
    """The same weights and lengths, other inputs."""
    case = dataclasses.replace(before.case, seed=seed)
    fresh = make_inputs(problem, case)
    weights = {spec.name for spec in problem.parameters}
    inputs = {name: before.inputs[name] if name in weights else tensor for name, tensor in fresh.items()}
    return Step(case, inputs, expect(problem, inputs, case.lengths), follows=True)


def _near(problem: Problem, before: Step, seed: int, part: int, *, weights: bool = False) -> Step:
    """The step before with one element of each input, or of each weight, from another draw, in one of `PARTS` parts; where in it is secret too."""
    case = dataclasses.replace(before.case, seed=seed)
    fresh = make_inputs(problem, case)
    wanted = {spec.name for spec in (problem.parameters if weights else problem.inputs)}
    inputs = {}
    for name, tensor in before.inputs.items():
        changed = tensor
        if name in wanted and tensor.numel():
            changed = tensor.clone()
            start, end = (tensor.numel() * edge // PARTS for edge in (part, part + 1))
            place = start + secret_seed(f"{seed}", tensor.numel()) % max(1, end - start)
            changed.reshape(-1)[place] = fresh[name].reshape(-1)[place]
        inputs[name] = changed
    return Step(case, inputs, expect(problem, inputs, case.lengths), follows=True, near=True, weights=weights)
