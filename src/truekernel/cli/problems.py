"""`truekernel problems`: what programs of the corpus compute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from truekernel.cli.output import console, print_json

if TYPE_CHECKING:
    from truekernel.model import Problem


def problems(*patterns: str, json: Annotated[bool, Parameter(negative="")] = False) -> int:
    """List the problems and the programs that solve them.

    Parameters
    ----------
    patterns
        Names of problems, programs or families, or globs over them. Default: all.
    json
        Print one JSON document.
    """
    from truekernel import corpus
    from truekernel.audit.plan import select_programs

    everything = corpus.problems()
    programs: dict[str, list[str]] = {}
    for program in select_programs(patterns):
        programs.setdefault(program.problem, []).append(program.name)
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
        "axes": {
            name: {"official": axis.official, "audit": axis.audit, "odd": list(axis.odd), "kind": axis.kind}
            for name, axis in problem.axes.items()
        },
        "programs": programs,
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


def _sizes(axes: dict[str, int]) -> str:
    return " ".join(f"{name}={length}" for name, length in axes.items())
