"""The candidates of a comparison as they were given: which files, for which problem, in which precision."""

from __future__ import annotations

import ast
import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from truekernel.errors import BadInputError
from truekernel.judge.candidates import Candidate, load_candidate, read_text
from truekernel.model import Problem

LABELS = string.ascii_uppercase
STATED = "PROBLEM"


@dataclass(frozen=True, slots=True)
class HandedIn:
    """`label`: A, B, ... in the order given; `given`: the words of the call; `declared`: the precision that it says it computes in, "" for the problem's own."""

    label: str
    given: str
    candidate: Candidate
    declared: str = ""


def check_words(given: Sequence[str]) -> None:
    """Raises BadInputError for fewer than two candidates, more than there are letters, or one that is given twice."""
    if len(given) < 2:
        raise BadInputError(f"{len(given)} candidate to compare: give two or more")
    if len(given) > len(LABELS):
        raise BadInputError(f"{len(given)} candidates: give {len(LABELS)} at most")
    seen: dict[tuple[str, str], str] = {}
    for words in given:
        file, _, attribute = words.partition(":") if ".py:" in words else (words, "", "")
        before = seen.setdefault((_place(file), attribute), words)
        if before is not words:
            raise BadInputError(f"candidate {words} is given twice: give two different ones")


def _place(file: str) -> str:
    """Where a file lies, by whatever name; as given where that can't be told, which reading it then says."""
    try:
        return str(Path(file).resolve())
    except (OSError, RuntimeError, ValueError):
        return file


def stated_problem(given: Sequence[str]) -> str:
    """The problem that launch plans beside .cu files name in their constant PROBLEM. Raises BadInputError where none does, or they name several."""
    found = {name for words in given if (name := _stated(Path(words)))}
    if len(found) != 1:
        why = f"the launch plans name {' and '.join(sorted(found))}" if found else "no launch plan names one"
        raise BadInputError(f"what must they compute? {why}: give --problem")
    return found.pop()


def _stated(file: Path) -> str:
    if file.suffix != ".cu":
        return ""
    try:
        tree = ast.parse(read_text(file.with_suffix(".py")))
    except (BadInputError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == STATED for target in node.targets)
            and isinstance(node.value, ast.Constant)
        ):
            return str(node.value.value)
    return ""


def hand_in(given: Sequence[str], problem: Problem, precisions: Sequence[str] = ()) -> list[HandedIn]:
    """Read the candidates. `precisions`: LABEL=PRECISION. Raises BadInputError, SourceError."""
    check_words(given)
    labels = LABELS[: len(given)]
    declared: dict[str, str] = {}
    for words in precisions:
        label, equals, name = words.partition("=")
        if not equals or not name or label not in list(labels):
            raise BadInputError(f"--precision {words}: write LABEL=PRECISION, with a label of {', '.join(labels)}")
        declared[label] = name
    return [
        HandedIn(label, words, load_candidate(words, problem), declared.get(label, ""))
        for label, words in zip(labels, given, strict=True)
    ]
