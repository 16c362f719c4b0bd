"""`truekernel problems`: what programs of the corpus compute, and what a checkout of KernelBench holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from truekernel.cli.output import console, print_json

if TYPE_CHECKING:
    from truekernel.model import Problem
    from truekernel.trial.bindings import Bindings


def problems(
    *patterns: str,
    kernelbench: Path | None = None,
    level: Annotated[list[int] | None, Parameter(negative="")] = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """List the problems and the programs that solve them.

    Parameters
    ----------
    patterns
        Names of problems, programs or families, or globs over them. Default: all.
    kernelbench
        Your own checkout of KernelBench: list its problems instead, the programs bound to them, and what can't be adapted with the reason. Its files are
        run in processes of their own.
    level
        Only this level of the checkout. May be repeated.
    json
        Print one JSON document.
    """
    from truekernel import corpus
    from truekernel.audit.plan import select_programs
    from truekernel.errors import BadInputError

    if kernelbench is None and level:
        raise BadInputError("--level: give --kernelbench PATH too, it selects levels of that checkout")
    programs: dict[str, list[str]] = {}
    for program in select_programs(patterns):
        programs.setdefault(program.problem, []).append(program.name)
    if kernelbench is not None:
        from truekernel.trial.bindings import bindings

        found = bindings(kernelbench, levels=level or ())
        if json:
            print_json(_checkout_document(found, programs))
        else:
            _print_checkout(found, programs)
        return 0
    everything = corpus.problems()
    chosen = {name: problem for name, problem in everything.items() if name in programs}
    if json:
        print_json([_document(problem, programs[name]) for name, problem in chosen.items()])
    else:
        _print(chosen, programs)
    return 0


def _document(problem: Problem, programs: list[str]) -> dict[str, Any]:
    return {
        "name": problem.name,
        "family": problem.family,
        "summary": problem.summary,
        "source": problem.source,
        "kernelbench": problem.kernelbench,
        "axes": _axes_document(problem),
        "programs": programs,
    }


def _axes_document(problem: Problem) -> dict[str, Any]:
    return {
        name: {"official": axis.official, "audit": axis.audit, "odd": list(axis.odd), "kind": axis.kind}
        for name, axis in problem.axes.items()
    }


def _print(chosen: dict[str, Problem], programs: dict[str, list[str]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("family", "problem", "audit sizes", "official sizes", "programs"):
        table.add_column(column, overflow="fold")
    for name, problem in chosen.items():
        table.add_row(
            problem.family,
            name,
            _sizes(problem.audit_axes()),
            _sizes(problem.official_axes()),
            ", ".join(programs[name]),
        )
    out = console()
    out.print(table)
    out.print(f"\n{len(chosen)} problems, {sum(map(len, programs.values()))} programs")


def _bound_programs(found: Bindings, programs: dict[str, list[str]]) -> dict[str, list[str]]:
    """Programs that solve a problem of the checkout, by its id."""
    by_id: dict[str, list[str]] = {}
    for name, problem in found.bound.items():
        by_id.setdefault(problem.kernelbench, []).extend(programs.get(name, ()))
    return by_id


def _checkout_document(found: Bindings, programs: dict[str, list[str]]) -> dict[str, Any]:
    bound = _bound_programs(found, programs)
    return {
        "adapted": [
            {
                "id": id_,
                "name": adapted.problem.name,
                "summary": adapted.problem.summary,
                "axes": _axes_document(adapted.problem),
                "notes": list(adapted.notes),
                "programs": bound.get(id_, []),
            }
            for id_, adapted in found.loaded.adapted.items()
        ],
        "refused": [{"id": refused.file.id, "why": refused.why} for refused in found.loaded.refused],
        "not_bound": [{"problem": name, "why": why} for name, why in found.failed.items()],
    }


def _print_checkout(found: Bindings, programs: dict[str, list[str]]) -> None:
    from rich.table import Table

    bound = _bound_programs(found, programs)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("id", "problem", "axes", "programs"):
        table.add_column(column, overflow="fold")
    for id_, adapted in found.loaded.adapted.items():
        axes = " ".join(f"{name}={axis.official}" for name, axis in adapted.problem.axes.items())
        table.add_row(id_, adapted.file.title, axes, ", ".join(bound.get(id_, [])))
    out = console()
    out.print(table)
    count = sum(map(len, bound.values()))
    out.print(f"\n{len(found.loaded.adapted)} problems adapted, {count} programs bound to {len(found.bound)} of them")
    for refused in found.loaded.refused:
        out.print(f"refused {refused.file.id} {refused.file.title}: {refused.why}", soft_wrap=True)
    for name, why in found.failed.items():
        out.print(f"not bound: {name}: {why}", soft_wrap=True)


def _sizes(axes: dict[str, int]) -> str:
    return " ".join(f"{name}={length}" for name, length in axes.items())
