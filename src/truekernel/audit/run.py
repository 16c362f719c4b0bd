"""Run an audit: plan it, give problems to workers, commit what they find, summarise."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from truekernel import checkers as checker_room
from truekernel import mutation
from truekernel.audit.options import AuditOptions, Progress
from truekernel.audit.plan import AuditPlan, make_plan
from truekernel.audit.records import HonestRecord, MutantRecord, ProblemRecord
from truekernel.audit.stored import check_version, record
from truekernel.audit.summarising import summarise
from truekernel.audit.summary import Summary
from truekernel.errors import RunDirectoryError
from truekernel.pool import LocalPool, Pool
from truekernel.store import Store, claimed, holds_run
from truekernel.trial.bindings import bound_only
from truekernel.trial.devices import device

_WORK = "truekernel.audit.worker:audit_problem"
_WARM_UP = 20
"""No time left is told before this many mutants are done: the first ones carry the set-up of their problems."""


def run_audit(
    options: AuditOptions, progress: Callable[[Progress], None] | None = None, pool: Pool | None = None
) -> Summary:
    """Run or resume an audit and return its summary.

    Everything found is on disk before it is counted. Raises BadInputError (unknown names, unusable run directory, a program that fails
    its gate), CompilerMissingError, MachineError.
    """
    tell = progress or (lambda _: None)
    begun = time.monotonic()
    checkers = checker_room.resolve(options.checkers)
    compiler = device(options.device).label()
    _check_run(options)
    tell(Progress("planning", 0, 0, 0.0, None))
    checkout = None if options.kernelbench is None else bound_only(options.kernelbench)
    plan = make_plan(options, checkout)
    bound = {} if checkout is None else checkout.documents()
    meta = _meta(options, plan, list(checkers), compiler, bound)
    store = _store(options, meta)
    with closing(store), claimed(options.run_dir):
        known = _known(store)
        jobs = _jobs(plan, options, list(checkers), known, store, bound)
        total, done = meta["chosen"], len(known)
        tell(Progress("executing", done, total, time.monotonic() - begun, None))
        for _, message in (pool or LocalPool(options.workers)).run(_WORK, jobs):
            store.put_many(message["kind"], message["records"])
            if message["kind"] == "mutant":
                done += len(message["records"])
            tell(_progress(done, len(known), total, time.monotonic() - begun))
        store.put_many("session", {str(len(store.keys("session"))): time.monotonic() - begun})
    tell(Progress("summarising", total, total, time.monotonic() - begun, 0.0))
    return summarise(options.run_dir)


def _known(store: Store) -> dict[str, str]:
    """Hashes of the mutants that are stored, by id; a record that no report could read is refused before more work is put beside it."""
    for kind, shape in (("problem", ProblemRecord), ("honest", HonestRecord)):
        for key, document in store.items(kind):
            record(store.directory, shape, kind, key, document)
    documents = store.items("mutant")
    return {
        key: record(store.directory, MutantRecord, "mutant", key, document).code_hash for key, document in documents
    }


def _progress(done: int, before: int, total: int, seconds: float) -> Progress:
    new = done - before
    left = seconds * (total - done) / new if new >= _WARM_UP else None
    return Progress("executing", done, total, seconds, left)


def _meta(
    options: AuditOptions, plan: AuditPlan, checkers: list[str], compiler: str, bound: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    pairs = sum(len(m.made_by) for mutants in plan.everything.values() for m in mutants)
    distinct = sum(len(mutants) for mutants in plan.everything.values())
    chosen = [m.id for mutants in plan.mutants.values() for m in mutants]
    own = [program.document() for program in options.programs]
    identity = [
        version("truekernel"),
        chosen,
        checkers,
        compiler,
        own,
        options.device,
        *(["sanitised"] if options.sanitise else []),
        *[document["digest"] for document in bound.values()],
    ]
    return {
        "tool_version": version("truekernel"),
        "options": {
            "checkers": list(options.checkers),
            "problems": list(options.problems),
            "programs": [program.name for program in options.programs],
            "rules": list(options.rules),
            "sample": options.sample,
            "seed": options.seed,
        },
        "checkers": checkers,
        "programs": [program.name for program in plan.programs],
        "own_programs": own,
        "kernelbench": None
        if options.kernelbench is None
        else {
            "root": str(options.kernelbench),
            "problems": {p.name: bound[p.name] for p in plan.problems},
            "left_out": plan.left_out,
        },
        "generated": pairs,
        "merged": pairs - distinct,
        "chosen": len(chosen),
        "plan": hashlib.sha256(json.dumps(identity).encode()).hexdigest(),
        "device": options.device,
        "compiler": compiler,
        "machine": _machine(),
        "versions": {name: version(name) for name in ("torch", "numpy", "tree-sitter", "tree-sitter-cuda")}
        | {"python": platform.python_version()},
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _machine() -> str:
    """Processor, cores and memory."""
    model = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _check_run(options: AuditOptions) -> None:
    """Refuse an unusable run directory before anything is planned."""
    if not holds_run(options.run_dir):
        return
    if not options.resume:
        if _fruitless(options.run_dir):
            return
        raise RunDirectoryError(
            f"{options.run_dir} already holds a run: give --resume to go on with it, or another --run directory"
        )
    with closing(Store.open(options.run_dir)) as store:
        check_version(store)


def _fruitless(run_dir: Path) -> bool:
    """Whether a run ended before anything was learnt of any mutant, so that nothing is lost when another starts in its place."""
    with closing(Store.open(run_dir)) as store:
        return not store.keys("mutant") and not store.keys("session")


def _store(options: AuditOptions, meta: dict[str, Any]) -> Store:
    if not (options.resume and holds_run(options.run_dir)):
        return Store.create(options.run_dir, meta, instead=holds_run(options.run_dir) and _fruitless(options.run_dir))
    store = Store.open(options.run_dir)
    try:
        same = store.meta()["plan"] == meta["plan"]
    except RunDirectoryError:
        store.close()
        raise
    if not same:
        store.close()
        raise RunDirectoryError(
            f"{options.run_dir} was started with other options, programs or compiler: repeat its command, or start a new --run directory"
        )
    return store


def _jobs(
    plan: AuditPlan,
    options: AuditOptions,
    checkers: list[str],
    known: dict[str, str],
    store: Store,
    bound: dict[str, dict[str, Any]],
) -> list[dict[str, Any]]:
    """One job a problem, those with the most mutants first; problems that are complete are left out."""
    problems = store.keys("problem")
    rules = list(mutation.select(options.rules))
    jobs = []
    for problem in plan.problems:
        names = [program.name for program in plan.programs_of(problem.name)]
        ids = {name: [m.id for m in plan.mutants[name]] for name in names}
        mine = [i for members in ids.values() for i in members]
        if problem.name in problems and all(i in known for i in mine):
            continue
        jobs.append(
            {
                "problem": problem.name,
                "bound_to": bound.get(problem.name),
                "programs": names,
                "own_programs": [program.document() for program in options.programs if program.name in names],
                "mutants": ids,
                "rules": rules,
                "checkers": checkers,
                "device": options.device,
                "workers": options.workers,
                "sanitise": options.sanitise,
                "known": {i: known[i] for i in mine if i in known},
            }
        )
    return sorted(jobs, key=lambda job: (-sum(len(ids) for ids in job["mutants"].values()), job["problem"]))
