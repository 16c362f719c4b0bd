"""How a chunk's mutants are compiled: each alone, and together in shared translation units."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from truekernel.errors import PlanError
from truekernel.execution.backend import Compiled
from truekernel.model import Mutant
from truekernel.trial.devices import Device, Source
from truekernel.trial.stage import Plans

if TYPE_CHECKING:
    from truekernel.audit.setup import Base, ProblemSetup


T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Build:
    """A mutant or honest variant that can be executed: variant of a library, with its launch plans."""

    library: Compiled
    variant: int
    plans: Plans


@dataclass(frozen=True, slots=True)
class Compilation:
    """A chunk's mutants with their launch plans and libraries, by id; and why others have none."""

    plans: Mapping[str, Plans]
    builds: Mapping[str, Build]
    refused: Mapping[str, str]


def compiled(setup: ProblemSetup, program: str, mutants: Sequence[Mutant]) -> Compilation:
    """Plan and compile a chunk. May run in a thread while earlier chunks execute."""
    plans, refused = plans_of(setup, setup.bases[program], mutants)
    own, failures = alone(setup.device, [m for m in mutants if m.id in plans], plans)
    return Compilation(plans, own, refused | failures)


def ahead(items: Iterable[T], work: Callable[[T], R], count: int) -> Iterator[tuple[T, R]]:
    """Each item with `work(item)`, in order; up to `count` items are worked on in threads while the caller is busy with one before, none when it is 0."""
    if count == 0:
        yield from ((item, work(item)) for item in items)
        return
    pending: deque[tuple[T, Future[R]]] = deque()
    with ThreadPoolExecutor(count) as threads:
        try:
            for item in items:
                pending.append((item, threads.submit(work, item)))
                if len(pending) > count:
                    first, future = pending.popleft()
                    yield first, future.result()
            while pending:
                first, future = pending.popleft()
                yield first, future.result()
        finally:
            for _, future in pending:
                future.cancel()


def plans_of(setup: ProblemSetup, base: Base, mutants: Sequence[Mutant]) -> tuple[dict[str, Plans], dict[str, str]]:
    """Launch plans of each mutant; why the others' plans can't be recorded."""
    plans: dict[str, Plans] = {}
    refused: dict[str, str] = {}
    for mutant in mutants:
        if mutant.file == "cu":
            plans[mutant.id] = base.plans
            continue
        try:
            plans[mutant.id] = setup.stage.plans(mutant.source, mutant.plan_source)
        except PlanError as error:
            refused[mutant.id] = str(error)
    return plans, refused


def alone(
    device: Device, mutants: Sequence[Mutant], plans: Mapping[str, Plans], *, checked: bool = False
) -> tuple[dict[str, Build], dict[str, str]]:
    """Each mutant compiled alone; why the others do not compile."""
    builds: dict[str, Build] = {}
    failures: dict[str, str] = {}
    results = _compiled(device, [Source(m.source, plans[m.id].kernels) for m in mutants], checked=checked)
    for mutant, result in zip(mutants, results, strict=True):
        if isinstance(result, str):
            failures[mutant.id] = result
        else:
            builds[mutant.id] = Build(result, 0, plans[mutant.id])
    return builds, failures


def _compiled(device: Device, sources: Sequence[Source], *, checked: bool) -> list[Compiled | str]:
    """Libraries of sources, or why they do not compile. Mutants of a launch plan keep the source, and share a library; not on a GPU, whose server tells by library what hangs."""
    if device.name != "cpu":
        return device.alone(sources, checked=checked)
    distinct = list(dict.fromkeys(sources))
    found = dict(zip(distinct, device.alone(distinct, checked=checked), strict=True))
    return [found[source] for source in sources]


def shared(device: Device, base: Base, mutants: Sequence[Mutant], *, checked: bool = False) -> dict[str, Build]:
    """Mutants of the .cu text in shared translation units; what none can hold is left out."""
    numbered = {number: mutant for number, mutant in enumerate(mutants, start=1) if mutant.file == "cu"}
    if not numbered:
        return {}
    parts = device.shared(
        Source(base.program.source, base.plans.kernels),
        {number: mutant.edits for number, mutant in numbered.items()},
        {number: mutant.source for number, mutant in numbered.items()},
        checked=checked,
    )
    return {numbered[n].id: Build(part.library, part.variant, base.plans) for n, part in parts.items()}


def drop(setup: ProblemSetup, builds: Mapping[str, Build]) -> None:
    """Close the libraries of `builds`."""
    for library in {id(build.library): build.library for build in builds.values()}.values():
        setup.stage.server.release(library)
        library.close()
