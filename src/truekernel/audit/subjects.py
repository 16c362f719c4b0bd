"""Find a program, a mutant or an honest variant by its name, from the corpus and from a run."""

from __future__ import annotations

from pathlib import Path

from truekernel import corpus, mutation
from truekernel.audit.records import HonestRecord, MutantRecord
from truekernel.audit.stored import read_record
from truekernel.errors import BadInputError, RunDirectoryError, UnknownNameError
from truekernel.export import Subject
from truekernel.model import Mutant, Program
from truekernel.store import Store
from truekernel.trial.honest import honest_variants


def find_subject(name: str, run: Path | None = None) -> Subject:
    """What `name` stands for: a program of the corpus, or the id of a mutant or an honest variant of a run.

    Ids may be shortened to a unique beginning of six digits or more. Without a run, honest variants and mutants of all programs are looked through. Raises UnknownNameError, BadInputError
    for an ambiguous beginning, RunDirectoryError when rules or programs have changed since the run.
    """
    programs = corpus.programs()
    if name in programs:
        return Subject.of(programs[name])
    if len(name) < 6:
        raise UnknownNameError("program, mutant or honest variant", name, list(programs))
    return _from_run(name, run) if run is not None else _from_corpus(name)


def _from_run(name: str, run: Path) -> Subject:
    store = Store.open(run)
    try:
        hits = [
            (kind, key) for kind in ("mutant", "honest") for key in sorted(store.keys(kind)) if key.startswith(name)
        ]
        if not hits:
            raise UnknownNameError("mutant or honest variant", name, [*store.keys("mutant"), *store.keys("honest")])
        if len(hits) > 1 and name not in [key for _, key in hits]:
            raise BadInputError(f"'{name}' is ambiguous: {', '.join(key for _, key in hits[:5])}")
        kind, key = next((hit for hit in hits if hit[1] == name), hits[0])
        shape: type[MutantRecord | HonestRecord] = MutantRecord if kind == "mutant" else HonestRecord
        record = read_record(store, shape, kind, key)
    finally:
        store.close()
    program = corpus.programs().get(record.program)
    if program is None:
        raise BadInputError(f"'{key}' is no program of ours ({record.program}): there is nothing to export")
    names = [pair.rule for pair in record.made_by] if isinstance(record, MutantRecord) else [record.rule]
    known = mutation.rules() | mutation.benign_rules()
    made = {m.id: m for m in mutation.mutants(program, [known[rule] for rule in names if rule in known])}
    if key not in made:
        raise RunDirectoryError(
            f"'{key}' can't be made again: program '{program.name}' or its rule has changed since the run"
        )
    return _subject(program, made[key], "mutant" if kind == "mutant" else "honest variant")


def _from_corpus(name: str) -> Subject:
    found: dict[str, Subject] = {}
    for program in corpus.programs().values():
        for variant in honest_variants([program]):
            if variant.id.startswith(name):
                title = f"honest variant {variant.id} of program {program.name} ({variant.rule or 'as written'})"
                found[variant.id] = Subject(
                    variant.id, title, program.problem, variant.source, variant.plan_source, variant.flags
                )
        for mutant in mutation.mutants(program, mutation.rules().values()):
            if mutant.id.startswith(name):
                found[mutant.id] = _subject(program, mutant, "mutant")
    if not found:
        raise UnknownNameError("program, mutant or honest variant", name, list(corpus.programs()))
    if len(found) > 1 and name not in found:
        raise BadInputError(f"'{name}' is ambiguous: {', '.join(list(found)[:5])}")
    return found.get(name) or next(iter(found.values()))


def _subject(program: Program, mutant: Mutant, what: str) -> Subject:
    made = mutant.made_by[0]
    title = f"{what} {mutant.id} of program {program.name}: {made.rule} at line {made.site.line}"
    return Subject(mutant.id, title, program.problem, mutant.source, mutant.plan_source, mutant.flags)
