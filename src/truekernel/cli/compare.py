"""`truekernel compare`: which of several candidates to take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from truekernel.cli.bench import duration
from truekernel.cli.names import names_of, whole
from truekernel.cli.output import console, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from truekernel.judge.compare.records import Compared, Entry, Pair

MOST_SHOWN = 3


def compare(
    *candidates: str,
    problem: str = "",
    precision: Annotated[list[str] | None, Parameter(name=("--precision", "--precisions"), negative="")] = None,
    times: bool = True,
    pairs: Annotated[int, Parameter(converter=whole)] = 8,
    baseline: Annotated[list[str] | None, Parameter(name=("--baseline", "--baselines"), negative="")] = None,
    call_seconds: float = 60.0,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Compare two or more candidates for one problem, and say which to take and why.

    Each is judged as by `truekernel check`, all on the same secret inputs, and their outputs are compared with each other. Right ones whose device code can be timed are timed as by
    `truekernel bench` where there is an NVIDIA GPU; without one the rest is told. Exits with 0 when one can be advised, with 1 when none can.

    Parameters
    ----------
    candidates
        Two or more, each as for `truekernel check`. They are called A, B, ... in this order.
    problem
        What they must compute: a name (see `truekernel problems`), or a reference file. Default: the one that the launch plans beside .cu files name in PROBLEM.
    precision
        Precision that a candidate says it computes in, where that is not the problem's own, by its letter: B=tf32. May be repeated, and hold several with commas.
    times
        Time them where there is a GPU.
    pairs
        Pairs of fresh processes of a timing, 2 or more.
    baseline
        Baselines to time against, or globs over their names. Default: all.
    call_seconds
        Limit of one call, in seconds.
    json
        Print one JSON document.
    """
    from truekernel.errors import BadInputError
    from truekernel.judge.bench.bench import BASELINES
    from truekernel.judge.bench.choosing import chosen
    from truekernel.judge.compare.compare import compare as put_beside
    from truekernel.judge.compare.handed_in import check_words, hand_in, stated_problem
    from truekernel.judge.posing import pose
    from truekernel.judge.steps import new_secret

    if pairs < 2:
        raise BadInputError(f"--pairs {pairs}: an interval needs 2 or more")
    if not call_seconds > 0:
        raise BadInputError(f"--call-seconds {call_seconds:g}: give a time above 0")
    baselines = chosen(names_of(baseline), tuple(BASELINES))
    check_words(candidates)
    name = problem or stated_problem(candidates)
    posed = pose(name)
    handed_in = hand_in(candidates, posed.problem, names_of(precision))
    found = put_beside(
        handed_in,
        posed,
        name,
        secret=new_secret(),
        timed=times,
        pairs=pairs,
        baselines=baselines,
        call_seconds=call_seconds,
    )
    if json:
        print_json(found.model_dump(mode="json"))
    else:
        print_compared(found, console())
    return found.exit_code


def print_compared(found: Compared, out: Console) -> None:
    """A comparison for people."""
    from rich.table import Table

    table = Table("")
    for entry in found.candidates:
        table.add_column(f"{entry.label}  {Path(entry.file).name}", overflow="fold")
    for name in _facts(found.candidates[0]):
        table.add_row(name, *(_facts(entry)[name] for entry in found.candidates))
    out.print(f"for {found.problem}", soft_wrap=True)
    out.print(table)
    for pair in found.pairs:
        out.print(f"{pair.first} and {pair.second}: {_apart(pair)}", soft_wrap=True)
    _print_times(found, out)
    for text in found.not_measured:
        out.print(text, soft_wrap=True)
    out.print(f"{'ADVICE' if found.take else 'NO ADVICE'}  {found.advice}", soft_wrap=True)


def _facts(entry: Entry) -> dict[str, str]:
    verdict, look, who = entry.verdict, entry.auditability, entry.deciding
    kernels = {
        "plan": "its own kernels, launched by us as its plan says",
        "translated host code": "its own kernels, launched by us as its host code says",
        "host code of its own": "host code of its own, kernels of the library",
    }[who.launches]
    calls = f"; it calls {_some(who.calls)}" if who.calls else ""
    changes = [f"{change.name} (by its {change.stage})" for change in verdict.state]
    code = [("read", look.readable), ("mutated", look.mutated), ("sanitised", look.sanitised)]
    able = ", ".join(name for name, yes in code if yes)
    found = verdict.precision
    return {
        "verdict": f"{verdict.word.upper()}: {verdict.why}",
        "who decides": f"{kernels}{calls}",
        "precision": f"declared {found.declared or 'none'}, found {found.found or 'unknown'}",
        "same bits again": {True: "yes", False: "no", None: "unknown"}[verdict.deterministic],
        "changes": _some(changes) or "nothing",
        "hazards": _some(verdict.hazards) or ("none" if look.sanitised else "not looked for: no sanitised build"),
        "text": f"{_count(look.files, 'file')}, {_count(look.lines, 'line')}, {_count(look.kernels, 'kernel')}",
        "device code": f"can be {able}" if able else "is not in its text",
        "time": f"{entry.times.word}: {entry.times.why}" if entry.times else "not measured",
    }


def _some(texts: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(texts) - MOST_SHOWN} more" if len(texts) > MOST_SHOWN else ""
    return ", ".join(texts[:MOST_SHOWN]) + more


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _apart(pair: Pair) -> str:
    if not pair.cases:
        return "no case on which both gave outputs"
    cases = f"on {_count(pair.cases, 'case')}"
    if pair.same_bits:
        return f"the same bits {cases}"
    words = []
    if pair.largest is not None:
        size = "infinitely many" if pair.largest >= 1e300 else f"{pair.largest:.3g}"
        words.append(f"at most {size} error scales apart" + (f", on {pair.where}" if pair.where else ""))
    if pair.nonfinite:
        words.append(f"{pair.nonfinite} values are NaN or infinite in one alone")
    if pair.others:
        words.append(f"{pair.others} indices or codes differ")
    return f"other bits {cases}: {'; '.join(words) or 'equal values'}"


def _print_times(found: Compared, out: Console) -> None:
    from rich.table import Table

    table = Table("candidate", "against", "its time", "candidate's", "ratio", "95 % interval", "verdict")
    rows = [(entry.label, row) for entry in found.candidates if entry.times for row in entry.times.rows]
    rows += [(pair.first, pair.time) for pair in found.pairs if pair.time]
    for label, row in rows:
        notes = ("", ", of lower precision")[not row.precise] + ("", ", clocks disagree")[not row.agree]
        times = (duration(row.seconds), duration(row.candidate_seconds))
        table.add_row(label, row.name, *times, f"{row.ratio:.3f}", f"{row.low:.3f} to {row.high:.3f}", row.word + notes)
    if rows:
        out.print(table)
    for entry in found.candidates:
        if entry.untimed and not any(entry.untimed in text for text in found.not_measured):
            out.print(f"{entry.label} is not timed: {entry.untimed}", soft_wrap=True)
        for note in entry.times.notes if entry.times else ():
            out.print(f"note  {entry.label}: {note}", soft_wrap=True)
