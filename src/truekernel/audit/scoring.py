"""One checker's score over the subjects of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from truekernel.audit.intervals import settling
from truekernel.audit.population import Honest, Unique, false_rejection_rate, grouped, miss_rate, whole
from truekernel.audit.records import HonestRecord, MutantRecord
from truekernel.audit.scores import (
    ERROR_SIZES,
    GROSS,
    CaseCounts,
    CheckerScore,
    ErrorSize,
    GroupRate,
    Rate,
    SettlingPoint,
    error_size,
)
from truekernel.audit.verdicts import Bench
from truekernel.checkers import Checker
from truekernel.checkers.checker import REPORTED
from truekernel.checkers.flat import FlatChecker
from truekernel.model import RULE_CLASSES, MadeBy


def score(
    name: str,
    checker: Checker,
    mutants: Sequence[Unique],
    variants: Sequence[Honest],
    families: Mapping[str, str],
    vacuous_problems: frozenset[str],
    bench: Bench,
) -> CheckerScore:
    """All rates of one checker. `families`: problem -> family; `vacuous_problems`: those on which a trivial output passes it."""
    witnessed = [m for m in mutants if m.fate == "witnessed"]
    faulty = [m for m in mutants if m.fate in ("witnessed", "masked", "unobserved")]
    outer = [v for v in variants if v.record.role == "outer"]
    sound = [m for m in witnessed if m.record.problem not in vacuous_problems]
    rejected = [m for m in witnessed if m.verdicts[name].state == "reject"]
    ends = [bench.ends(m.record, name) for m in rejected]
    by_timeout = sum("timeout" in statuses for statuses in ends)
    by_crash = sum(bool(statuses & set(REPORTED)) and "timeout" not in statuses for statuses in ends)

    def families_of(subject: Unique | Honest) -> str:
        return families[subject.record.problem]

    def by_pair(name_of: Callable[[MadeBy], str], order: Sequence[str]) -> tuple[GroupRate, ...]:
        groups = grouped(witnessed, name_of)
        return tuple(GroupRate(name=group, rate=miss_rate(groups[group], name)) for group in order)

    def by_subject(name_of: Callable[[Unique], str], order: Sequence[str] = ()) -> tuple[GroupRate, ...]:
        groups: dict[str, list[Unique]] = defaultdict(list)
        for mutant in witnessed:
            groups[name_of(mutant)].append(mutant)
        names = [group for group in order if group in groups] or sorted(groups)
        return tuple(GroupRate(name=group, rate=miss_rate(whole(groups[group]), name)) for group in names)

    def refused_by(name_of: Callable[[Honest], str]) -> tuple[GroupRate, ...]:
        groups = sorted({name_of(v) for v in outer})
        return tuple(
            GroupRate(name=g, rate=false_rejection_rate([v for v in outer if name_of(v) == g], name)) for g in groups
        )

    classes = [c for c in RULE_CLASSES if any(p.rule_class == c for m in witnessed for p in m.made_by)]
    rules = sorted({p.rule for m in witnessed for p in m.made_by})
    hits = [m.verdicts[name].state == "accept" for m in witnessed if m.verdicts[name].state != "undetermined"]
    return CheckerScore(
        name=name,
        title=f"{name} (scaled)" if checker.source_url else name,
        version=checker.version,
        source_url=checker.source_url,
        inputs=_inputs(name, bench),
        tolerance=_tolerance(checker),
        case_counts=_case_counts(name, checker, bench),
        published=bool(checker.source_url),
        users_own=":" in name,
        broken=_broken(name, mutants, variants),
        miss=miss_rate(whole(witnessed), name),
        false_rejection=false_rejection_rate(outer, name),
        false_rejection_independent=false_rejection_rate([v for v in outer if v.record.independent], name),
        miss_with_quarantined=miss_rate(whole(faulty), name),
        miss_without_vacuous=miss_rate(whole(sound), name),
        false_rejection_without_vacuous=false_rejection_rate(
            [v for v in outer if v.record.problem not in vacuous_problems], name
        ),
        miss_by_class=by_pair(lambda pair: pair.rule_class, classes),
        miss_by_rule=by_pair(lambda pair: pair.rule, rules),
        miss_by_family=by_subject(families_of),
        miss_by_problem=by_subject(lambda m: m.record.problem),
        miss_by_size=by_subject(_size, ERROR_SIZES),
        miss_gross=miss_rate(whole(m for m in witnessed if _size(m) in GROSS), name),
        false_rejection_by_rule=refused_by(lambda v: v.record.rule or "as written"),
        false_rejection_by_family=refused_by(families_of),
        false_rejection_by_problem=refused_by(lambda v: v.record.problem),
        caught_by_output=len(rejected) - by_crash - by_timeout,
        caught_by_crash=by_crash,
        caught_by_timeout=by_timeout,
        undetermined=_undetermined(name, mutants) + _undetermined(name, variants),
        settling=tuple(SettlingPoint(n=n, mean=mean, low=low, high=high) for n, mean, low, high in settling(hits)),
        seed_blind=_seed_blind(name, witnessed),
    )


def _size(mutant: Unique) -> ErrorSize:
    """Size of the error on a witnessed mutant's witness."""
    witness = mutant.record.witness
    assert witness is not None
    return error_size(witness.status, witness.why, witness.worst)


def _undetermined(name: str, subjects: Sequence[Unique] | Sequence[Honest]) -> int:
    return sum(subject.verdicts[name].state == "undetermined" for subject in subjects)


def _inputs(name: str, bench: Bench) -> str:
    """Number of cases and their recipes, in one line."""
    suites = [bench.suite(problem, name) for problem in bench.problems]
    counts = sorted({len(suite) for suite in suites})
    recipes = list(dict.fromkeys(entry.case.recipe for suite in suites for entry in suite))
    number = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}" if counts else "0"
    return f"{number} cases a problem: {', '.join(recipes)}"


def _case_counts(name: str, checker: Checker, bench: Bench) -> CaseCounts | None:
    """Cases by what their gates say."""
    gates = [gate for problem in bench.problems.values() for gate in problem.gates if gate.checker == name]
    if not gates:
        return None
    kept = [gate for gate in gates if gate.valid or not checker.gated]
    return CaseCounts(cases=len(kept), blind=sum(gate.blind for gate in kept), dropped=len(gates) - len(kept))


def _tolerance(checker: Checker) -> str:
    """How the checker compares, in one line."""
    if isinstance(checker, FlatChecker):
        return f"torch.allclose, atol = rtol = {checker.single:g} ({checker.half:g} in half precision)"
    return "a callable of the user's" if checker.needs_outputs else "error bounds from float64 and honest variants"


def _broken(name: str, mutants: Sequence[Unique], variants: Sequence[Honest]) -> str:
    records: list[MutantRecord | HonestRecord] = [*(v.record for v in variants), *(m.record for m in mutants)]
    return next((record.broken[name] for record in records if name in record.broken), "")


def _seed_blind(name: str, witnessed: Sequence[Unique]) -> Rate | None:
    """Of its misses, those that other seeds would not have caught either."""
    tried = [m for m in witnessed if m.verdicts[name].state == "accept" and name in m.record.reseeded]
    if not tried:
        return None
    clusters: dict[str, tuple[float, float]] = {}
    for mutant in tried:
        hits, n = clusters.get(mutant.record.problem, (0.0, 0.0))
        clusters[mutant.record.problem] = (hits + (not mutant.record.reseeded[name]), n + 1)
    return Rate.over(clusters)
