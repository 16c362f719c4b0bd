"""`truekernel checkers`: what an audit can measure."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from truekernel.cli.output import console, print_json


def checkers(*, json: Annotated[bool, Parameter(negative="")] = False) -> int:
    """List the checkers that an audit can measure. Any importable callable can be one too: --checker package.module:function.

    Parameters
    ----------
    json
        Print one JSON document.
    """
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
    console().print(table)
    return 0
