"""Which programs, rules and mutants an audit takes: the same options always give the same plan."""

from __future__ import annotations

import fnmatch
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truekernel import corpus, memory, mutation
from truekernel.audit.options import AuditOptions
from truekernel.errors import BadInputError, UnknownNameError
from truekernel.model import Mutant, Problem, Program
from truekernel.trial.bindings import Bindings


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """What will be run: programs by problem, and the chosen mutants of each program. `everything`: mutants before sampling. `left_out`: problems that a checkout of
    KernelBench has no counterpart of, and why."""

    problems: tuple[Problem, ...]
    programs: tuple[Program, ...]
    mutants: dict[str, tuple[Mutant, ...]]
    everything: dict[str, tuple[Mutant, ...]]
    left_out: dict[str, str]

    def programs_of(self, problem: str) -> tuple[Program, ...]:
        """Programs that solve a problem, in the corpus' order."""
        return tuple(program for program in self.programs if program.problem == problem)


def make_plan(options: AuditOptions, checkout: Bindings | None = None) -> AuditPlan:
    """Select, mutate and sample. `checkout`: where references and inputs come from in place of ours. Raises UnknownNameError for a pattern that matches nothing."""
    programs = select_programs(options.problems) if options.problems or not options.programs else ()
    programs = (*programs, *own_programs(options.programs))
    left_out: dict[str, str] = {}
    if checkout is not None:
        programs, left_out = _bound(programs, checkout)
    rules = mutation.select(options.rules)
    benign = [name for name, rule in rules.items() if rule.rule_class == "benign"]
    if benign:
        raise BadInputError(
            f"--rules: '{benign[0]}' keeps the meaning of a kernel: audits take rules that make faults, and use all benign ones by themselves"
        )
    with memory.uncollected():
        everything = {program.name: tuple(mutation.mutants(program, rules)) for program in programs}
    if not any(everything.values()):
        raise BadInputError("no rule applies to the chosen programs: choose other --rules or --problems")
    chosen = everything if options.sample is None else stratified_sample(everything, options.sample, options.seed)
    problems = corpus.problems() if checkout is None else checkout.bound
    names = dict.fromkeys(program.problem for program in programs if chosen.get(program.name))
    return AuditPlan(
        problems=tuple(problems[name] for name in names),
        programs=tuple(program for program in programs if program.problem in names),
        mutants=chosen,
        everything=everything,
        left_out=left_out,
    )


def _bound(programs: Sequence[Program], checkout: Bindings) -> tuple[tuple[Program, ...], dict[str, str]]:
    """Programs whose problems are bound, and why the other problems are not."""
    names = dict.fromkeys(program.problem for program in programs)
    left_out = {name: checkout.why_not(name) for name in names if name not in checkout.bound}
    kept = tuple(program for program in programs if program.problem in checkout.bound)
    if not kept:
        name, why = next(iter(left_out.items()))
        raise BadInputError(f"--kernelbench: no chosen program solves a problem of the checkout ('{name}': {why})")
    return kept, left_out


def own_programs(programs: Sequence[Program]) -> tuple[Program, ...]:
    """A user's own programs. Raises BadInputError when a name is taken: reports tell programs apart by their names."""
    taken = set(corpus.programs())
    for program in programs:
        if program.name in taken:
            raise BadInputError(
                f"{program.path or program.name}: another program is called '{program.name}': rename the file"
            )
        taken.add(program.name)
    return tuple(programs)


def known_programs(own: Iterable[Mapping[str, Any]]) -> dict[str, Program]:
    """The corpus' programs and a user's own, given as stored documents, by name."""
    return dict(corpus.programs()) | {program.name: program for program in map(Program.of, own)}


def select_programs(patterns: Sequence[str]) -> tuple[Program, ...]:
    """Programs whose own name, problem or family matches one of the globs; all with no pattern."""
    problems, programs = corpus.problems(), corpus.programs()
    if not patterns:
        return tuple(programs.values())
    chosen: set[str] = set()
    for pattern in patterns:
        hits = {
            program.name
            for program in programs.values()
            if any(
                fnmatch.fnmatchcase(name, pattern)
                for name in (program.name, program.problem, problems[program.problem].family)
            )
        }
        if not hits:
            known = {p.family for p in problems.values()} | set(problems) | set(programs)
            raise UnknownNameError("problem", pattern, sorted(known))
        chosen |= hits
    return tuple(program for program in programs.values() if program.name in chosen)


def stratified_sample(everything: dict[str, tuple[Mutant, ...]], size: int, seed: int) -> dict[str, tuple[Mutant, ...]]:
    """`size` mutants, in each stratum (program x rule class) in proportion to its share, largest remainder first.

    Within a stratum the order is that of a hash of seed and mutant id, so that samples of the same seed are nested.
    """
    strata: dict[tuple[str, str], list[Mutant]] = defaultdict(list)
    for program, mutants in everything.items():
        for mutant in mutants:
            strata[program, mutant.made_by[0].rule_class].append(mutant)
    total = sum(len(members) for members in strata.values())
    if size >= total:
        return everything
    quota = {key: size * len(members) / total for key, members in strata.items()}
    taken = {key: int(share) for key, share in quota.items()}
    by_remainder = sorted(strata, key=lambda key: (taken[key] - quota[key], _rank(seed, *key)))
    for key in by_remainder[: size - sum(taken.values())]:
        taken[key] += 1
    chosen = {
        mutant.id
        for key, members in strata.items()
        for mutant in sorted(members, key=lambda m: _rank(seed, m.id))[: taken[key]]
    }
    return {program: _only(mutants, chosen) for program, mutants in everything.items()}


def _only(mutants: Iterable[Mutant], ids: set[str]) -> tuple[Mutant, ...]:
    return tuple(mutant for mutant in mutants if mutant.id in ids)


def _rank(seed: int, *names: str) -> str:
    return hashlib.sha256(":".join((str(seed), *names)).encode()).hexdigest()
