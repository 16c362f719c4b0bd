"""`truekernel mutants`: what the rules make of a CUDA file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from truekernel.cli.output import console, print_json

if TYPE_CHECKING:
    from truekernel.model import Mutant


def mutants(
    file: Path,
    /,
    *,
    rule: Annotated[list[str] | None, Parameter(negative="")] = None,
    diff: Annotated[bool, Parameter(negative="")] = False,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """List the mutants of any CUDA file: each a small fault that your own tests should catch.

    Parameters
    ----------
    file
        A CUDA source file.
    rule
        Rules or classes to apply, or globs over them (see `truekernel rules`). May be repeated. Default: all.
    diff
        Show each mutant's change.
    json
        Print one JSON document.
    """
    from truekernel.mutation import mutants_of_file

    made = mutants_of_file(file, rule or ())
    _note_unread(file)
    if json:
        print_json([_document(mutant) for mutant in made])
    else:
        _print(made, diff)
    return 0


def _note_unread(file: Path) -> None:
    """Say on standard error where the parser could not follow: nothing is mutated there."""
    from truekernel.source import parse_cuda

    errors = parse_cuda(file.read_text(encoding="utf-8"), str(file)).errors
    if errors:
        more = f", and at {len(errors) - 1} more places" if len(errors) > 1 else ""
        place = f"{file}:{errors[0].line}:{errors[0].column}"
        console(error=True).print(f"{place}: this does not parse and is left as it is{more}", soft_wrap=True)


def _document(mutant: Mutant) -> dict[str, Any]:
    return {
        "id": mutant.id,
        "made_by": [
            {
                "rule": made.rule,
                "class": made.rule_class,
                "line": made.site.line,
                "column": made.site.column,
                "start": made.site.start,
                "end": made.site.end,
                "replacement": made.replacement,
            }
            for made in mutant.made_by
        ],
        "flags": list(mutant.flags),
        "diff": mutant.diff,
    }


def _print(made: list[Mutant], diff: bool) -> None:
    out = console()
    for mutant in made:
        first = mutant.made_by[0]
        names = ", ".join(dict.fromkeys(one.rule for one in mutant.made_by))
        out.print(f"{mutant.id}  {first.site.line}:{first.site.column}  {first.rule_class}  {names}", soft_wrap=True)
        if diff:
            for line in mutant.diff.splitlines():
                style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
                out.print(f"    {line}", style=style, soft_wrap=True)
    classes = Counter(mutant.made_by[0].rule_class for mutant in made)
    parts = ", ".join(f"{name} {count}" for name, count in classes.items())
    out.print(f"{len(made)} mutants{': ' if parts else ''}{parts}", soft_wrap=True)
