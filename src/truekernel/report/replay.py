"""A replayed witness on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from truekernel.audit.summary import ReplayResult
from truekernel.report import wording

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def print_replay(result: ReplayResult, console: Console) -> None:
    """The mutant's change, the case, what the run recorded and what is seen now."""
    console.print(Text(f"{result.program} ({result.problem}), mutant {result.mutant}", style="bold"))
    for line in result.diff.splitlines():
        console.print(Text(f"  {line}", style=_STYLES.get(line[:1], "")), soft_wrap=True)
    schedule = result.schedule if result.schedule != "random" else f"random, seed {result.schedule_seed}"
    rows = [
        ("case", f"{result.recipe}, seed {result.seed}, {wording.axes(result.axes)}, schedule {schedule}"),
        ("recorded", wording.plain(result.stored)),
        ("now", wording.plain(result.replayed)),
    ]
    if result.worst is not None and "NaN or infinite" not in result.stored:
        worst = f"{wording.scales(result.worst)} error scales; {wording.honest(result.honest_worst)}"
        rows.append(("worst error", worst))
    if result.element is not None:
        rows.append(("element", wording.element(result.element)))
    rows += [(name, wording.plain(verdict)) for name, verdict in result.verdicts.items()]
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        console.print(Text(f"{name:<{width}}  {text}"), soft_wrap=True)
    if result.same:
        console.print(Text("The same as recorded.", style="bold green"))
    else:
        console.print(Text(f"Not the same as recorded: {result.message}", style="bold red"), soft_wrap=True)
    if not result.wrong:
        console.print(Text("The witness no longer proves the mutant wrong.", style="red"))
