"""From a stored run to its summary."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from truekernel import checkers as checker_room
from truekernel import memory, mutation
from truekernel.audit.matrix import kill_matrix
from truekernel.audit.population import Honest, Unique, honest_variants, unique_mutants
from truekernel.audit.records import HonestRecord, MutantRecord, ProblemRecord
from truekernel.audit.scores import CurveMark, GainSplit, ToleranceCurve, VacuityGap, VacuousEntry, error_size
from truekernel.audit.scores import Vacuity as VacuitySummary
from truekernel.audit.scoring import score
from truekernel.audit.stored import StoredRun, read_run, sound
from truekernel.audit.summary import (
    Change,
    Counts,
    HazardSummary,
    ProgramSummary,
    QuarantinedSummary,
    RuleSummary,
    RunFacts,
    Summary,
    SurvivorSummary,
    WitnessSummary,
)
from truekernel.audit.tradeoff import gain_split, tolerance_curve
from truekernel.audit.verdicts import Bench
from truekernel.checkers.flat import FlatChecker
from truekernel.model import MadeBy, Program
from truekernel.numerics.statistics import LIMIT


def summarise(run_dir: Path) -> Summary:
    """Everything that a report shows, from a run directory alone. Raises RunDirectoryError when it holds no run of this version."""
    with memory.uncollected():
        return _summarised(read_run(run_dir), run_dir)


def _summarised(run: StoredRun, run_dir: Path) -> Summary:
    meta, problems, honest_records, records = run.meta, run.problems, run.honest, run.mutants
    bench = Bench(checker_room.resolve(meta["checkers"]), problems)
    mutants = unique_mutants(records, bench)
    variants = honest_variants(honest_records, bench)
    families = {name: problem.family for name, problem in problems.items()}
    vacuity = _vacuity(problems, list(bench.checkers))
    vacuous = {
        name: frozenset(e.problem for e in vacuity.entries if e.checker == name and e.size == "audit")
        for name in bench.checkers
    }
    return Summary(
        tool_version=version("truekernel"),
        complete=len(records) == meta["chosen"],
        run=_facts(meta, run_dir, run.seconds),
        counts=_counts(meta, records, mutants, honest_records, variants),
        programs=_programs(
            [run.programs[name] for name in meta["programs"]], families, records, mutants, honest_records
        ),
        rules=_rules(records, mutants),
        rules_known=len(mutation.rules()),
        checkers=tuple(
            score(name, checker, mutants, variants, families, vacuous[name], bench)
            for name, checker in bench.checkers.items()
        ),
        curves=_curves(bench, mutants, variants),
        gain=_gain(bench, mutants),
        vacuity=vacuity,
        kill_matrix=kill_matrix(bench, mutants),
        survivors=_survivors(mutants, families, bench),
        quarantined=_quarantined(records, mutants),
        hazards=_hazards(mutants),
    )


def _facts(meta: Mapping[str, object], run_dir: Path, seconds: float) -> RunFacts:
    with sound(run_dir):
        return _described(meta, str(run_dir), seconds)


def _described(meta: Mapping[str, object], directory: str, seconds: float) -> RunFacts:
    options: Mapping[str, object] = meta["options"]  # type: ignore[assignment]
    own: Sequence[Mapping[str, str]] = meta["own_programs"]  # type: ignore[assignment]
    solved = {program["problem"] for program in own}
    checkout: Mapping[str, object] = meta.get("kernelbench") or {}  # type: ignore[assignment]
    return RunFacts.model_validate(
        {
            "directory": directory,
            "checkers": tuple(options["checkers"]),  # type: ignore[arg-type]
            "problems": tuple(options["problems"]),  # type: ignore[arg-type]
            "programs": tuple(program["path"] or program["name"] for program in own),
            "solves": solved.pop() if len(solved) == 1 else "",
            "kernelbench": checkout.get("root", ""),
            "left_out": checkout.get("left_out", {}),
            "rules": tuple(options["rules"]),  # type: ignore[arg-type]
            "sample": options["sample"],
            "seed": options["seed"],
            "device": meta["device"],
            "compiler": meta["compiler"],
            "machine": meta["machine"],
            "versions": meta["versions"],
            "started": meta["started"],
            "seconds": seconds,
        }
    )


def _counts(
    meta: Mapping[str, int],
    records: Sequence[MutantRecord],
    mutants: Sequence[Unique],
    honest_records: Sequence[HonestRecord],
    variants: Sequence[Honest],
) -> Counts:
    status = Counter(record.status for record in records)
    fates = Counter(mutant.fate for mutant in mutants)
    ends = Counter(m.record.witness.status for m in mutants if m.record.witness is not None)
    outer = [v for v in variants if v.record.role == "outer"]
    return Counts(
        generated=meta["generated"],
        merged=meta["merged"],
        chosen=len(records),
        stillborn=status["stillborn"],
        identical=status["identical"],
        duplicates=status["duplicate"],
        unique=status["ran"],
        witnessed=fates["witnessed"],
        masked=fates["masked"],
        unobserved=fates["unobserved"],
        host_differs=fates["host_differs"],
        infrastructure=fates["infrastructure"],
        crashes=sum(n for status, n in ends.items() if status not in ("ok", "timeout")),
        timeouts=ends["timeout"],
        hazards=sum(bool(m.record.hazards) for m in mutants),
        executions=sum(len(r.executions) for r in records) + sum(len(h.executions) for h in honest_records),
        honest_panel=sum(v.record.role == "panel" for v in variants),
        honest_outer=len(outer),
        honest_independent=sum(int(v.record.independent) for v in outer),
        honest_refused=len(honest_records) - len(variants),
    )


def _programs(
    programs: Sequence[Program],
    families: Mapping[str, str],
    records: Sequence[MutantRecord],
    mutants: Sequence[Unique],
    honest_records: Sequence[HonestRecord],
) -> tuple[ProgramSummary, ...]:
    gates = {record.program: record.gate for record in honest_records if record.id == record.program}
    made = Counter(record.program for record in records)
    unique = Counter(m.record.program for m in mutants)
    witnessed = Counter(m.record.program for m in mutants if m.fate == "witnessed")
    return tuple(
        ProgramSummary(
            name=program.name,
            problem=program.problem,
            family=families.get(program.problem, ""),
            traits=tuple(sorted(program.traits)),
            gate=gates.get(program.name, "not run yet"),
            mutants=made[program.name],
            unique=unique[program.name],
            witnessed=witnessed[program.name],
        )
        for program in programs
    )


def _rules(records: Sequence[MutantRecord], mutants: Sequence[Unique]) -> tuple[RuleSummary, ...]:
    known = mutation.rules()
    per_record = Counter((rule, record.status) for record in records for rule in {p.rule for p in record.made_by})
    per_mutant = Counter((rule, m.fate) for m in mutants for rule in {p.rule for p in m.record.made_by})
    rules = sorted({rule for rule, _ in per_record}, key=lambda name: (known[name].rule_class, name))
    return tuple(
        RuleSummary(
            name=name,
            rule_class=known[name].rule_class,
            description=known[name].description,
            source=known[name].source,
            generated=sum(n for (rule, _), n in per_record.items() if rule == name),
            stillborn=per_record[name, "stillborn"],
            identical=per_record[name, "identical"],
            duplicates=per_record[name, "duplicate"],
            unique=per_record[name, "ran"],
            witnessed=per_mutant[name, "witnessed"],
            masked=per_mutant[name, "masked"],
            unobserved=per_mutant[name, "unobserved"],
        )
        for name in rules
    )


def _vacuity(problems: Mapping[str, ProblemRecord], checkers: Sequence[str]) -> VacuitySummary:
    entries = [
        VacuousEntry(
            problem=problem.name,
            checker=pair.checker,
            size=pair.size,
            trivial=pair.trivial,
            margin=pair.margin,
            note=pair.note,
        )
        for problem in problems.values()
        for pair in problem.vacuous
    ]
    gaps = [
        VacuityGap(problem=problem.name, checker=checker, size="official", why=why)
        for problem in problems.values()
        for checker, why in problem.official_note.items()
    ]
    pairs = sum(bool(problem.suites.get(checker)) for problem in problems.values() for checker in checkers)
    return VacuitySummary(audit_pairs=pairs, official_pairs=pairs - len(gaps), entries=tuple(entries), gaps=tuple(gaps))


def _curves(bench: Bench, mutants: Sequence[Unique], variants: Sequence[Honest]) -> tuple[ToleranceCurve, ...]:
    """One curve for each set of inputs that a flat tolerance judges; checkers that share inputs are marks on the same curve."""
    by_inputs: dict[tuple[object, ...], list[str]] = {}
    for name, checker in bench.checkers.items():
        if isinstance(checker, FlatChecker):
            key = tuple((p, tuple(entry.case_id for entry in bench.suite(p, name))) for p in bench.problems)
            by_inputs.setdefault(key, []).append(name)
    curves = []
    for names in by_inputs.values():
        marks = [
            CurveMark(checker=n, tolerance=c.single) for n in names if isinstance(c := bench.checkers[n], FlatChecker)
        ]
        title = f"inputs of {' and '.join(names)} (scaled)"
        curves.append(tolerance_curve(names[0], title, marks, bench, mutants, variants))
    return tuple(curves)


def _gain(bench: Bench, mutants: Sequence[Unique]) -> GainSplit | None:
    base, improved = "kernelbench@1e-2", "kernelbench-verified"
    if base not in bench.checkers or improved not in bench.checkers:
        return None
    return gain_split(base, improved, bench, mutants)


def _changes(pairs: Sequence[MadeBy]) -> tuple[Change, ...]:
    return tuple(
        Change(
            rule=p.rule,
            rule_class=p.rule_class,
            file=p.site.file,
            line=p.site.line,
            column=p.site.column,
            replacement=p.replacement,
        )
        for p in pairs
    )


def finite(value: float | None) -> float | None:
    """The value, or None where it stands for infinity: reports hold finite numbers only."""
    return None if value is None or not math.isfinite(value) or value >= LIMIT else value


def _survivors(mutants: Sequence[Unique], families: Mapping[str, str], bench: Bench) -> tuple[SurvivorSummary, ...]:
    """Witnessed mutants that some checker accepts."""
    found = (
        _survivor(m, families, bench)
        for m in mutants
        if m.fate == "witnessed" and any(v.state == "accept" for v in m.verdicts.values())
    )
    return tuple(sorted(found, key=lambda survivor: survivor.order))


def _survivor(mutant: Unique, families: Mapping[str, str], bench: Bench) -> SurvivorSummary:
    record = mutant.record
    witness = record.witness
    assert witness is not None
    case = bench.case(record.problem, witness.case_id)
    return SurvivorSummary(
        id=record.id,
        program=record.program,
        problem=record.problem,
        family=families[record.problem],
        changes=_changes(mutant.made_by),
        diff=record.diff,
        accepted_by=tuple(n for n, v in mutant.verdicts.items() if v.state == "accept"),
        rejected_by={n: v.why for n, v in mutant.verdicts.items() if v.state == "reject"},
        witness=WitnessSummary(
            case_id=witness.case_id,
            axes=case.lengths,
            recipe=case.recipe,
            seed=case.seed,
            schedule=witness.schedule,
            schedule_seed=witness.schedule_seed,
            status=witness.status,
            why=witness.why,
            worst=finite(witness.worst),
            honest_worst=witness.honest_worst,
            element=witness.element,
            confirmed=witness.confirmed,
            size=error_size(witness.status, witness.why, witness.worst),
        ),
        hazards=tuple(dict.fromkeys(h.outcome for h in record.hazards)),
        confirmed=record.survivor_confirmed,
    )


def _quarantined(records: Sequence[MutantRecord], mutants: Sequence[Unique]) -> tuple[QuarantinedSummary, ...]:
    identical = [
        QuarantinedSummary(
            id=r.id, program=r.program, problem=r.problem, kind="identical", changes=_changes(r.made_by), diff=r.diff
        )
        for r in records
        if r.status == "identical"
    ]
    others = [
        QuarantinedSummary(
            id=m.record.id,
            program=m.record.program,
            problem=m.record.problem,
            kind="masked" if m.fate == "masked" else "unobserved",
            changes=_changes(m.made_by),
            diff=m.record.diff,
            worst=finite(m.record.worst) if m.fate == "masked" else None,
            rejected_by=tuple(n for n, v in m.verdicts.items() if v.state == "reject"),
        )
        for m in mutants
        if m.fate in ("masked", "unobserved")
    ]
    return tuple(sorted((*identical, *others), key=lambda q: (q.kind, q.program, q.id)))


def _hazards(mutants: Sequence[Unique]) -> tuple[HazardSummary, ...]:
    return tuple(
        HazardSummary(
            mutant=m.record.id,
            program=m.record.program,
            changes=_changes(m.made_by),
            witnessed=m.fate == "witnessed",
            **hazard.model_dump(),
        )
        for m in mutants
        for hazard in m.record.hazards
    )
