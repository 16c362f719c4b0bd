"""Progress of an audit on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from truekernel.cli.output import console

if TYPE_CHECKING:
    from rich.console import Console

    from truekernel.audit.options import Progress

QUIET_SECONDS = 30.0
LINE_SECONDS = 10.0
"""Least time between two plain lines of the same stage."""


@contextmanager
def shown_progress() -> Iterator[Callable[[Progress], None]]:
    """A function to give to `run_audit`; what it shows ends with the block."""
    target = console(error=True)
    if not target.is_terminal:
        yield Lines(target)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[times]}"),
    )
    with Bars(*columns, console=target, transient=True) as bars:
        task = bars.add_task("starting", total=None, times="")

        def show(progress: Progress) -> None:
            bars.update(
                task,
                description=progress.stage,
                completed=progress.done,
                total=progress.total or None,
                times=times(progress),
            )

        yield show


class Lines:
    """Progress as lines of text: at the start and the end of a stage, and every ten seconds between. None before something is done, or half a minute has gone: until then
    what was asked for may be refused, and that is one line."""

    def __init__(self, target: Console) -> None:
        self._console = target
        self._stage = ""
        self._said_at = float("-inf")

    def __call__(self, progress: Progress) -> None:
        """Say where the audit stands, when it is time to."""
        if not progress.total or (not progress.done and progress.seconds < QUIET_SECONDS):
            return
        fresh = progress.stage != self._stage
        ended = 0 < progress.total == progress.done
        if not (fresh or ended or progress.seconds - self._said_at >= LINE_SECONDS):
            return
        self._stage, self._said_at = progress.stage, progress.seconds
        self._console.print(f"{progress.stage} {progress.done} of {progress.total}, {times(progress)}")


def times(progress: Progress) -> str:
    """ "12 s, 1 min 5 s left"."""
    left = "" if progress.seconds_left is None else f", {_span(progress.seconds_left)} left"
    return f"{_span(progress.seconds)}{left}"


def _span(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
