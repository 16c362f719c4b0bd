"""What the witness search of a problem executes (cases, other orders of threads, other contents of memory), and which mutants costly parts of it concern."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from truekernel.cases.grammar import parse_recipe
from truekernel.cases.stretched import TILED, is_costly
from truekernel.cases.witness import witness_shapes
from truekernel.model import Case, Configuration, Problem
from truekernel.trial.devices import Device
from truekernel.trial.stage import Request, requests_for

ADVERSARIAL: tuple[Configuration, ...] = (
    Configuration("reverse"),
    Configuration("warp_greedy"),
)
"""Schedules, besides that of a GPU, under which the witness search looks for faults of synchronisation. Among 12,623 witnessed mutants none fell to another order alone."""
ADVERSARIAL_CASES = 4
"""The witness search tries adversarial schedules on its first cases only ..."""
ADVERSARIAL_SHAPES: dict[str, tuple[str, ...]] = {
    "eight": ("reverse",),
    "long": ("reverse", "warp_greedy"),
}
"""... and on these: rows that end within a warp, and for `HANDING_OVER` the longest rows, where one block waits for what another one gives. (Tiled families go over their tiles on short axes as well: none of their
mutants fell to it. On many rows, where loops over rows go round more than once, one of 13,000 did, and they took a fiftieth of the search.)"""
HANDING_OVER = ("scan",)
"""Families whose blocks wait for each other: in all others no mutant fell to another order of threads on the longest rows alone."""
STALE = Configuration(fill="stale")
"""Memory that nobody has written holds what an allocator left, where it otherwise holds poison, which may happen to be what a kernel forgets to write."""
STRAY = Configuration(fill="nan")
"""A read beyond a buffer whose value a factor of zero hides, as one of a tile's padding does, shows where that memory holds NaN. Tried where stale memory is, on devices that have it."""
STALE_CASES = 1
"""The witness search tries stale memory on its first case ..."""
STALE_SHAPES = ("broad",)
"""... and on these, where outputs fill several blocks. (On "crowd" none of a thousand mutants fell to it.)"""
NUMERIC = ("arithmetic", "precision", "semantic")
"""Classes of faults in what is computed; in all others the fault is in which elements, threads or memory take part."""
ORDINARY = ("normal", "uniform", "special")
"""Base recipes in which each element matters."""


def search_requests(problem: Problem, witnesses: Sequence[Case], device: Device) -> list[Request]:
    """All requests of the search, in the order in which they are worth trying."""
    adversarial = [configuration for configuration in ADVERSARIAL if configuration.schedule in device.schedules]
    found = requests_for(witnesses, [Configuration()]) + requests_for(witnesses[:ADVERSARIAL_CASES], adversarial)
    memories = [configuration for configuration in (STALE, STRAY) if configuration.fill in device.fills]
    found += requests_for(witnesses[:STALE_CASES], memories)
    return found + _on_shapes(problem, witnesses, adversarial, memories)


def costly_requests(problem: Problem, cases: Mapping[str, Case], requests: Iterable[Request]) -> frozenset[Request]:
    """Those on cases of many elements or rows."""
    return frozenset(request for request in requests if is_costly(problem, cases[request[0]].lengths))


def concerns(case: Case, configuration: Configuration, rule_class: str) -> bool:
    """Whether a costly case can show a fault of this class: special values are for faults in what is computed, other orders of threads and contents of memory for all others."""
    if configuration != Configuration():
        return rule_class not in NUMERIC
    recipe = parse_recipe(case.recipe)
    return rule_class in NUMERIC or (recipe.base in ORDINARY and not recipe.offset)


def _on_shapes(
    problem: Problem, witnesses: Sequence[Case], adversarial: Sequence[Configuration], memories: Sequence[Configuration]
) -> list[Request]:
    """The adversarial requests and those on other contents of memory that some shapes have besides: of each shape, its first case."""
    shapes = witness_shapes(problem)
    first = {case.axes: case for case in reversed(witnesses)}
    cases = {shape: first[axes] for shape in shapes if (axes := tuple(sorted(shapes[shape].items()))) in first}
    found = [(cases[shape].id, c) for shape in STALE_SHAPES if shape in cases for c in memories]
    for shape, schedules in ADVERSARIAL_SHAPES.items() if problem.family not in TILED else ():
        if shape == "long" and problem.family not in HANDING_OVER:
            continue
        if shape in cases and cases[shape] not in witnesses[:ADVERSARIAL_CASES]:
            found += [(cases[shape].id, c) for c in adversarial if c.schedule in schedules]
    return found
