"""The summary on a terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from truekernel.audit.scores import CheckerScore, GroupRate
from truekernel.audit.summary import Summary
from truekernel.report import figures, wording
from truekernel.report.columns import Column, kept, letters, narrow, needed, parts, table, two_lines

_MOST_PAIRS = 12
_JOIN = "\u00a0"


def print_summary(summary: Summary, console: Console, *, survivors: int = 5) -> None:
    """Headline, scores, misses by class and by size of error, vacuous problems and the first `survivors` surviving mutants."""
    lead = wording.leading(summary)
    if lead is not None:
        console.print(Text(_filled(wording.headline(lead), console.width), style="bold"))
    for sentence in wording.beside(summary):
        console.print(Text(_filled(sentence, console.width)))
    if not summary.complete:
        console.print(
            Text.assemble(
                ("This run is not finished:", "yellow"),
                f" `truekernel audit --run {summary.run.directory} --resume` goes on.",
            )
        )
    console.print(_counts(summary))
    scored = [score for score in summary.checkers if not score.broken]
    if scored:
        _scores(scored, console)
    for score in summary.broken:
        if score is not lead:
            console.print(Text(f"{score.title} is broken: {wording.broken(score)}", style="red"))
    _groups("Wrong kernels accepted, by class", "class", scored, lambda score: score.miss_by_class, console)
    _groups(
        "Wrong kernels accepted, by size of error (in error scales)",
        "error",
        scored,
        lambda score: score.miss_by_size,
        console,
    )
    _vacuity(summary, console)
    _survivors(summary, console, survivors)
    if summary.scaled:
        console.print(Text(f"\n{summary.scaled_note}", style="dim"))
    if summary.run.kernelbench:
        console.print(Text(f"\n{wording.references(summary)}", style="dim"))


def _filled(sentence: str, width: int) -> str:
    """A sentence on lines of at most `width` letters; a figure is not parted from its percent sign, nor an interval in its middle."""
    joined = re.sub(r"(?<=\d) (?=%)|(?<=\d,) (?=[\d.]+\])", _JOIN, sentence)
    lines = textwrap.wrap(joined, width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace(_JOIN, " ")


def _counts(summary: Summary) -> Text:
    c = summary.counts
    return Text(
        f"{wording.count(c.unique)} unique mutants of {wording.programs(summary)}: {wording.count(c.witnessed)} proven wrong "
        f"({wording.count(c.crashes)} by a fault, {wording.count(c.timeouts)} by time), {wording.count(c.masked)} masked, "
        f"{wording.count(c.unobserved)} unobserved, {wording.count(c.host_differs + c.infrastructure)} not scored. "
        f"Besides: {wording.count(c.identical)} identical to the original, {wording.count(c.duplicates)} duplicates, "
        f"{wording.count(c.stillborn)} stillborn. {wording.count(c.hazards)} with a hazard."
    )


def _legend(titles: Sequence[str], console: Console) -> None:
    """What the letters in a heading stand for."""
    for letter, title in zip(letters(titles), titles, strict=True):
        console.print(Text(f"  {letter}  {title}"))


def _scores(scored: Sequence[CheckerScore], console: Console) -> None:
    titles = [score.title for score in scored]

    def columns(names: Sequence[str]) -> list[Column]:
        lines = [name.count("\n") for name in names]
        rows: list[tuple[str, ...]] = [
            (
                wording.percent(score.miss.value),
                wording.interval(score.miss),
                f"{wording.count(score.false_rejection.hits)} of {wording.count(score.false_rejection.n)}",
                wording.percent(score.miss_with_quarantined.value),
                wording.percent(score.miss_without_vacuous.value),
                "-" if score.case_counts is None else f"{score.case_counts.blind} of {score.case_counts.cases}",
            )
            for score in scored
        ]
        headings = (
            ("accepts\nwrong", 0),
            ("95 %\ninterval", 2),
            ("rejects\nright", 0),
            ("quarantined\nas wrong", 4),
            ("without\nvacuous", 3),
            ("blind\ncases*", 5),
        )
        figures_of = [
            Column(
                heading, [row[i] + "\n" * n for row, n in zip(rows, lines, strict=True)], spare, style="bold" * (not i)
            )
            for i, (heading, spare) in enumerate(headings)
        ]
        return [Column("checker", names, number=False), *figures_of]

    width = console.width
    for names in (titles, [two_lines(title) for title in titles]):
        chosen = columns(names)
        if needed(chosen) <= width:
            break
    else:
        chosen = kept(chosen, width)
        if needed(chosen) > width:
            _legend(titles, console)
            chosen = kept(columns(letters(titles)), width)
    console.print(table("Scores", chosen))
    left_out = [
        c.heading.replace("\n", " ").rstrip("*")
        for c in columns(titles)
        if c.heading not in {k.heading for k in chosen}
    ]
    if any(column.heading.endswith("*") for column in chosen):
        console.print(Text("* precision-blind: the next lower precision passes these cases", style="dim"))
    if left_out:
        console.print(Text(f"For want of width left out: {', '.join(left_out)}", style="dim"))


def _groups(
    title: str,
    heading: str,
    scored: Sequence[CheckerScore],
    of: Callable[[CheckerScore], Sequence[GroupRate]],
    console: Console,
) -> None:
    by_checker = [{group.name: group.rate for group in of(score)} for score in scored]
    names = list(dict.fromkeys(group for rates in by_checker for group in rates))
    if not names:
        return
    counts = [next(wording.count(own[name].n) for own in by_checker if name in own) for name in names]
    rates = [[wording.percent(own[name].value) if name in own else "-" for name in names] for own in by_checker]
    titles = [score.title for score in scored]
    left = [Column(heading, [name.removesuffix(" error scales") for name in names], number=False), Column("n", counts)]
    for heads in (titles, [two_lines(t) for t in titles], [narrow(t) for t in titles]):
        columns = [*left, *(Column(head, cells) for head, cells in zip(heads, rates, strict=True))]
        if needed(columns) <= console.width:
            console.print(table(title, columns))
            break
    else:
        bare = [
            Column(letter, [cell.removesuffix(" %") for cell in cells])
            for letter, cells in zip(letters(titles), rates, strict=True)
        ]
        for part in parts(left, bare, console.width):
            console.print(table(f"{title}, in %", part))
        _legend(titles, console)
    if any("." in n for n in counts):
        console.print(Text("A mutant that several rules make counts in equal parts for each.", style="dim"))


def _vacuity(summary: Summary, console: Console) -> None:
    pairs = figures.vacuous_pairs(summary.vacuity)
    if not pairs:
        return
    shown = pairs[:_MOST_PAIRS]
    sizes = [
        [f"{e.trivial}, {wording.margin(e)}" if (e := figures.shown_trivial(entries)) else "" for entries in own]
        for own in ([pair.audit for pair in shown], [pair.official for pair in shown])
    ]
    columns = [
        Column("problem", [pair.problem for pair in shown], number=False),
        Column("checker", [pair.checker for pair in shown], number=False),
        Column("audit sizes", sizes[0], number=False),
        Column("official sizes", sizes[1], number=False),
    ]
    title = "Vacuous: a trivial output passes"
    if needed(columns) <= console.width:
        console.print(table(title, columns))
    else:
        console.print(Text(f"\n{title}", style="bold"))
        for pair, audit, official in zip(shown, *sizes, strict=True):
            console.print(Text(f"{pair.problem}, {pair.checker}"))
            for name, text in (("audit sizes", audit), ("official sizes", official)):
                if text:
                    console.print(Padding(Text(f"{name}: {text}"), (0, 0, 0, 2)))
    if len(pairs) > len(shown):
        console.print(Text(f"and {len(pairs) - len(shown)} more", style="dim"))


def _survivors(summary: Summary, console: Console, most: int) -> None:
    if not summary.survivors or most < 1:
        return
    console.print(Text(f"\nWrong kernels that a checker accepts: {len(summary.survivors)}", style="bold"))
    console.print(Text("Those that most checkers accept come first, among them the most wrong ones.", style="dim"))
    titles = {score.name: score.title for score in summary.checkers}
    for survivor in summary.survivors[:most]:
        rules = ", ".join(dict.fromkeys(change.rule for change in survivor.changes))
        accepted = ", ".join(titles.get(name, name) for name in survivor.accepted_by)
        text = f"{survivor.program}: {rules}; {wording.size(survivor.witness.size)}; accepted by {accepted}"
        console.print(Padding(Text(text), (0, 0, 0, 2)))
        command = wording.replay_command(survivor.id, summary.run.directory)
        console.print(Text(f"    {command}", style="cyan"), soft_wrap=True)
    if len(summary.survivors) > most:
        console.print(Text(f"  and {len(summary.survivors) - most} more, in the HTML report", style="dim"))
