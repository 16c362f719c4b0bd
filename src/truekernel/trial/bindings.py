"""Problems of the corpus bound to a user's checkout of KernelBench, each checked on inputs of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from truekernel import corpus
from truekernel.cases import make_inputs
from truekernel.corpus.kernelbench import Loaded, load
from truekernel.corpus.kernelbench.adapting import adapt
from truekernel.corpus.kernelbench.binding import NotBoundError, bind, bound_problems, verify
from truekernel.corpus.kernelbench.checkout import ProblemFile
from truekernel.corpus.kernelbench.description import Description
from truekernel.errors import BadInputError
from truekernel.model import Axes, Case, Problem

CHECK_SEED = 1


@dataclass(frozen=True, slots=True)
class Bindings:
    """`bound`: problems by our name, whose reference and inputs are the checkout's; `failed`: why others are not, by our name; `fixed`: axes of bound problems that keep
    their audit length, since the benchmark's reference has a constant in their place (a number of groups, say)."""

    loaded: Loaded
    bound: dict[str, Problem]
    failed: dict[str, str]
    fixed: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def why_not(self, name: str) -> str:
        """Why a problem of ours is not bound, in words."""
        theirs = corpus.problems()[name].kernelbench
        return self.failed.get(name) or (
            f"the checkout has no {theirs}" if theirs else "KernelBench has no such problem"
        )

    def documents(self) -> dict[str, dict[str, Any]]:
        """For each bound problem what `rebound` needs to bind it again in another process, or later: its file, a digest of that, and what was found in it."""
        found: dict[str, dict[str, Any]] = {}
        for name in self.bound:
            theirs = self.loaded.adapted[corpus.problems()[name].kernelbench]
            file = theirs.file
            found[name] = {
                "path": str(file.path.resolve()),
                "level": file.level,
                "number": file.number,
                "title": file.title,
                "digest": _digest(file.path),
                "found": theirs.description.model_dump_json(),
                "fixed": self.fixed.get(name, ()),
            }
        return found


def bindings(root: str | Path, *, levels: Iterable[int] = ()) -> Bindings:
    """Load what a checkout has and bind our problems to it: both references must agree in float64 on one case at audit lengths, and axes that
    only ours has are fixed.

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
    fixed: dict[str, tuple[str, ...]] = {}
    for name, problem in list(bound.items()):
        axes = problem.audit_axes()
        try:
            _agree(problem, ours[name], axes)
        except NotBoundError as error:
            failed[name] = str(error)
            del bound[name]
            continue
        fixed[name] = tuple(
            axis for axis, spec in ours[name].axes.items() if spec.odd and not _follows(problem, ours[name], axis)
        )
        bound[name] = _with_fixed(problem, fixed[name])
    return Bindings(loaded, bound, failed, fixed)


def _agree(bound: Problem, ours: Problem, axes: Axes) -> None:
    """Raise NotBoundError unless both references agree on official inputs at these lengths."""
    verify(bound, ours, make_inputs(bound, Case.of(bound.name, axes, "official", CHECK_SEED)), axes)


def _follows(bound: Problem, ours: Problem, axis: str) -> bool:
    """Whether the benchmark's reference means the same as ours when this axis has another length."""
    try:
        _agree(bound, ours, {**ours.audit_axes(), axis: max(ours.axes[axis].odd)})
    except NotBoundError:
        return False
    return True


def _with_fixed(problem: Problem, names: Iterable[str]) -> Problem:
    return replace(problem, axes={**problem.axes, **{name: replace(problem.axes[name], odd=()) for name in names}})


def rebound(name: str, document: Mapping[str, Any] | None) -> Problem:
    """Our problem `name`; with its document (`Bindings.documents`), bound to that file. Raises BadInputError when the file is gone or has changed."""
    ours = corpus.problems()[name]
    if document is None:
        return ours
    file = ProblemFile(document["level"], document["number"], document["title"], Path(document["path"]))
    if _digest(file.path) != document["digest"]:
        raise BadInputError(
            f"{file.path}: gone or changed since the audit began: put it back, or start a new --run directory"
        )
    return _with_fixed(bind(ours, adapt(file, Description.model_validate_json(document["found"]))), document["fixed"])


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
