"""`truekernel checkers`: what an audit can measure."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from truekernel.cli.output import console, print_json


def checkers(*, json: Annotated[bool, Parameter(negative="")] = False) -> int:
    """List the checkers that an audit can measure, and names that stand for several.

    A function of yours can be one too: --checker package.module:function; and a command: --checker-cmd "python my_eval.py {reference} {candidate}".

    Parameters
    ----------
    json
        Print one JSON document.
    """
    from truekernel.checkers import GROUPS
    from truekernel.checkers import checkers as known

    found = known()
    if json:
        print_json(
            [
                {"name": name, "version": checker.version, "source_url": checker.source_url}
                for name, checker in found.items()
            ]
        )
        return 0
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("checker", "version", "source"):
        table.add_column(column, overflow="fold")
    for name, checker in found.items():
        table.add_row(name, checker.version, checker.source_url or "this package")
    for name, members in GROUPS.items():
        table.add_row(name, "", f"stands for {' and '.join(members)}")
    console().print(table)
    return 0
