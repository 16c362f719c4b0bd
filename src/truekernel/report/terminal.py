"""The summary on a terminal."""

from __future__ import annotations

from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from truekernel.audit.summary import Summary
from truekernel.report import figures, wording

_MOST_PAIRS = 12


def print_summary(summary: Summary, console: Console, *, survivors: int = 5) -> None:
    """Headline, scores, misses by class, vacuous problems and the first `survivors` surviving mutants."""
    lead = wording.leading(summary)
    if lead is not None:
        console.print(Text(wording.headline(lead), style="bold"))
    if not summary.complete:
        console.print(
            f"[yellow]This run is not finished:[/] `truekernel audit --run {summary.run.directory} --resume` goes on."
        )
    console.print(_counts(summary))
    console.print(_scores(summary))
    for score in summary.checkers:
        if score.broken:
            console.print(Text(f"{score.title} is broken: {score.broken}", style="red"))
    console.print(_classes(summary))
    if summary.vacuity.entries:
        console.print(_vacuity(summary))
    _survivors(summary, console, survivors)
    if summary.scaled:
        console.print(Text(f"\n{summary.scaled_note}", style="dim"))


def _counts(summary: Summary) -> Text:
    c = summary.counts
    return Text(
        f"{wording.count(c.unique)} unique mutants of {wording.programs(summary)}: {wording.count(c.witnessed)} proven wrong "
        f"({wording.count(c.crashes)} by a fault, {wording.count(c.timeouts)} by time), {wording.count(c.masked)} masked, "
        f"{wording.count(c.unobserved)} unobserved, {wording.count(c.host_differs + c.infrastructure)} not scored. "
        f"Besides: {wording.count(c.identical)} identical to the original, {wording.count(c.duplicates)} duplicates, "
        f"{wording.count(c.stillborn)} stillborn. {wording.count(c.hazards)} with a hazard."
    )


def _table(title: str, *columns: str, texts: int = 1) -> Table:
    """A plain table whose first `texts` columns hold words, the others figures; the first is never broken."""
    table = Table(
        title=f"\n{title}",
        title_justify="left",
        title_style="bold",
        header_style="dim",
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for number, column in enumerate(columns):
        justify: Literal["left", "right"] = "left" if number < texts else "right"
        table.add_column(column, justify=justify, overflow="fold", no_wrap=number == 0)
    return table


def _scores(summary: Summary) -> Table:
    table = _table(
        "Scores",
        "checker",
        "accepts\nwrong",
        "95 %\ninterval",
        "rejects\nright",
        "with quar-\nantined",
        "without\nvacuous",
        "precision-\nblind cases",
    )
    for score in summary.checkers:
        if score.broken:
            table.add_row(Text(score.title), Text("broken", style="red"))
            continue
        right = score.false_rejection
        table.add_row(
            Text(score.title),
            Text(wording.percent(score.miss.value), style="bold"),
            Text(wording.interval(score.miss)),
            f"{wording.count(right.hits)} of {wording.count(right.n)}",
            wording.percent(score.miss_with_quarantined.value),
            wording.percent(score.miss_without_vacuous.value),
            "-" if score.case_counts is None else f"{score.case_counts.blind} of {score.case_counts.cases}",
        )
    return table


def _classes(summary: Summary) -> Table:
    scored = [score for score in summary.checkers if not score.broken]
    table = _table("Wrong kernels accepted, by class", "class", "n", *(score.title for score in scored))
    by_checker = [{group.name: group.rate for group in score.miss_by_class} for score in scored]
    for name in dict.fromkeys(group for rates in by_checker for group in rates):
        rates = [own.get(name) for own in by_checker]
        n = next((rate.n for rate in rates if rate is not None), 0)
        table.add_row(name, wording.count(n), *("-" if rate is None else wording.percent(rate.value) for rate in rates))
    return table


def _vacuity(summary: Summary) -> Table:
    pairs = figures.vacuous_pairs(summary.vacuity)
    table = _table("Vacuous: a trivial output passes", "problem", "checker", "audit sizes", "official sizes", texts=4)
    for pair in pairs[:_MOST_PAIRS]:
        sizes = (f"{own[0].trivial}, {wording.margin(own[0])}" if own else "" for own in (pair.audit, pair.official))
        table.add_row(pair.problem, Text(pair.checker), *sizes)
    if len(pairs) > _MOST_PAIRS:
        table.add_row(f"and {len(pairs) - _MOST_PAIRS} more")
    return table


def _survivors(summary: Summary, console: Console, most: int) -> None:
    if not summary.survivors or most < 1:
        return
    console.print(Text(f"\nWrong kernels that a checker accepts: {len(summary.survivors)}", style="bold"))
    titles = _titles(summary)
    for survivor in summary.survivors[:most]:
        rules = ", ".join(dict.fromkeys(change.rule for change in survivor.changes))
        console.print(
            Text(
                f"  {survivor.program}: {rules}; accepted by {', '.join(titles.get(name, name) for name in survivor.accepted_by)}"
            ),
            soft_wrap=True,
        )
        console.print(
            Text(f"    {wording.replay_command(survivor.id, summary.run.directory)}", style="cyan"), soft_wrap=True
        )
    if len(summary.survivors) > most:
        console.print(Text(f"  and {len(summary.survivors) - most} more, in the HTML report", style="dim"))


def _titles(summary: Summary) -> dict[str, str]:
    """Checkers' names as they are shown: "(scaled)" after those that were measured at other sizes than their own."""
    return {score.name: score.title for score in summary.checkers}
