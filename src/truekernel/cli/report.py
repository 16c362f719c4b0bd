"""`truekernel report`: what a stored run found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from truekernel.cli.output import console

if TYPE_CHECKING:
    from truekernel.audit.summary import Summary


def report(
    run: Path,
    /,
    *,
    html: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
    fail_over: float | None = None,
) -> int:
    """Print what a run found, also while it is still running.

    Parameters
    ----------
    run
        Run directory of an audit.
    html
        Also write the report as one self-contained page.
    json
        Print the summary as one JSON document instead.
    fail_over
        Exit with 1 when a checker accepts more than this share of the wrong kernels (0 to 1), or is broken.
    """
    from truekernel.audit import summarise
    from truekernel.errors import BadInputError

    if fail_over is not None and not 0 <= fail_over <= 1:
        raise BadInputError(f"--fail-over {fail_over}: give a miss rate between 0 and 1")
    return print_report(summarise(run), html=html, json=json, fail_over=fail_over)


def print_report(summary: Summary, *, html: Path | None, json: bool, fail_over: float | None) -> int:
    """Print a summary, write its page, and return the exit code: with `fail_over` 1 when a checker's miss rate is over it, or when a checker is broken."""
    from truekernel.report import json_document, print_summary, write_html
    from truekernel.report.wording import broken

    out, notes = console(), console(error=True)
    if json:
        print(json_document(summary), end="")
    else:
        print_summary(summary, out)
    if html is not None:
        write_html(summary, html)
        notes.print(f"HTML report: {html}", soft_wrap=True)
    over = summary.over(fail_over) if fail_over is not None else ()
    if over:
        notes.print(f"over --fail-over {fail_over:g}: {', '.join(over)}", soft_wrap=True)
    failed = summary.broken if fail_over is not None else ()
    for score in failed:
        notes.print(f"--fail-over can't be decided, {score.name} is broken: {broken(score)}", soft_wrap=True)
    return 1 if over or failed else 0
