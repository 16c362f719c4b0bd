"""How a chunk's mutants are compiled: each alone, and together in shared translation units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from truekernel.errors import PlanError
from truekernel.execution import simt
from truekernel.model import Mutant
from truekernel.trial.stage import Plans

if TYPE_CHECKING:
    from truekernel.audit.setup import Base, ProblemSetup

How = Literal["schema", "batch", "alone"]


@dataclass(frozen=True, slots=True)
class Build:
    """A mutant that can be executed: variant of a library, with its launch plans."""

    library: simt.Library
    variant: int
    plans: Plans
    how: How


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
    mutants: Sequence[Mutant], plans: Mapping[str, Plans], *, checked: bool = False
) -> tuple[dict[str, Build], dict[str, str]]:
    """Each mutant compiled alone; why the others do not compile."""
    builds: dict[str, Build] = {}
    failures: dict[str, str] = {}
    for mutant in mutants:
        result = simt.compile_single(mutant.source, plans[mutant.id].kernels, simt.Options(checked=checked))
        if isinstance(result, simt.CompileFailure):
            failures[mutant.id] = str(result)
        else:
            builds[mutant.id] = Build(result, 0, plans[mutant.id], "alone")
    return builds, failures


def shared(base: Base, mutants: Sequence[Mutant], *, checked: bool = False) -> dict[str, Build]:
    """Mutants of the .cu text in shared translation units: a schema for expressions and statements, a batch for the rest.

    What neither can hold is left out.
    """
    numbered = {number: mutant for number, mutant in enumerate(mutants, start=1) if mutant.file == "cu"}
    if not numbered:
        return {}
    kernels, options = base.plans.kernels, simt.Options(checked=checked)
    schema = simt.compile_schema(base.program.source, kernels, {n: m.edits for n, m in numbered.items()}, options)
    builds = {
        numbered[number].id: Build(library, number, base.plans, "schema") for number, library in schema.members.items()
    }
    rest = {number: numbered[number].source for number in schema.leftovers}
    if rest:
        for number, library in simt.compile_batch(rest, kernels, options).members.items():
            builds[numbered[number].id] = Build(library, number, base.plans, "batch")
    return builds


def drop(setup: ProblemSetup, builds: Mapping[str, Build]) -> None:
    """Close the libraries of `builds`."""
    for library in {build.library.path: build.library for build in builds.values()}.values():
        setup.stage.server.release(library)
        library.close()
