"""What a run directory holds, read and checked: a damaged run is refused in one line, never half understood."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from truekernel import mutation
from truekernel.audit.plan import known_programs
from truekernel.audit.records import HonestRecord, MutantRecord, ProblemRecord, Record
from truekernel.errors import RunDirectoryError
from truekernel.model import Problem, Program
from truekernel.store import Store, damaged
from truekernel.trial.bindings import rebound

R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as it was stored. `programs`: by name, those of the corpus and the user's own. `seconds`: of all its sessions."""

    meta: Mapping[str, Any]
    programs: Mapping[str, Program]
    problems: Mapping[str, ProblemRecord]
    honest: tuple[HonestRecord, ...]
    mutants: tuple[MutantRecord, ...]
    seconds: float


def read_run(run_dir: Path) -> StoredRun:
    """Read a run, finished or not. Raises RunDirectoryError when there is none, when another version made it, or when it is damaged."""
    with closing(Store.open(run_dir)) as store, sound(run_dir):
        check_version(store)
        meta = store.meta()
        run = StoredRun(
            meta=meta,
            programs=stored_programs(store),
            problems={key: read_record(store, ProblemRecord, "problem", key) for key in sorted(store.keys("problem"))},
            honest=tuple(record(run_dir, HonestRecord, "honest", k, v) for k, v in store.items("honest")),
            mutants=tuple(record(run_dir, MutantRecord, "mutant", k, v) for k, v in store.items("mutant")),
            seconds=float(sum(seconds for _, seconds in store.items("session"))),
        )
    _check(run, run_dir)
    return run


def check_version(store: Store) -> None:
    """Refuse a run that another version made: its rules, cases and verdicts may be others under the same names. Raises RunDirectoryError."""
    made_by, this = store.meta().get("tool_version"), version("truekernel")
    if made_by != this:
        raise RunDirectoryError(
            f"{store.directory} was made by version {made_by}, this is {this}: use that version, or start a new --run directory"
        )


def stored_programs(store: Store) -> dict[str, Program]:
    """Programs that a run knows, by name. Raises RunDirectoryError when its own are not described as they should be."""
    with sound(store.directory):
        return known_programs(store.meta()["own_programs"])


def stored_problem(store: Store, name: str) -> Problem:
    """A problem as the run knew it: ours, or bound to a file of a KernelBench checkout. Raises BadInputError when that file has changed since."""
    with sound(store.directory):
        checkout = store.meta().get("kernelbench")
        document = checkout["problems"][name] if checkout else None
    return rebound(name, document)


def read_record(store: Store, shape: type[R], kind: str, key: str) -> R:
    """One record that must be there. Raises RunDirectoryError when it is missing or of another shape."""
    return record(store.directory, shape, kind, key, store.get(kind, key))


def record(run_dir: Path, shape: type[R], kind: str, key: str, document: Any) -> R:
    """A stored document as a record. Raises RunDirectoryError when it is missing or of another shape."""
    if document is None:
        raise damaged(run_dir, f"no record of {kind} {key}")
    try:
        return shape.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise damaged(run_dir, f"{kind} {key}: {where}: {first['msg']}") from error


@contextmanager
def sound(run_dir: Path) -> Iterator[None]:
    """What goes wrong inside, reading values of another type or without a part, as a damaged run."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise damaged(run_dir, f"{type(error).__name__}: {error}") from error


def _check(run: StoredRun, run_dir: Path) -> None:
    """Whatever one record says of another must be there."""
    with sound(run_dir):
        names, counts = tuple(run.meta["programs"]), [run.meta[key] for key in ("generated", "merged", "chosen")]
    if not all(isinstance(count, int) for count in counts):
        raise damaged(run_dir, f"counts of mutants are {counts}")
    rules = {pair.rule for mutant in run.mutants for pair in mutant.made_by} - set(mutation.rules())
    unknown = [name for name in names if name not in run.programs] or sorted(rules)
    if unknown:
        raise RunDirectoryError(
            f"{run_dir} was made by another version (this one has no '{unknown[0]}'): start a new --run directory"
        )
    cases = {name: {case.id for case in problem.cases} for name, problem in run.problems.items()}
    for name, problem in run.problems.items():
        wanted = {entry.case_id for suite in problem.suites.values() for entry in suite}
        if problem.name != name or wanted - cases[name]:
            raise damaged(run_dir, f"problem {name} lacks cases of its own suites")
    subjects: list[MutantRecord | HonestRecord] = [*run.mutants, *run.honest]
    for subject in subjects:
        if subject.problem not in cases:
            raise damaged(run_dir, f"no record of problem {subject.problem}, which {subject.id} was tried on")
    for mutant in run.mutants:
        if mutant.witness is not None and mutant.witness.case_id not in cases[mutant.problem]:
            raise damaged(run_dir, f"no case {mutant.witness.case_id}, the witness of mutant {mutant.id}")
