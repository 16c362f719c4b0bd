"""`truekernel check`: judge one candidate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from truekernel.cli.output import console, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from truekernel.judge.verdict import Verdict

MOST_CHANGES = 10
MOST_CASES = 6
"""Rejected cases that the terminal lists; `--json` and bundles have all."""


def check(
    candidate: str,
    /,
    *,
    problem: str,
    precision: str = "",
    bundle: Path | None = None,
    call_seconds: float = 60.0,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Judge one kernel that somebody hands in and that may cheat: is it right on cases that it can't know?

    Needs no GPU. The candidate runs in a process of its own behind walls (`truekernel doctor` lists them); references, expected outputs and seeds stay outside. Exits with 0 when it
    is right, with 1 when it is wrong or not shown to be right.

    Parameters
    ----------
    candidate
        FILE.cu beside its launch plan FILE.py, or with a host function solve(...); FILE.py with class ModelNew in plain PyTorch; or FILE.py:FUNCTION.
    problem
        What it must compute: a name (see `truekernel problems`), or a file with Model, get_inputs and get_init_inputs, or with reference(...) and get_inputs().
    precision
        Precision that the candidate says it computes in, where that is not the problem's own: tf32, float16, bfloat16, float8.
    bundle
        Write the evidence: a new directory, or a file that ends in .zip. `truekernel replay` repeats it.
    call_seconds
        Limit of one call, in seconds.
    json
        Print the verdict as one JSON document.
    """
    from truekernel.errors import BadInputError
    from truekernel.judge.candidates import load_candidate
    from truekernel.judge.check import check as judge
    from truekernel.judge.evidence import check_place, write_bundle
    from truekernel.judge.posing import pose
    from truekernel.judge.steps import new_secret

    if not call_seconds > 0:
        raise BadInputError(f"--call-seconds {call_seconds:g}: give a time above 0")
    if bundle is not None:
        check_place(bundle)
    posed = pose(problem)
    handed_in = load_candidate(candidate, posed.problem)
    secret = new_secret()
    verdict = judge(handed_in, posed, secret=secret, declared=precision, call_seconds=call_seconds)
    seal = ""
    if bundle is not None:
        seal = write_bundle(bundle, handed_in, posed, verdict, secret, declared=precision)
    if json:
        print_json(verdict.model_dump(mode="json"))
    else:
        print_verdict(verdict, console())
        if bundle is not None:
            console(error=True).print(f"evidence: {bundle}, seal {seal}", soft_wrap=True)
    return verdict.exit_code


def print_verdict(verdict: Verdict, out: Console) -> None:
    """A verdict for people."""
    from truekernel.judge.verdict import MEANING

    def line(name: str, text: str) -> None:
        out.print(f"{name:<13}{text}", soft_wrap=True)

    line(verdict.word.upper(), verdict.why)
    line("", MEANING[verdict.word])
    line(
        "candidate",
        f"{verdict.candidate} ({verdict.form}) for {verdict.problem}, sha256 {verdict.candidate_sha256[:16]}",
    )
    accepted = sum(case.verdict == "accept" for case in verdict.cases)
    line("cases", f"{accepted} of {len(verdict.cases)} accepted, with seeds that were secret, by {verdict.checker}")
    rejected = [case for case in verdict.cases if case.verdict != "accept"]
    for case in rejected[:MOST_CASES]:
        axes = ", ".join(f"{name} {length}" for name, length in case.axes.items())
        line("", f"{case.verdict}: {case.recipe} ({axes}{', same place' if case.follows else ''}): {case.why}")
    if len(rejected) > MOST_CASES:
        line("", f"and {len(rejected) - MOST_CASES} more")
    for text in verdict.dropped:
        line("left out", text)
    if verdict.trivial:
        line("vacuous", f"{', '.join(verdict.trivial)} would pass too")
    line("determinism", verdict.determinism)
    found = verdict.precision
    line("precision", f"declared {found.declared or 'none'}, found {found.found or 'unknown'} ({found.why})")
    for text in verdict.hazards:
        line("hazard", text)
    for change in verdict.state[:MOST_CHANGES]:
        when = "its import" if change.stage == "import" else "its calls"
        line("changed", f"{change.name} from {change.before or 'nothing'} to {change.after or 'nothing'}, by {when}")
    if len(verdict.state) > MOST_CHANGES:
        line("", f"and {len(verdict.state) - MOST_CHANGES} more")
    up = [wall.name for wall in verdict.walls if wall.up]
    down = [f"{wall.name} ({wall.detail})" for wall in verdict.walls if not wall.up]
    line("walls", ", ".join(up) or "none")
    if down:
        line("not up", ", ".join(down))
    for text in verdict.not_covered:
        line("not covered", text)
    line("took", f"{verdict.seconds['total']:.1f} s")
