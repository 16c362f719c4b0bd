"""One problem's cases, ready to execute programs on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from truekernel import memory
from truekernel.cases import make_inputs
from truekernel.errors import PlanError, SourceError
from truekernel.execution import recorder
from truekernel.execution.backend import Ceiling, Compiled, Runner
from truekernel.model import Case, Configuration, Execution, LaunchPlan, Problem
from truekernel.numerics import Expected, expect
from truekernel.source import kernel_signatures

LEAST_CPU_SECONDS = 0.05
CPU_FACTOR = 20.0
"""An execution may take this many times the original's CPU time, and the least above, before it counts as a timeout."""
LARGE = 500_000
"""Elements of an output whose references leave so much free memory behind that it is given back at once: several workers prepare cases at the same time."""
CHECKED_FACTOR = 10.0
"""A sanitised execution may take this many times longer."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A case with what its outputs are compared with. `stale`: what unwritten elements of the outputs hold for published checkers."""

    case: Case
    inputs: dict[str, torch.Tensor]
    expected: list[Expected]
    stale: list[torch.Tensor]


@dataclass(frozen=True, slots=True)
class Plans:
    """A plan source's launch plans by case id. `digest`: hash of all of them, part of a mutant's identity; `kernels`: distinct kernel name expressions over all cases."""

    by_case: Mapping[str, LaunchPlan]
    digest: str
    kernels: tuple[str, ...]


Request = tuple[str, Configuration]


class Stage:
    """Executes programs of one problem on its cases.

    `cases` come with the case whose reference output an allocator would have left in the outputs (None: zeros).
    """

    def __init__(
        self,
        server: Runner,
        problem: Problem,
        cases: Sequence[tuple[Case, Case | None]],
        tolerances: Sequence[tuple[float, float]],
    ) -> None:
        self.server = server
        self.problem = problem
        self.tolerances = tolerances
        self.prepared: dict[str, Prepared] = {}
        for case, before in cases:
            if case.id not in self.prepared:
                self.prepared[case.id] = self._prepare(case, before)
                if any(e.elements > LARGE for e in self.prepared[case.id].expected):
                    memory.give_back()
        self._defined: set[tuple[str, str]] = set()
        self._seconds: dict[Request, float] = {}

    def _prepare(self, case: Case, before: Case | None) -> Prepared:
        inputs = make_inputs(self.problem, case)
        expected = expect(self.problem, inputs, case.lengths)
        if before is not None and before.axes == case.axes and before.id in self.prepared:
            stale = [e.published for e in self.prepared[before.id].expected]
        else:
            stale = [torch.zeros_like(e.published) for e in expected]
        return Prepared(case, inputs, expected, stale)

    def plans(self, source: str, plan_source: str) -> Plans:
        """Launch plans of all cases. Raises PlanError when one can't be recorded."""
        try:
            signatures = kernel_signatures(source)
        except SourceError as error:
            raise PlanError(str(error)) from error
        traced: dict[str, LaunchPlan] = {}
        by_axes: dict[tuple[tuple[str, int], ...], LaunchPlan] = {}
        for case_id, prepared in self.prepared.items():
            axes = prepared.case.axes
            if axes not in by_axes:
                by_axes[axes] = recorder.trace(plan_source, signatures, self.problem, dict(axes))
            traced[case_id] = by_axes[axes]
        digest = hashlib.sha256(repr(sorted(by_axes.items())).encode()).hexdigest()[:16]
        kernels = tuple(dict.fromkeys(kernel for plan in by_axes.values() for kernel in plan.kernels))
        return Plans(traced, digest, kernels)

    def set_spreads(self, spreads: Mapping[str, Sequence[torch.Tensor]]) -> None:
        """Give cases the honest panel's spread (one float64 tensor for each output); it holds from the next execution on."""
        for case_id, values in spreads.items():
            prepared = self.prepared[case_id]
            expected = [replace(e, spread=spread) for e, spread in zip(prepared.expected, values, strict=True)]
            self.prepared[case_id] = replace(prepared, expected=expected)
        for digest, case_id in list(self._defined):
            if case_id in spreads:
                self._forget(digest, case_id)

    def execute(
        self,
        library: Compiled,
        variant: int,
        plans: Plans,
        requests: Sequence[Request],
        series: Sequence[int] | None = None,
        *,
        ceilings: Sequence[Ceiling] | None = None,
        bare: bool = False,
    ) -> list[Execution]:
        """Run one variant of a library on the requested cases, in order. `series`: for each request the bits of the series that it
        belongs to; a fault ends its series, and what belongs to ended series only is left out. Without, nothing is.
        `ceilings`: as of `simt.Server.run`, for a CPU only. `bare`: as of `cuda.Server.run`, for a GPU only."""
        more: dict[str, Any] = {"ceilings": ceilings} if ceilings is not None else {"bare": True} if bare else {}
        both = self._run(library, variant, plans, requests, series, keep_outputs=False, **more)
        return [execution for execution, _ in both]

    def outputs(
        self,
        library: Compiled,
        variant: int,
        plans: Plans,
        requests: Sequence[Request],
        series: Sequence[int] | None = None,
    ) -> list[tuple[Execution, list[torch.Tensor] | None]]:
        """As `execute`, with the output tensors of each execution (None unless it ended ok)."""
        return self._run(library, variant, plans, requests, series, keep_outputs=True)

    def _run(
        self,
        library: Compiled,
        variant: int,
        plans: Plans,
        requests: Sequence[Request],
        series: Sequence[int] | None,
        *,
        keep_outputs: bool,
        **more: Any,
    ) -> list[tuple[Execution, list[torch.Tensor] | None]]:
        for case_id in dict.fromkeys(case_id for case_id, _ in requests):
            self._define(plans, case_id)
        wanted = [(f"{plans.digest}:{case_id}", configuration) for case_id, configuration in requests]
        limits = [self._limit(request) for request in requests]
        run = self.server.run(
            library,
            variant,
            wanted,
            cpu_seconds=limits,
            keep_outputs=keep_outputs,
            series=series,
            tolerances=self.tolerances,
            **more,
        )
        named = [_of_case(execution) for execution in run.executions]
        return list(zip(named, run.outputs, strict=True))

    def _limit(self, request: Request) -> float:
        """CPU seconds; sanitised executions take several times a plain one's."""
        case_id, configuration = request
        if configuration.checked:
            return self._limit((case_id, replace(configuration, checked=False))) * CHECKED_FACTOR
        return max(LEAST_CPU_SECONDS, CPU_FACTOR * self._seconds.get(request, 1.0))

    def time_limits(self, requests: Sequence[Request], executions: Sequence[Execution]) -> None:
        """Take the original's executions as the measure of timeouts, largest where several programs tell."""
        for request, execution in zip(requests, executions, strict=False):
            self._seconds[request] = max(self._seconds.get(request, 0.0), execution.outcome.seconds)

    def watch(self, library: Compiled, plans: Plans, case_id: str) -> bool:
        """Have a GPU's server take a right program as its sentinel; False when it does not give the same bits every time, or on a CPU."""
        watch = getattr(self.server, "watch", None)
        if watch is None:
            return False
        self._define(plans, case_id)
        return bool(watch(library, f"{plans.digest}:{case_id}"))

    def release(self, plans: Plans) -> None:
        """Free what the server holds for plans that no further execution needs."""
        for digest, case_id in [pair for pair in self._defined if pair[0] == plans.digest]:
            self._forget(digest, case_id)

    def _define(self, plans: Plans, case_id: str) -> None:
        if (plans.digest, case_id) not in self._defined:
            prepared = self.prepared[case_id]
            key = f"{plans.digest}:{case_id}"
            self.server.define(
                key,
                plans.by_case[case_id],
                prepared.inputs,
                prepared.expected,
                prepared.stale,
                mutates=self.problem.mutates,
            )
            self._defined.add((plans.digest, case_id))

    def _forget(self, digest: str, case_id: str) -> None:
        self.server.forget(f"{digest}:{case_id}")
        self._defined.discard((digest, case_id))


def _of_case(e: Execution) -> Execution:
    """An execution under its case's id, where the server knows the case by plans and id."""
    return Execution(
        e.case_id.rpartition(":")[2], e.configuration, e.outcome, e.statistics, e.output_hash, e.hazards
    )  # `replace` takes several times as long


def requests_for(cases: Iterable[Case], configurations: Sequence[Configuration]) -> list[Request]:
    """All pairs of cases and configurations, case by case."""
    return [(case.id, configuration) for case in cases for configuration in configurations]
