"""`truekernel problems`: what programs of the corpus compute, and what a checkout of KernelBench holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from truekernel.cli.output import console, print_json

if TYPE_CHECKING:
    from truekernel.model import Domain, Problem, TensorSpec
    from truekernel.trial.bindings import Bindings

_CTYPES: dict[str, str] = {
    "float32": "float",
    "float64": "double",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
}


def problems(
    *patterns: str,
    kernelbench: Path | None = None,
    level: Annotated[list[int] | None, Parameter(negative="")] = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """List the problems and the programs that solve them; with the name of one, show what a program of it gets and must return.

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
    elif len(patterns) == 1 and patterns[0] in chosen:
        name = patterns[0]
        console().print(_described(chosen[name], programs[name]), soft_wrap=True)
        others = [other for other in chosen if other != name]
        if others:
            console().print(f"\nThe family {name} also has: {', '.join(others)}", soft_wrap=True)
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
        "constants": dict(problem.constants),
        "inputs": [_tensor_document(spec) for spec in problem.inputs],
        "parameters": [_tensor_document(spec) for spec in problem.parameters],
        "outputs": [
            {"name": spec.name, "shape": list(spec.shape), "dtype": spec.dtype, "kind": spec.kind}
            for spec in problem.outputs
        ],
        "mutates": list(problem.mutates),
        "programs": programs,
    }


def _tensor_document(spec: TensorSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "shape": list(spec.shape),
        "dtype": spec.dtype,
        "domain": _domain(spec.domain),
        "recipe": spec.official,
        "scale": spec.scale,
    }


def _domain(domain: Domain) -> str:
    """The legal values in words."""
    if domain.kind == "index":
        return f"whole numbers from 0, below {domain.below}"
    if domain.kind == "boolean":
        return "0 or 1"
    low, high = domain.low > -math.inf, domain.high < math.inf
    if low and high:
        text = f"{domain.low:g} to {domain.high:g}"
    elif low or high:
        text = f"at least {domain.low:g}" if low else f"at most {domain.high:g}"
    else:
        text = "any"
    return f"{text}, NaN and infinities too" if domain.nonfinite else text


def _described(problem: Problem, programs: list[str]) -> str:
    """Several lines for people: all that a launch plan or a function solve(...) for the problem must know."""
    lines = [f"{problem.name} ({problem.family})", f"  {problem.summary}"]
    if problem.kernelbench:
        lines.append(f"  KernelBench: {problem.kernelbench}")
    if problem.source:
        lines.append(f"  source: {problem.source}")
    for title, specs in (("inputs", problem.inputs), ("parameters", problem.parameters)):
        rows = [
            (spec.name, _shape(spec.shape), spec.dtype, _domain(spec.domain), _draw(spec), _written(spec.name, problem))
            for spec in specs
        ]
        lines += _block(title, rows)
    lines += _block("outputs", [(spec.name, _shape(spec.shape), spec.dtype, spec.kind) for spec in problem.outputs])
    axes = [
        (name, f"official {axis.official}", f"audit {axis.audit}", axis.kind) for name, axis in problem.axes.items()
    ]
    lines += _block("axes", axes)
    lines += _block("constants", [(name, f"{value:g}") for name, value in problem.constants.items()])
    lines += ["", f"programs: {', '.join(programs)}"]
    lines.append(f"host function: {_solve(problem)}")
    return "\n".join(lines)


def _solve(problem: Problem) -> str:
    """The declaration of a host function that `audit --program` takes."""
    parameters = []
    for spec in problem.tensors:
        const = "" if spec.name in problem.mutates else "const "
        parameters.append(f"{const}{_CTYPES[spec.dtype]}* {spec.name}")
    parameters += [f"{_CTYPES[spec.dtype]}* {spec.name}" for spec in problem.outputs[len(problem.mutates) :]]
    parameters += [f"float {name}" for name in problem.constants]
    parameters += [f"int {name}" for name in problem.axes]
    return f"void solve({', '.join(parameters)})"


def _block(title: str, rows: Sequence[tuple[str, ...]]) -> list[str]:
    """A title and aligned columns; nothing where there are no rows."""
    if not rows:
        return []
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    aligned = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return ["", title, *(f"  {line}" for line in aligned)]


def _shape(shape: Sequence[str | int]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _draw(spec: TensorSpec) -> str:
    return f"drawn as {spec.official}" + ("" if spec.scale == "1" else f" * {spec.scale}")


def _written(name: str, problem: Problem) -> str:
    return "written in place" if name in problem.mutates else ""


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
