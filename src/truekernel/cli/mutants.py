"""`truekernel mutants`: what the rules make of a CUDA file."""

from __future__ import annotations

import json as json_format
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from truekernel.cli.names import names_of
from truekernel.cli.output import console, print_json
from truekernel.errors import BadInputError

if TYPE_CHECKING:
    from truekernel.model import Mutant

INDEX = "index.json"


def mutants(
    file: Path,
    /,
    *,
    rule: Annotated[list[str] | None, Parameter(name=("--rule", "--rules"), negative="")] = None,
    diff: Annotated[bool, Parameter(negative="")] = False,
    write: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """List the mutants of any CUDA file: each a small fault that your own tests should catch.

    Parameters
    ----------
    file
        A CUDA source file.
    rule
        Rules or classes to apply, or globs over them (see `truekernel rules`). May be repeated, and hold several with commas. Default: all.
    diff
        Show each mutant's change, as `patch -p1` takes it.
    write
        Write each mutant's whole source as ID.cu into this directory, and index.json with the id, rule, class and line of each.
    json
        Print one JSON document.
    """
    from truekernel.mutation import mutants_of_file

    made = mutants_of_file(file, names_of(rule))
    if file.is_file():
        _note_unread(file)
    if write is not None:
        _write(made, write)
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


def _write(made: list[Mutant], folder: Path) -> None:
    """One file a mutant, and the index. Raises BadInputError where the folder can't be written, or holds mutants of an earlier call: a loop over
    its files would take them for these."""
    wanted = {f"{mutant.id}.cu" for mutant in made}
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = sorted(path.name for path in folder.glob("*.cu") if path.name not in wanted)
        if others:
            raise BadInputError(f"--write {folder}: holds other files ({others[0]}): give an empty directory")
        for mutant in made:
            written.append(folder / f"{mutant.id}.cu")
            written[-1].write_bytes(mutant.source.encode())
        written.append(folder / INDEX)
        written[-1].write_text(json_format.dumps([_entry(mutant) for mutant in made], indent=2) + "\n")
    except OSError as error:
        for path in written:  # a part of them would pass for all
            path.unlink(missing_ok=True)
        raise BadInputError(f"--write {folder}: {error.strerror}: choose another directory") from None
    console(error=True).print(f"{len(made)} mutants and {INDEX}: {folder}", soft_wrap=True)


def _entry(mutant: Mutant) -> dict[str, Any]:
    first = mutant.made_by[0]
    return {
        "id": mutant.id,
        "file": f"{mutant.id}.cu",
        "rule": first.rule,
        "class": first.rule_class,
        "line": first.site.line,
        "rules": list(dict.fromkeys(one.rule for one in mutant.made_by)),
    }


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
        "diff": f"{mutant.diff}\n" if mutant.diff else "",
    }


def _print(made: list[Mutant], diff: bool) -> None:
    out = console()
    for mutant in made:
        first = mutant.made_by[0]
        names = ", ".join(dict.fromkeys(one.rule for one in mutant.made_by))
        out.print(f"{mutant.id}  {first.site.line}:{first.site.column}  {first.rule_class}  {names}", soft_wrap=True)
        if diff:
            for line in mutant.diff.split("\n"):
                style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
                out.print(line, style=style, soft_wrap=True)
    classes = Counter(mutant.made_by[0].rule_class for mutant in made)
    parts = ", ".join(f"{name} {count}" for name, count in classes.items())
    out.print(f"{len(made)} mutants{': ' if parts else ''}{parts}", soft_wrap=True)
