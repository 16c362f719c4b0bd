"""Run the attacks and their twins through somebody else's evaluator, which is a command as for `--checker-cmd`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from truekernel.checkers.checker import Judgement
from truekernel.checkers.external_command import load_command
from truekernel.errors import BadInputError, GpuMissingError
from truekernel.execution import cuda
from truekernel.export import Subject, model, model_new, model_new_of
from truekernel.judge.candidates import Candidate, load_candidate
from truekernel.judge.gauntlet.catalogue import Attack
from truekernel.judge.posing import pose
from truekernel.model import Problem

ROLES = ("cheat", "twin")


@dataclass(frozen=True, slots=True)
class Asked:
    """What an evaluator said of an attack and of its twin: accept, reject, or undetermined where it broke."""

    attack: Attack
    cheat: Judgement
    twin: Judgement

    @property
    def caught(self) -> bool:
        """Whether the cheat was rejected."""
        return self.cheat.verdict == "reject"

    @property
    def fooled(self) -> bool:
        """Whether the cheat was accepted."""
        return self.cheat.verdict == "accept"

    @property
    def cleared(self) -> bool:
        """Whether the twin was accepted."""
        return self.twin.verdict == "accept"

    def document(self) -> dict[str, object]:
        """As JSON types."""
        return {
            **self.attack.document(),
            **{
                role: {"verdict": said.verdict, "why": said.why}
                for role, said in zip(ROLES, (self.cheat, self.twin), strict=True)
            },
        }


def run_against(command: str, attacks: Sequence[Attack], done: Callable[[Asked], None] | None = None) -> list[Asked]:
    """Ask a command, named as `checkers.command_name` names it, about all attacks and twins: as files with `ModelNew`, beside the problem's reference, at audit lengths. `done` is called after each.

    The evaluator is the user's own and runs as it always does: nothing here keeps an attack from what that process may do. Raises BadInputError for a command that judges outputs instead of files.
    """
    try:
        checker = load_command(command)
    except BadInputError as error:
        raise BadInputError(str(error).replace("--checker-cmd", "--against")) from None
    if not checker.needs_files:
        raise BadInputError("--against: attacks are files: write {reference} and {candidate} in the command")
    host = _host()
    found = []
    for attack in attacks:
        problem = pose(attack.problem).problem
        said = []
        for role in ROLES:
            with tempfile.TemporaryDirectory(prefix="truekernel-") as folder:
                files = {name: Path(folder, f"{name}.py") for name in ("reference", "candidate")}
                axes = problem.audit_axes()
                files["reference"].write_text(model(problem, axes), encoding="utf-8")
                candidate = load_candidate(attack.file(role), problem)
                files["candidate"].write_text(as_model(candidate, problem, host), encoding="utf-8")
                said.append(checker.ask({**files, "problem": problem.name, "id": f"{attack.name}-{role}"}))
        found.append(Asked(attack, *said))
        if done is not None:
            done(found[-1])
    return found


def as_model(candidate: Candidate, problem: Problem, host: str) -> str:
    """Text of a file with `ModelNew`. `host`: where CUDA runs, "nvrtc" or "cpu"."""
    axes = problem.audit_axes()
    if not candidate.is_cuda:
        return model_new_of(candidate.text, candidate.attribute, problem, axes)
    subject = Subject(candidate.name, candidate.name, problem.name, candidate.source, candidate.plan)
    return model_new(subject, problem, axes, host=host)


def _host() -> str:
    try:
        cuda.device_info()
    except GpuMissingError:
        return "cpu"
    return "nvrtc"
