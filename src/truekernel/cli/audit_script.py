"""`truekernel audit-script`: what an evaluation script and the candidate inside change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from truekernel.cli.output import console, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from truekernel.judge.scripts.auditing import Run, ScriptAudit


def audit_script(
    script: Path,
    /,
    *arguments: Annotated[str, Parameter(allow_leading_hyphen=True)],
    metric: str = "",
    timeout: float = 600.0,
    level: bool = True,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Run somebody's evaluation script and report what it and the candidate inside change, and whether what they compare ran under the same conditions.

    The script runs as it is, with its arguments, watched from inside together with its Python children: switches of torch, environment, clocks, modules that are called. Where two of them ran in
    different states, it runs again with everything in the state of each. It is not confined: run only what you would run yourself. Exits with 1 where conditions differ or something was left changed.

    Parameters
    ----------
    script
        A Python file, run in the present folder.
    arguments
        What the script is given; after -- where they look like options of ours.
    metric
        Regular expression with one group: the numbers of its output that matter. Default: those behind the word speedup.
    timeout
        Seconds of one run.
    level
        Run it again in one state.
    json
        Print the result as one JSON document.
    """
    from truekernel.errors import BadInputError
    from truekernel.judge.scripts.auditing import METRIC
    from truekernel.judge.scripts.auditing import audit_script as look

    if not script.is_file():
        raise BadInputError(f"{script}: no such file")
    if not timeout > 0:
        raise BadInputError(f"--timeout {timeout:g}: give a time above 0")
    found = look(script, arguments, metric=metric or METRIC, timeout=timeout, level=level)
    if json:
        print_json(found.model_dump(mode="json"))
    else:
        print_audit(found, console())
    return found.exit_code


def print_audit(found: ScriptAudit, out: Console) -> None:
    """The result for people."""

    def line(name: str, text: str) -> None:
        out.print(f"{name:<22}{text}", soft_wrap=True)

    line("script", f"{found.script}, sha256 {found.sha256[:16]}, {found.processes} watched processes")
    for subject in found.subjects:
        state = ", ".join(f"{key} {value}" for key, value in subject.state.items())
        where = f" ({subject.where})" if subject.where else ""
        line(
            "called",
            f"{subject.number + 1}. {subject.name}{where}: {subject.calls} times{'; ' + state if state else ''}",
        )
    if len(found.subjects) > 1:
        line("", "in one process" if found.together else "each in a process of its own")
    for finding in found.findings:
        line(finding.kind, f"{finding.text}{f' ({finding.where})' if finding.where else ''}")
    for place in found.places:
        line(f"line {place.line}", f"{place.rule}: {place.text}: {place.harm}")
    for run in found.runs:
        line("as it is" if not run.held else "level", measured(run))
    if len(found.runs) == 1 and len(found.subjects) > 1 and not any(s.state for s in found.subjects):
        line("level", "all ran in one state already")
    for note in found.notes:
        line("note", note)


def measured(run: Run) -> str:
    """What one run measured, in words."""
    numbers = ", ".join(f"{number:g}" for number in run.metrics) or "no number"
    times = ", ".join(f"{name} {value:.4g} ms" for name, value in run.milliseconds.items())
    how = f"all as {run.held} ran: " if run.held else ""
    failed = "" if run.exit_code == 0 else f"; it ended with {run.exit_code}"
    return f"{how}its own number {numbers}; calls by the clock {times or 'unknown'}{failed}"
