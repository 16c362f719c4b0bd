"""`truekernel rules`: the mutation rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from truekernel.cli.output import console, print_json

if TYPE_CHECKING:
    from truekernel.mutation import Rule


def rules(*patterns: str, json: Annotated[bool, Parameter(negative="")] = False) -> int:
    """List the mutation rules; with the name of one, show it with its examples.

    Parameters
    ----------
    patterns
        Names, classes ("sync", "benign") or globs ("drop-*"). Default: all rules that make faults.
    json
        Print one JSON document.
    """
    from truekernel import mutation

    chosen = mutation.select(patterns)
    if json:
        print_json([_document(rule) for rule in chosen.values()])
    elif len(patterns) == 1 and patterns[0] in chosen:
        console().print(mutation.describe(chosen[patterns[0]]), soft_wrap=True)
    else:
        _print(list(chosen.values()))
        if not patterns:
            benign = len(mutation.benign_rules())
            console().print(
                f"\n{len(chosen)} rules; and {benign} benign ones that keep the meaning: truekernel rules benign"
            )
    return 0


def _document(rule: Rule) -> dict[str, Any]:
    return {
        "name": rule.name,
        "class": rule.rule_class,
        "description": rule.description,
        "source": rule.source,
        "file": rule.file,
        "flags": list(rule.flags),
        "examples": [{"before": example.before, "after": list(example.results)} for example in rule.examples],
    }


def _print(chosen: list[Rule]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("class", no_wrap=True)
    table.add_column("rule", no_wrap=True)
    table.add_column("what it does", overflow="fold")
    for rule in chosen:
        table.add_row(rule.rule_class, rule.name, rule.description)
    console().print(table)
