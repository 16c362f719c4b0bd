"""A whole checkout: what was adapted, what was refused and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from truekernel.corpus.kernelbench.adapting import Adapted, adapt
from truekernel.corpus.kernelbench.checkout import ProblemFile, problem_files
from truekernel.corpus.kernelbench.description import Answer
from truekernel.corpus.kernelbench.module_text import NotAProblemError
from truekernel.corpus.kernelbench.probing import SECONDS, probe


@dataclass(frozen=True, slots=True)
class Refused:
    """A problem file that can't be adapted, and why, in one line."""

    file: ProblemFile
    why: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """A checkout. `adapted`: by id ("level1/23"), in order."""

    adapted: dict[str, Adapted]
    refused: tuple[Refused, ...]


def load(root: str | Path, *, levels: Iterable[int] = (), ids: Iterable[str] = (), seconds: float = SECONDS) -> Loaded:
    """Adapt the problem files of a checkout of KernelBench. `levels`, `ids` ("level1/23"): only these, empty = all; `seconds`: limit of each file.

    Raises BadInputError when `root` is no checkout. A file that raises, hangs or has no form of ours is listed as refused; the others go on.
    """
    wanted = set(ids)
    files = [file for file in problem_files(root, levels) if not wanted or file.id in wanted]
    answers = probe([file.path for file in files], seconds=seconds)
    adapted: dict[str, Adapted] = {}
    refused: list[Refused] = []
    for file in files:
        result = _adapted(file, answers[file.path])
        if isinstance(result, Refused):
            refused.append(result)
        else:
            adapted[file.id] = result
    return Loaded(adapted, tuple(refused))


def _adapted(file: ProblemFile, answer: Answer) -> Adapted | Refused:
    if answer.found is None:
        return Refused(file, answer.refused)
    try:
        return adapt(file, answer.found)
    except NotAProblemError as error:
        return Refused(file, str(error))
