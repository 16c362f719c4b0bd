"""How far honest programs stray on the cases of a check: the spread that our bound leans on, and the gate that drops cases on which they would not pass with a margin."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch

from truekernel import corpus
from truekernel.checkers import Checker
from truekernel.errors import PlanError
from truekernel.execution.backend import Compiled
from truekernel.judge.steps import Step
from truekernel.model import Problem, Program
from truekernel.numerics import is_valid, statistics, with_spread
from truekernel.trial.devices import Cpu, Source
from truekernel.trial.gate import wrong
from truekernel.trial.honest import HonestVariant, honest_variants
from truekernel.trial.stage import Plans, Prepared, Request, Stage

Outputs = list[torch.Tensor]


def with_panel(problem: Problem, checker: Checker, steps: Sequence[Step]) -> tuple[list[Step], list[str]]:
    """The steps with the panel's spreads, without those on which a member of the panel uses more than half of what is allowed; and why steps were dropped.

    The panel: the honest variants of the corpus's programs that set spreads in audits too, or PyTorch itself where the problem has no programs.
    """
    programs = [program for program in corpus.programs().values() if program.problem == problem.name]
    if programs and corpus.problems().get(problem.name) is problem:
        spread, shares = _programs(problem, checker, steps, programs)
    else:
        spread, shares = _eager(checker, steps)
    kept: list[Step] = []
    notes: list[str] = []
    for step, used in zip(spread, shares, strict=True):
        if is_valid(used):
            kept.append(step)
        else:
            notes.append(f"{step.label}: honest programs use {max(used):.2g} of what is allowed, half is the most")
    # A follower makes sense only right behind the step that it follows.
    cases = {(step.case.axes, step.case.recipe) for step in kept if not step.follows}
    return [s for s in kept if not s.follows or (s.case.axes, s.case.recipe) in cases], notes


def _eager(checker: Checker, steps: Sequence[Step]) -> tuple[list[Step], list[list[float]]]:
    """Spreads and shares of PyTorch in the problem's own precision."""
    spread, shares = [], []
    for step in steps:
        outputs = [want.published for want in step.expected]
        wide = dataclasses.replace(step, expected=with_spread(step.expected, [outputs]))
        found = statistics(outputs, wide.expected, "stale", checker.tolerances)
        spread.append(wide)
        shares.append([checker.margin(step.case, found)])
    return spread, shares


def _programs(
    problem: Problem, checker: Checker, steps: Sequence[Step], programs: Sequence[Program]
) -> tuple[list[Step], list[list[float]]]:
    """Spreads and shares of all members of the panel, under all orders of threads that the checker asks for."""
    device = Cpu()
    requests: list[Request] = [(step.case.id, c) for step in steps for c in checker.configurations(step.case)]
    server = device.runner()
    try:
        stage = Stage(server, problem, [], checker.tolerances)
        stage.prepared = _prepared(steps)
        built = _built(stage, device, [v for v in honest_variants(programs) if v.role == "panel"])
        outputs: dict[str, list[Outputs]] = {step.case.id: [] for step in steps}
        for library, plans in built:
            for execution, found in stage.outputs(library, 0, plans, requests):
                if found is not None and wrong([execution]) is None:
                    outputs[execution.case_id].append(found)
        spread = [dataclasses.replace(s, expected=with_spread(s.expected, outputs[s.case.id])) for s in steps]
        stage.set_spreads({s.case.id: [e.spread for e in s.expected if e.spread is not None] for s in spread})
        shares: dict[str, list[float]] = {step.case.id: [] for step in steps}
        cases = {step.case.id: step.case for step in steps}
        for library, plans in built:
            for execution in stage.execute(library, 0, plans, requests):
                if wrong([execution]) is None:
                    found_case = cases[execution.case_id]
                    shares[execution.case_id].append(checker.margin(found_case, execution.statistics))
            stage.release(plans)
            server.release(library)
            library.close()
    finally:
        server.close()
    return spread, [shares[step.case.id] for step in steps]


def _prepared(steps: Sequence[Step]) -> dict[str, Prepared]:
    blank = {step.case.id: [torch.zeros_like(want.published) for want in step.expected] for step in steps}
    return {s.case.id: Prepared(s.case, s.inputs, s.expected, blank[s.case.id]) for s in steps}


def _built(stage: Stage, device: Cpu, variants: Sequence[HonestVariant]) -> list[tuple[Compiled, Plans]]:
    """The members that compile, which all do; each alone."""
    built: list[tuple[Compiled, Plans]] = []
    for variant in variants:
        try:
            plans = stage.plans(variant.source, variant.plan_source)
        except PlanError:
            continue
        source = Source(variant.source, plans.kernels)
        (library,) = device.alone([source], fma="fma=off" not in variant.flags)
        if not isinstance(library, str):
            built.append((library, plans))
    return built
