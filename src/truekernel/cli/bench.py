"""`truekernel bench`: is one candidate faster?"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from truekernel.cli.names import names_of, whole
from truekernel.cli.output import console, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from truekernel.judge.bench.bench import Result

GOOD = ("FASTER", "SAME")


def bench(
    candidate: str,
    other: str | None = None,
    /,
    *,
    problem: str,
    pairs: Annotated[int, Parameter(converter=whole)] = 8,
    baseline: Annotated[list[str] | None, Parameter(name=("--baseline", "--baselines"), negative="")] = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Time one kernel against PyTorch, or against another kernel, in a way that the kernel can't influence.

    Needs an NVIDIA GPU. Numbers come first: what is wrong is not timed. Only device code runs beside the clock: a process of ours launches it, each call on other inputs at other
    addresses, in fresh pairs of processes and alternate blocks. Exits with 0 when the candidate is faster than the fastest baseline of its precision or the same, else with 1.
    `truekernel check` judges whether it is right on many more cases.

    Parameters
    ----------
    candidate
        FILE.cu beside its launch plan FILE.py, or with a host function solve(...).
    other
        Another such file to compare with, in place of the baselines.
    problem
        What both compute: a name (see `truekernel problems`), or a reference file as for `truekernel check`.
    pairs
        Pairs of fresh processes, 2 or more.
    baseline
        Baselines to take, or globs over their names. Default: all.
    json
        Print the result with all samples as one JSON document.
    """
    from truekernel.errors import BadInputError
    from truekernel.judge.bench.bench import BASELINES
    from truekernel.judge.bench.bench import bench as measure
    from truekernel.judge.bench.choosing import chosen
    from truekernel.judge.candidates import load_candidate
    from truekernel.judge.posing import pose
    from truekernel.judge.steps import new_secret

    if pairs < 2:
        raise BadInputError(f"--pairs {pairs}: an interval needs 2 or more")
    if other is not None and baseline:
        raise BadInputError("give another candidate or --baseline, not both")
    titles = chosen(names_of(baseline), tuple(BASELINES))
    posed = pose(problem)
    handed_in = load_candidate(candidate, posed.problem)
    rival = None if other is None else load_candidate(other, posed.problem)
    result = measure(handed_in, posed, problem, secret=new_secret(), other=rival, pairs=pairs, baselines=titles)
    if json:
        print_json(asdict(result))
    else:
        print_result(result, console())
    return 0 if result.word in GOOD else 1


def print_result(result: Result, out: Console) -> None:
    """A result for people."""
    from rich.table import Table

    out.print(f"{result.word}  {result.why}", soft_wrap=True)
    axes = ", ".join(f"{name} {length}" for name, length in result.axes.items())
    out.print(f"on {result.device}, {axes}", soft_wrap=True)
    if result.rows:
        table = Table("against", "its time", "candidate's", "ratio", "95 % interval", "verdict", "its numbers")
        for row in result.rows:
            found = row.comparison
            table.add_row(
                row.name,
                duration(row.seconds),
                duration(row.candidate_seconds),
                f"{found.ratio:.3f}",
                f"{found.low:.3f} to {found.high:.3f}",
                found.word if row.agree else f"{found.word}, clocks disagree",
                "precise" if row.precise else "of lower precision",
            )
        out.print(table)
        warm = f"{duration(result.warm_seconds)} when the L2 cache holds its input"
        floor = f"{duration(result.floor)} for its memory traffic at {result.bandwidth / 1e12:.2f} TB/s"
        out.print(f"cold calls; {warm}; {floor}", soft_wrap=True)
    for note in result.notes:
        out.print(f"note  {note}", soft_wrap=True)


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
