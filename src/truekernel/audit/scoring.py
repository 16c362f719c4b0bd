"""One checker's score over the subjects of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from truekernel.audit.intervals import settling
from truekernel.audit.population import Honest, Unique, false_rejection_rate, miss_rate
from truekernel.audit.scores import CheckerScore, GroupRate, Rate, SettlingPoint
from truekernel.checkers import Checker
from truekernel.model import RULE_CLASSES, MadeBy


def score(
    name: str,
    checker: Checker,
    mutants: Sequence[Unique],
    variants: Sequence[Honest],
    families: Mapping[str, str],
    vacuous_problems: frozenset[str],
) -> CheckerScore:
    """All rates of one checker. `families`: problem -> family; `vacuous_problems`: those on which a trivial output passes it."""
    witnessed = [m for m in mutants if m.fate == "witnessed"]
    faulty = [m for m in mutants if m.fate in ("witnessed", "masked", "unobserved")]
    outer = [v for v in variants if v.record.role == "outer"]
    sound = [m for m in witnessed if m.record.problem not in vacuous_problems]
    rejected = [m for m in witnessed if m.verdicts[name].state == "reject"]
    by_timeout = sum("timeout" in m.verdicts[name].why for m in rejected)
    by_crash = sum(_by_fault(m, name) for m in rejected) - by_timeout

    def families_of(subject: Unique | Honest) -> str:
        return families[subject.record.problem]

    def by_pair(name_of: Callable[[MadeBy], str], order: Sequence[str]) -> tuple[GroupRate, ...]:
        return tuple(
            GroupRate(name=group, rate=miss_rate(witnessed, name, lambda m, g=group: m.share(name_of, g)))  # type: ignore[misc]
            for group in order
        )

    def by_subject(name_of: Callable[[Unique], str]) -> tuple[GroupRate, ...]:
        groups = sorted({name_of(m) for m in witnessed})
        return tuple(GroupRate(name=g, rate=miss_rate([m for m in witnessed if name_of(m) == g], name)) for g in groups)

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
        title=f"{name} (scaled)" if checker.published else name,
        version=checker.version,
        source_url=checker.source_url,
        inputs=checker.inputs,
        tolerance=checker.tolerance_text,
        published=checker.published,
        broken=_broken(name, mutants, variants),
        miss=miss_rate(witnessed, name),
        false_rejection=false_rejection_rate(outer, name),
        false_rejection_independent=false_rejection_rate([v for v in outer if v.record.independent], name),
        miss_with_quarantined=miss_rate(faulty, name),
        miss_without_vacuous=miss_rate(sound, name),
        false_rejection_without_vacuous=false_rejection_rate(
            [v for v in outer if v.record.problem not in vacuous_problems], name
        ),
        miss_by_class=by_pair(lambda pair: pair.rule_class, classes),
        miss_by_rule=by_pair(lambda pair: pair.rule, rules),
        miss_by_family=by_subject(families_of),
        miss_by_problem=by_subject(lambda m: m.record.problem),
        false_rejection_by_rule=refused_by(lambda v: v.record.rule or "as written"),
        false_rejection_by_family=refused_by(families_of),
        false_rejection_by_problem=refused_by(lambda v: v.record.problem),
        caught_by_output=len(rejected) - by_crash - by_timeout,
        caught_by_crash=by_crash,
        caught_by_timeout=by_timeout,
        undetermined=sum(s.verdicts[name].state == "undetermined" for s in (*mutants, *variants)),
        settling=tuple(SettlingPoint(n=n, mean=mean, low=low, high=high) for n, mean, low, high in settling(hits)),
        seed_blind=_seed_blind(name, witnessed),
    )


def _by_fault(mutant: Unique, checker: str) -> bool:
    """Whether the checker rejected because an execution of its suite ended in a fault."""
    return mutant.verdicts[checker].why.startswith("ended in ")


def _broken(name: str, mutants: Sequence[Unique], variants: Sequence[Honest]) -> str:
    return next((s.record.broken[name] for s in (*variants, *mutants) if name in s.record.broken), "")


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
