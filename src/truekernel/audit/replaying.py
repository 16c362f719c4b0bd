"""Execute a stored mutant's witness again, alone, and compare with what the run recorded."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from truekernel import checkers as checker_room
from truekernel import mutation
from truekernel.audit.records import MutantRecord, ProblemRecord
from truekernel.audit.stored import check_version, read_record, sound, stored_problem, stored_programs
from truekernel.audit.summarising import finite
from truekernel.audit.summary import ReplayResult
from truekernel.audit.trials import worst_element
from truekernel.audit.verdicts import Bench
from truekernel.errors import BadInputError, RunDirectoryError, UnknownNameError
from truekernel.model import Configuration, Mutant, Program
from truekernel.store import Store
from truekernel.trial.devices import Source, device
from truekernel.trial.stage import Stage
from truekernel.trial.witness import HonestRange, proves_wrong


def replay(run_dir: Path, mutant_id: str) -> ReplayResult:
    """Compile a mutant alone and run its witness case. `mutant_id` may be shortened to a unique beginning.

    Raises UnknownNameError, BadInputError for a mutant that has no witness, RunDirectoryError when rules or programs have changed since.
    """
    store = Store.open(run_dir)
    try:
        check_version(store)
        record = _record(store, mutant_id)
        problem = read_record(store, ProblemRecord, "problem", record.problem)
        meta = store.meta()
        programs = stored_programs(store)
        posed = stored_problem(store, record.problem)
        device_name = meta["device"]
        checkers = checker_room.resolve(meta["checkers"])
    finally:
        store.close()
    witness = record.witness
    if witness is None:
        what = f"it is {record.status}" if record.status != "ran" else f"it is quarantined ({record.quarantine})"
        raise BadInputError(f"mutant {record.id} has no witness to replay: {what}")
    mutant = _made_again(record, programs)
    with sound(run_dir):
        bench = Bench(checkers, {record.problem: problem})
        case = bench.case(record.problem, witness.case_id)
    request = (case.id, Configuration(witness.schedule, witness.schedule_seed, witness.fill))
    where = device(device_name)
    with contextlib.closing(where.runner()) as server:
        stage = Stage(server, posed, [(case, None)], ())
        plans = stage.plans(mutant.source, mutant.plan_source)
        (library,) = where.alone([Source(mutant.source, plans.kernels)])
        if isinstance(library, str):
            raise RunDirectoryError(f"mutant {record.id} does not compile here: {library}")
        ((execution, tensors),) = stage.outputs(library, 0, plans, [request])
        library.close()
        element = None if tensors is None else worst_element(tensors, stage.prepared[case.id].expected)
    honest = HonestRange(witness.honest_worst, witness.honest_nonfinite)
    why = proves_wrong(execution, honest)
    same = execution.outcome.status == witness.status and execution.output_hash == witness.output_hash
    verdicts = {name: bench.verdict(record, name) for name in checkers}
    return ReplayResult(
        mutant=record.id,
        program=record.program,
        problem=record.problem,
        diff=record.diff,
        case_id=case.id,
        axes=case.lengths,
        recipe=case.recipe,
        seed=case.seed,
        schedule=witness.schedule,
        schedule_seed=witness.schedule_seed,
        stored=f"{witness.status}: {witness.why}",
        replayed=f"{execution.outcome.status}: {why or 'nothing proves it wrong'}",
        same=same,
        wrong=why is not None,
        worst=finite(execution.statistics.get("worst")),
        honest_worst=honest.worst,
        element=element,
        verdicts={name: f"{v.state}s: {v.why}" if v.why else f"{v.state}s" for name, v in verdicts.items()},
        message="" if same else "outcome or output bits are not those of the run",
    )


def _record(store: Store, mutant_id: str) -> MutantRecord:
    if not mutant_id:
        raise BadInputError("an empty id: give that of a mutant, as reports do")
    ids = store.keys("mutant")
    hits = sorted(i for i in ids if i.startswith(mutant_id))
    if not hits:
        shown = mutant_id if len(mutant_id) <= 40 else f"{mutant_id[:40]}..."
        raise UnknownNameError("mutant", shown, sorted(ids))
    if len(hits) > 1 and mutant_id not in hits:
        raise BadInputError(
            f"mutant '{mutant_id}' is the beginning of {len(hits)} ids, such as {', '.join(hits[:5])}: give more of it"
        )
    return read_record(store, MutantRecord, "mutant", hits[0])


def _made_again(record: MutantRecord, programs: Mapping[str, Program]) -> Mutant:
    program = programs.get(record.program)
    rules = [rule for pair in record.made_by if (rule := mutation.rules().get(pair.rule)) is not None]
    made = {m.id: m for m in mutation.mutants(program, rules)} if program is not None else {}
    if record.id not in made:
        raise RunDirectoryError(
            f"mutant {record.id} can't be made again: program '{record.program}' or its rule has changed since the run; run the audit again"
        )
    return made[record.id]
