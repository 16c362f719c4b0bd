"""Problems of the corpus bound to a user's checkout of KernelBench, each checked on inputs of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from truekernel import corpus
from truekernel.cases import make_inputs
from truekernel.corpus.kernelbench import Loaded, load
from truekernel.corpus.kernelbench.binding import NotBoundError, bound_problems, verify
from truekernel.model import Case, Problem

CHECK_SEED = 1


@dataclass(frozen=True, slots=True)
class Bindings:
    """`bound`: problems by our name, whose reference and inputs are the checkout's; `failed`: why others are not, by our name."""

    loaded: Loaded
    bound: dict[str, Problem]
    failed: dict[str, str]


def bindings(root: str | Path, *, levels: Iterable[int] = ()) -> Bindings:
    """Load what a checkout has and bind our problems to it: both references must agree in float64 on one case at audit lengths.

    Raises BadInputError when `root` is no checkout.
    """
    return bind_loaded(load(root, levels=levels))


def bound_only(root: str | Path) -> Bindings:
    """The same, reading only the problem files that programs of ours solve."""
    return bind_loaded(load(root, ids=[p.kernelbench for p in corpus.problems().values() if p.kernelbench]))


def bind_loaded(loaded: Loaded) -> Bindings:
    """Bind our problems to what was loaded."""
    ours = corpus.problems()
    bound, failed = bound_problems(ours, loaded.adapted)
    refused = {refusal.file.id: refusal.why for refusal in loaded.refused}
    failed |= {name: refused[p.kernelbench] for name, p in ours.items() if p.kernelbench in refused}
    for name, problem in list(bound.items()):
        axes = problem.audit_axes()
        try:
            verify(problem, ours[name], make_inputs(problem, Case.of(name, axes, "official", CHECK_SEED)), axes)
        except NotBoundError as error:
            failed[name] = str(error)
            del bound[name]
    return Bindings(loaded, bound, failed)
