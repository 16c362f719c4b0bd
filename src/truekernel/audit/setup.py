"""One problem of an audit before any mutant runs: cases, honest variants, gates, spreads."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import torch

from truekernel import corpus
from truekernel.audit.callables import Opinions, ask
from truekernel.audit.records import CaseRecord, HonestRecord, ProblemRecord, SuiteEntry
from truekernel.audit.vacuity import vacuous_pairs
from truekernel.cases.witness import witness_cases
from truekernel.checkers import Checker
from truekernel.errors import BadInputError
from truekernel.execution import simt
from truekernel.model import Case, Configuration, Execution, Outcome, Problem, Program
from truekernel.numerics import statistics, with_spread
from truekernel.trial.gate import wrong
from truekernel.trial.honest import HonestVariant, honest_variants
from truekernel.trial.stage import Plans, Request, Stage, requests_for
from truekernel.trial.witness import HonestRange

ADVERSARIAL: tuple[Configuration, ...] = (
    Configuration("reverse"),
    Configuration("warp_greedy"),
    Configuration("random"),
    Configuration("forward"),
)
"""Schedules, besides that of a GPU, under which the witness search looks for faults of synchronisation."""
ADVERSARIAL_CASES = 4
"""The witness search tries adversarial schedules on its first cases only."""
_OK = Outcome("ok")
RESEEDED = 1 << 30
"""Added to the seeds of a uniform suite, modulo 2^31, to ask what other seeds would have caught."""


@dataclass(frozen=True, slots=True)
class Base:
    """A program as written: its library, plans and code hash."""

    program: Program
    library: simt.Library
    plans: Plans
    code_hash: str
    hashes: Mapping[Request, str]
    """Output hash of each execution."""


@dataclass
class ProblemSetup:
    """Everything that mutants of a problem are measured with. Close it to end its native process."""

    problem: Problem
    checkers: Mapping[str, Checker]
    stage: Stage
    suites: dict[str, list[Case]]
    requests: list[Request]
    """What every mutant executes: the union over all checkers, in a fixed order."""
    witness_requests: list[Request]
    reseeded: dict[str, list[Request]]
    ranges: dict[Request, HonestRange] = field(default_factory=dict)
    bases: dict[str, Base] = field(default_factory=dict)
    honest: list[HonestRecord] = field(default_factory=list)
    vacuous: tuple[Any, ...] = ()
    official_note: dict[str, str] = field(default_factory=dict)

    def __enter__(self) -> ProblemSetup:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stage.server.close()

    def suite_requests(self, checker: str) -> list[Request]:
        """What one checker executes."""
        return requests_for(self.suites[checker], self.checkers[checker].configurations)

    @property
    def record(self) -> ProblemRecord:
        """The setup as it is stored."""
        return ProblemRecord(
            name=self.problem.name,
            family=self.problem.family,
            linear=self.problem.linear,
            cases=tuple(
                CaseRecord(id=p.case.id, axes=p.case.lengths, recipe=p.case.recipe, seed=p.case.seed)
                for p in self.stage.prepared.values()
            ),
            suites={
                name: tuple(
                    SuiteEntry(case_id=case_id, schedule=c.schedule, schedule_seed=c.schedule_seed, fill=c.fill)
                    for case_id, c in self.suite_requests(name)
                )
                for name in self.checkers
            },
            vacuous=self.vacuous,
            official_note=self.official_note,
            honest_worst={f"{case_id}/{c.schedule}": r.worst for (case_id, c), r in self.ranges.items()},
        )


def set_up(problem: Problem, programs: Sequence[Program], checkers: Mapping[str, Checker]) -> ProblemSetup:
    """Prepare cases and honest variants. Raises BadInputError when one of `programs` fails its gate: mutants of a wrong program mean nothing."""
    setup = _cases(problem, checkers)
    try:
        _honest(setup, {program.name for program in programs})
        setup.vacuous, setup.official_note = vacuous_pairs(problem, checkers, setup.suites, setup.stage.prepared)
    except BaseException:
        setup.stage.server.close()
        raise
    return setup


def _cases(problem: Problem, checkers: Mapping[str, Checker]) -> ProblemSetup:
    suites = {name: checker.suite(problem) for name, checker in checkers.items()}
    witnesses = witness_cases(problem)
    others = {
        name: [dataclasses.replace(case, seed=(case.seed + RESEEDED) % (1 << 31)) for case in suites[name]]
        for name, checker in checkers.items()
        if checker.reseedable
    }
    cases: list[tuple[Case, Case | None]] = []
    for suite in (*suites.values(), *others.values()):
        cases += [(case, suite[number - 1] if number else None) for number, case in enumerate(suite)]
    cases += [(case, None) for case in witnesses]
    stage = Stage(simt.Server(), problem, cases, _tolerances(checkers))
    requests = dict.fromkeys(
        request for name, checker in checkers.items() for request in requests_for(suites[name], checker.configurations)
    )
    search = requests_for(witnesses, [Configuration()]) + requests_for(witnesses[:ADVERSARIAL_CASES], ADVERSARIAL)
    return ProblemSetup(
        problem,
        checkers,
        stage,
        suites,
        list(requests),
        search,
        {name: requests_for(others[name], checkers[name].configurations) for name in others},
    )


def _tolerances(checkers: Mapping[str, Checker]) -> tuple[tuple[float, float], ...]:
    return tuple(sorted({pair for checker in checkers.values() for pair in checker.tolerances}))


def _honest(setup: ProblemSetup, wanted: set[str]) -> None:
    """Run all honest variants of the problem's programs: first the panel for its spreads, then all for their statistics."""
    stage = setup.stage
    programs = [program for program in corpus.programs().values() if program.problem == setup.problem.name]
    variants = honest_variants(programs)
    built: dict[str, tuple[simt.Library, Plans]] = {}
    refused: dict[str, str] = {}
    everything = list(
        dict.fromkeys([*setup.requests, *setup.witness_requests, *(r for rs in setup.reseeded.values() for r in rs)])
    )
    for variant in variants:
        result = _build(stage, variant)
        if isinstance(result, str):
            refused[variant.id] = result
        else:
            built[variant.id] = result
    for program in programs:
        if program.name in built:
            library, plans = built[program.name]
            stage.time_limits(everything, stage.execute(library, 0, plans, everything))
    panel = [variant for variant in variants if variant.role == "panel" and variant.id in built]
    stage.set_spreads(_spreads(setup, panel, built))
    executed: dict[str, list[Execution]] = {}
    opinions: dict[str, Opinions] = {}
    for variant in variants:
        if variant.id not in built:
            continue
        executions = stage.execute(*_first(built[variant.id]), everything)
        why = wrong(executions)
        if why:
            refused[variant.id] = why
        executed[variant.id] = executions
        opinions[variant.id] = ask(setup, *_first(built[variant.id]))
    for name in wanted:
        if name in refused:
            raise BadInputError(
                f"program '{name}' fails its gate ({refused[name]}): mutants of a wrong program mean nothing"
            )
    good = [variant for variant in variants if variant.id not in refused]
    for position, request in enumerate(everything):
        setup.ranges[request] = HonestRange.of(executed[v.id][position] for v in good)
    suite = set(setup.requests)
    for variant in variants:
        executions = [e for e, r in zip(executed.get(variant.id, []), everything, strict=False) if r in suite]
        setup.honest.append(
            _record(setup, variant, executions, refused.get(variant.id, ""), opinions.get(variant.id, Opinions()))
        )
    setup.honest.append(_eager(setup))
    for program in programs:
        if program.name in wanted:
            library, plans = built[program.name]
            hashes = {r: e.output_hash for r, e in zip(everything, executed[program.name], strict=True)}
            setup.bases[program.name] = Base(program, library, plans, f"{library.code_hash()}:{plans.digest}", hashes)
    for variant in variants:
        if variant.id in built and variant.id not in wanted:
            stage.release(built[variant.id][1])


def _first(built: tuple[simt.Library, Plans]) -> tuple[simt.Library, int, Plans]:
    """A library compiled alone holds its program as variant 0."""
    return built[0], 0, built[1]


def _build(stage: Stage, variant: HonestVariant) -> tuple[simt.Library, Plans] | str:
    plans = stage.plans(variant.source, variant.plan_source)
    result = simt.compile_single(variant.source, plans.kernels, simt.Options(fma="fma=off" not in variant.flags))
    return str(result) if isinstance(result, simt.CompileFailure) else (result, plans)


def _spreads(
    setup: ProblemSetup, panel: Sequence[HonestVariant], built: Mapping[str, tuple[simt.Library, Plans]]
) -> dict[str, list[torch.Tensor]]:
    """Largest error of the panel, by case and output."""
    outputs: dict[str, list[Sequence[torch.Tensor]]] = defaultdict(list)
    for variant in panel:
        for execution, tensors in setup.stage.outputs(*_first(built[variant.id]), setup.requests):
            if tensors is not None:
                outputs[execution.case_id].append(tensors)
    spreads: dict[str, list[torch.Tensor]] = {}
    for case_id, members in outputs.items():
        filled = with_spread(setup.stage.prepared[case_id].expected, members)
        spreads[case_id] = [e.spread for e in filled if e.spread is not None]
    return spreads


def _record(
    setup: ProblemSetup, variant: HonestVariant, executions: Sequence[Execution], gate: str, opinions: Opinions
) -> HonestRecord:
    return HonestRecord(
        id=variant.id,
        problem=setup.problem.name,
        program=variant.program,
        rule=variant.rule,
        role=variant.role,
        independent=variant.independent,
        gate=gate,
        executions=tuple(executions),
        **opinions.fields(),
    )


def _eager(setup: ProblemSetup) -> HonestRecord:
    """PyTorch's own eager result on the CPU in the problem's precision: an implementation that nobody here wrote."""
    executions = []
    for case_id, configuration in setup.requests:
        expected = setup.stage.prepared[case_id].expected
        outputs = [e.published for e in expected]
        values = statistics(outputs, expected, configuration.fill, _tolerances(setup.checkers))
        executions.append(Execution(case_id, configuration, _OK, values))
    name = f"{setup.problem.name}@torch-eager"
    return HonestRecord(
        id=name,
        problem=setup.problem.name,
        program=name,
        rule="",
        role="outer",
        independent=True,
        gate=wrong(executions) or "",
        executions=tuple(executions),
        **ask(setup, None, 0, None).fields(),
    )
