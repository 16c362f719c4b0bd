"""One problem of an audit before any mutant runs: cases, honest variants, gates, spreads."""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from truekernel import corpus
from truekernel.audit.builds import Build
from truekernel.audit.callables import Opinions, ask
from truekernel.audit.gates import case_gates, without_invalid
from truekernel.audit.honest_ranges import HonestRanges
from truekernel.audit.records import CaseGate, CaseRecord, HonestRecord, ProblemRecord, SuiteEntry
from truekernel.audit.searching import concerns, costly_requests, search_requests
from truekernel.audit.vacuity import vacuous_pairs
from truekernel.cases.grammar import parse_recipe
from truekernel.cases.witness import witness_cases
from truekernel.checkers import Checker
from truekernel.corpus.kernelbench.binding import NotBoundError, verify
from truekernel.errors import BadInputError, PlanError
from truekernel.execution.backend import Compiled
from truekernel.export import Subject
from truekernel.model import Case, Execution, Outcome, Problem, Program
from truekernel.numerics import statistics, with_spread
from truekernel.trial.devices import Cpu, Device, Source
from truekernel.trial.gate import full_gate, wrong
from truekernel.trial.honest import HonestVariant, honest_variants
from truekernel.trial.stage import Plans, Request, Stage

_OK = Outcome("ok")
FIRST = 8
"""Requests of the witness search that all honest variants execute at once, at which nearly all mutants fall; the others are executed when a proof needs them."""
RESEEDED = 1 << 30
"""Added to the seeds of a uniform suite, modulo 2^31, to ask what other seeds would have caught."""


@dataclass(frozen=True, slots=True)
class Base:
    """A program as written: its library, plans and code hash."""

    program: Program
    library: Compiled
    plans: Plans
    code_hash: str
    hashes: Mapping[Request, str]
    """Output hash of each execution."""


@dataclass
class ProblemSetup:
    """Everything that mutants of a problem are measured with. Close it to end its native process."""

    problem: Problem
    device: Device
    checkers: Mapping[str, Checker]
    stage: Stage
    suites: dict[str, list[Case]]
    requests: list[Request]
    """What every mutant executes: the union over all checkers, in a fixed order."""
    witness_requests: list[Request]
    reseeded: dict[str, list[Request]]
    ranges: HonestRanges = field(init=False)
    """What honest variants that pass their gate show, the programs as written among them."""
    costly: frozenset[Request] = frozenset()
    """Requests of the witness search that are not for mutants that can hardly fall there: see `search`."""
    bases: dict[str, Base] = field(default_factory=dict)
    honest: list[HonestRecord] = field(default_factory=list)
    gates: tuple[CaseGate, ...] = ()
    vacuous: tuple[Any, ...] = ()
    official_note: dict[str, str] = field(default_factory=dict)
    _searches: dict[str, list[Request]] = field(default_factory=dict)
    _series: dict[Request, int] = field(default_factory=dict)
    """Both are worked out when they are first asked for, which is when cases and suites are final."""

    def __post_init__(self) -> None:
        """Honest variants are yet to come."""
        self.ranges = HonestRanges(self._execute_honest)

    def __enter__(self) -> ProblemSetup:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stage.server.close()
        for build in self.ranges.builds:
            build.library.close()

    def _execute_honest(self, build: Build, request: Request) -> list[Execution]:
        executions = self.stage.execute(build.library, build.variant, build.plans, [request])
        if build.plans.digest not in {base.plans.digest for base in self.bases.values()}:
            self.stage.release(build.plans)  # cases under plans of their own hold megabytes each
        return executions

    def search(self, rule_class: str) -> list[Request]:
        """What the witness search executes of a mutant of this class, in order: all requests but costly ones of special values, which are for faults in what is computed, and costly ones
        under another order of threads or on stale memory, which are for all others."""
        if rule_class not in self._searches:
            prepared = self.stage.prepared
            self._searches[rule_class] = [
                request
                for request in self.witness_requests
                if request not in self.costly or concerns(prepared[request[0]].case, request[1], rule_class)
            ]
        return self._searches[rule_class]

    def suite_requests(self, checker: str) -> list[Request]:
        """What one checker executes."""
        return requests_of(self.checkers[checker], self.suites[checker], self.device)

    def series(self, requests: Sequence[Request]) -> list[int]:
        """For each request the checkers whose suites hold it, as bits in the order of `checkers`."""
        if not self._series:
            for k, name in enumerate(self.checkers):
                for request in self.suite_requests(name):
                    self._series[request] = self._series.get(request, 0) | 1 << k
        return [self._series.get(request, 0) for request in requests]

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
            gates=self.gates,
            vacuous=self.vacuous,
            official_note=self.official_note,
        )


def set_up(
    problem: Problem, programs: Sequence[Program], checkers: Mapping[str, Checker], device: Device | None = None
) -> ProblemSetup:
    """Prepare cases and honest variants. Raises BadInputError when one of `programs` fails its gate: mutants of a wrong program mean nothing."""
    setup = _cases(problem, checkers, device or Cpu())
    try:
        _honest(setup, programs)
        _gate(setup)
        setup.vacuous, setup.official_note = vacuous_pairs(problem, checkers, setup.suites, setup.stage.prepared)
    except BaseException:
        setup.stage.server.close()
        raise
    return setup


def _cases(problem: Problem, checkers: Mapping[str, Checker], device: Device) -> ProblemSetup:
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
    stage = Stage(device.runner(), problem, cases, _tolerances(checkers))
    return ProblemSetup(
        problem,
        device,
        checkers,
        stage,
        suites,
        _union(checkers, suites, device),
        search_requests(problem, witnesses, device),
        {name: requests_of(checkers[name], others[name], device) for name in others},
    )


def _union(checkers: Mapping[str, Checker], suites: Mapping[str, Sequence[Case]], device: Device) -> list[Request]:
    """The requests of all suites, each once."""
    return list(dict.fromkeys(r for name, c in checkers.items() for r in requests_of(c, suites[name], device)))


def _gate(setup: ProblemSetup) -> None:
    """Judge the cases, and leave out what a checker drops."""
    panel = [record.executions for record in setup.honest if record.role == "panel" and not record.gate]
    setup.gates = case_gates(setup.problem, setup.checkers, setup.suites, setup.stage.prepared, panel)
    setup.suites = without_invalid(setup.checkers, setup.suites, setup.gates)
    setup.requests = _union(setup.checkers, setup.suites, setup.device)


def requests_of(checker: Checker, suite: Sequence[Case], device: Device) -> list[Request]:
    """What a checker executes on its suite, as far as the device can order threads."""
    return [(case.id, c) for case in suite for c in checker.configurations(case) if c.schedule in device.schedules]


def _tolerances(checkers: Mapping[str, Checker]) -> tuple[tuple[float, float], ...]:
    return tuple(sorted({pair for checker in checkers.values() for pair in checker.tolerances}))


def _honest(setup: ProblemSetup, mutated: Sequence[Program]) -> None:
    """Run all honest variants of the problem's programs: first the panel for its spreads, then all for their statistics."""
    stage = setup.stage
    wanted = {program.name for program in mutated}
    ours = [program for program in corpus.programs().values() if program.problem == setup.problem.name]
    programs = [*ours, *(program for program in mutated if program not in ours)]
    others = list(dict.fromkeys(request for requests in setup.reseeded.values() for request in requests))
    built, refused = _built(setup, honest_variants(programs), wanted)
    for variant, why in refused:
        if variant.id in wanted:
            raise _unusable(next(program for program in programs if program.name == variant.id), why)
    kept = {plans.digest for variant, _, plans in built if variant.id in wanted}
    lost = _disputed(setup)
    _leave_out(setup, lost)
    everything = list(dict.fromkeys([*setup.requests, *setup.witness_requests]))
    flushed: set[str] = set()
    written: dict[str, list[Execution]] = {}
    requests = [*everything, *others]
    for variant, library, plans in built:
        if not variant.rule:
            ours_too = variant.id in corpus.programs()
            # A program of the user's may loop for ever on every case: its first fault is enough.
            executions = stage.execute(library, 0, plans, requests, None if ours_too else [1] * len(requests))
            if not ours_too and (fault := wrong(executions)):
                raise _refusal(setup, variant.id, fault)
            written[variant.id] = executions
            if ours_too:
                flushed |= _flushed(setup, executions)
    for executions in written.values():  # after all have run: one that takes longer than another is right too
        stage.time_limits(requests, executions)
    _leave_out(setup, flushed)
    for program in programs:
        if (
            program not in ours
            and setup.device.sanitises
            and (fault := full_gate(stage, program.source, program.plan_source))
        ):
            raise _refusal(setup, program.name, fault)
    stage.set_spreads(_spreads(setup, [b for b in built if b[0].role == "panel"], kept))
    cases = {case_id: prepared.case for case_id, prepared in stage.prepared.items()}
    setup.costly = costly_requests(setup.problem, cases, setup.witness_requests) - set(setup.requests)
    suites, searched = set(setup.requests), set(setup.witness_requests)
    first = [*setup.requests, *setup.witness_requests[:FIRST]]
    for variant, library, plans in built:
        # What set-up has seen of a program as written stands where no spread belongs to it.
        seen = [e for e in written.get(variant.id, ()) if (e.case_id, e.configuration) in searched - suites]
        executions = [*stage.execute(library, 0, plans, setup.requests if seen else first), *seen]
        fault = wrong(executions)
        if fault and variant.id in wanted:
            raise _refusal(setup, variant.id, fault)
        if fault is None:
            setup.ranges.add(Build(library, 0, plans), executions)
        mine = [e for e in executions if (e.case_id, e.configuration) in suites]
        setup.honest.append(
            _record(setup, variant, mine, fault or "", ask(setup, Build(library, 0, plans), _subject(setup, variant)))
        )
        if variant.id in wanted:
            program = next(program for program in programs if program.name == variant.id)
            hashes = {(e.case_id, e.configuration): e.output_hash for e in executions}
            setup.bases[program.name] = Base(program, library, plans, _identity(library, plans), hashes)
            continue
        if plans.digest not in kept:
            stage.release(plans)
        if fault is not None:
            stage.server.release(library)
            library.close()
    for variant, why in refused:
        setup.honest.append(_record(setup, variant, [], why, Opinions()))
    setup.honest.append(_eager(setup))


def _refusal(setup: ProblemSetup, program: str, why: str) -> BadInputError:
    """The error for a program that is not right, with the case in words."""
    for case_id, prepared in setup.stage.prepared.items():
        axes = ", ".join(f"{name} {length}" for name, length in prepared.case.axes)
        why = why.replace(f"case {case_id}", f"case '{prepared.case.recipe}' with {axes}")
    return BadInputError(f"program '{program}' fails its gate ({why}): mutants of a wrong program mean nothing")


def _unusable(program: Program, why: str) -> BadInputError:
    """The error for a program that does not compile, or whose launch plan fails, with the file and line."""
    source = Path(program.path) if program.path else Path(f"{program.name}.cu")
    plan = source.with_suffix(".py")
    place = str(plan) if plan.exists() else f"{source} (launch plan made of solve())"
    why = re.sub(r"^launch plan, (?:line (\d+): )?", lambda m: f"{place}:{m[1]}: " if m[1] else f"{place}: ", why)
    why = re.sub(r"^(\d+:\d+: )", lambda m: f"{source}:{m[1]}", why)
    return BadInputError(f"program '{program.name}' can't be run: {why}")


def _disputed(setup: ProblemSetup) -> set[str]:
    """Cases on which a benchmark's reference, bound in place of ours, and ours mean different things (a row of zeros over its own norm is NaN, or zero where small norms are
    clamped), or whose inputs, drawn as the benchmark draws them, are not legal for us (probabilities of 0): our programs answer to ours."""
    ours = corpus.problems().get(setup.problem.name)
    if ours is None or ours.reference == setup.problem.reference:
        return set()
    found: set[str] = set()
    for case_id, prepared in setup.stage.prepared.items():
        try:
            verify(setup.problem, ours, prepared.inputs, prepared.case.lengths)
        except NotBoundError:
            found.add(case_id)
        if not all(spec.domain.holds(prepared.inputs[spec.name]) for spec in ours.tensors):
            found.add(case_id)
    return found


def _flushed(setup: ProblemSetup, executions: Sequence[Execution]) -> set[str]:
    """Cases of numbers so small that a program of ours, right as it is, does not keep here: a GPU's float atomics flush them (PTX ISA, red and atom)."""
    prepared = setup.stage.prepared
    return {e.case_id for e in executions if parse_recipe(prepared[e.case_id].case.recipe).tiny and wrong([e])}


def _leave_out(setup: ProblemSetup, cases: set[str]) -> None:
    """Forget cases that mean nothing on this device; published suites have none."""
    setup.suites = {
        name: [case for case in suite if case.id not in cases] if setup.checkers[name].gated else suite
        for name, suite in setup.suites.items()
    }
    setup.requests = _union(setup.checkers, setup.suites, setup.device)
    setup.witness_requests = [request for request in setup.witness_requests if request[0] not in cases]


Built = tuple[HonestVariant, Compiled, Plans]


def _built(
    setup: ProblemSetup, variants: Sequence[HonestVariant], wanted: set[str]
) -> tuple[list[Built], list[tuple[HonestVariant, str]]]:
    """Variants compiled alone, one for each distinct machine code and plans, and all of `wanted`; and those that do not compile, with the reason."""
    planned: list[tuple[HonestVariant, Plans]] = []
    refused: list[tuple[HonestVariant, str]] = []
    for variant in variants:
        try:
            planned.append((variant, setup.stage.plans(variant.source, variant.plan_source)))
        except PlanError as error:
            refused.append((variant, str(error)))
    built: list[Built] = []
    seen: set[str] = set()
    for fma in (True, False):
        group = [(variant, plans) for variant, plans in planned if ("fma=off" not in variant.flags) == fma]
        sources = [Source(variant.source, plans.kernels) for variant, plans in group]
        for (variant, plans), library in zip(group, setup.device.alone(sources, fma=fma), strict=True):
            if isinstance(library, str):
                refused.append((variant, library))
            elif _identity(library, plans) in seen and variant.id not in wanted:
                library.close()
            else:
                seen.add(_identity(library, plans))
                built.append((variant, library, plans))
    order = {variant.id: number for number, variant in enumerate(variants)}
    return sorted(built, key=lambda b: order[b[0].id]), refused


def _identity(library: Compiled, plans: Plans) -> str:
    """What makes programs distinct: normalised machine code and launch plans."""
    return f"{library.code_hash()}:{plans.digest}"


def _spreads(setup: ProblemSetup, panel: Sequence[Built], kept: set[str]) -> dict[str, list[torch.Tensor]]:
    """Largest error of the panel, by case and output."""
    outputs: dict[str, list[Sequence[torch.Tensor]]] = defaultdict(list)
    for _, library, plans in panel:
        for execution, tensors in setup.stage.outputs(library, 0, plans, setup.requests):
            if tensors is not None:
                outputs[execution.case_id].append(tensors)
        if plans.digest not in kept:
            setup.stage.release(plans)
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


def _subject(setup: ProblemSetup, variant: HonestVariant) -> Subject:
    title = f"honest variant of program {variant.program}" + (f", made by {variant.rule}" if variant.rule else "")
    return Subject(variant.id, title, setup.problem.name, variant.source, variant.plan_source, variant.flags)


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
        **ask(setup, None, None).fields(),
    )
