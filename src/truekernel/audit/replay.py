"""Execute a stored mutant's witness again, alone, and compare with what the run recorded."""

from __future__ import annotations

from pathlib import Path

from truekernel import checkers as checker_room
from truekernel import corpus, mutation
from truekernel.audit.records import MutantRecord, Witness
from truekernel.audit.setup import ProblemSetup, set_up
from truekernel.audit.summarise import finite
from truekernel.audit.summary import ReplayResult
from truekernel.audit.trials import states, worst_element
from truekernel.errors import BadInputError, RunDirectoryError, UnknownNameError
from truekernel.execution import simt
from truekernel.model import Mutant
from truekernel.store import Store
from truekernel.trial.witness import proves_wrong


def replay(run_dir: Path, mutant_id: str) -> ReplayResult:
    """Compile a mutant alone and run its witness case. `mutant_id` may be shortened to a unique beginning.

    Raises UnknownNameError, BadInputError for a mutant that has no witness, RunDirectoryError when rules or programs have changed since.
    """
    record, meta = _stored(run_dir, mutant_id)
    witness = record.witness
    if witness is None:
        what = (
            f"its status is {record.status}" if record.status != "ran" else f"it is quarantined ({record.quarantine})"
        )
        raise BadInputError(f"mutant {record.id} has no witness to replay: {what}")
    mutant = _made_again(record)
    program = corpus.programs()[record.program]
    with set_up(corpus.problems()[record.problem], [program], checker_room.resolve(meta)) as setup:
        return _replayed(setup, record, mutant, witness)


def _stored(run_dir: Path, mutant_id: str) -> tuple[MutantRecord, list[str]]:
    store = Store.open(run_dir)
    try:
        ids = store.keys("mutant")
        hits = sorted(i for i in ids if i.startswith(mutant_id))
        if not hits:
            raise UnknownNameError("mutant", mutant_id, sorted(ids))
        if len(hits) > 1 and mutant_id not in hits:
            raise BadInputError(f"mutant '{mutant_id}' is ambiguous: {', '.join(hits[:5])}")
        return MutantRecord.model_validate(store.get("mutant", hits[0])), store.meta()["checkers"]
    finally:
        store.close()


def _made_again(record: MutantRecord) -> Mutant:
    program = corpus.programs().get(record.program)
    rules = [rule for pair in record.made_by if (rule := mutation.rules().get(pair.rule)) is not None]
    made = {m.id: m for m in mutation.mutants(program, rules)} if program is not None else {}
    if record.id not in made:
        raise RunDirectoryError(
            f"mutant {record.id} can't be made again: program '{record.program}' or its rule has changed since the run; run the audit again"
        )
    return made[record.id]


def _replayed(setup: ProblemSetup, record: MutantRecord, mutant: Mutant, witness: Witness) -> ReplayResult:
    plans = setup.stage.plans(mutant.source, mutant.plan_source)
    library = simt.compile_single(mutant.source, plans.kernels, simt.Options())
    if isinstance(library, simt.CompileFailure):
        raise RunDirectoryError(f"mutant {record.id} does not compile here: {library}")
    request = next(
        (case_id, c)
        for case_id, c in setup.witness_requests
        if case_id == witness.case_id and c.schedule == witness.schedule and c.schedule_seed == witness.schedule_seed
    )
    ((execution, tensors),) = setup.stage.outputs(library, 0, plans, [request])
    honest = setup.ranges[request]
    why = proves_wrong(execution, honest)
    same = execution.outcome.status == witness.status and execution.output_hash == witness.output_hash
    case = setup.stage.prepared[request[0]].case
    executions = setup.stage.execute(library, 0, plans, setup.requests)
    verdicts = states(setup, record.model_copy(update={"executions": tuple(executions)}))
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
        element=None if tensors is None else worst_element(tensors, setup.stage.prepared[case.id].expected),
        verdicts=dict(verdicts),
        message="" if same else "outcome or output bits are not those of the run",
    )
