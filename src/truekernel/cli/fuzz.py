"""`truekernel fuzz`: look for inputs that crash a library or make it silently wrong; `truekernel fuzz replay RUN`: are they still there?"""

from __future__ import annotations

import json as json_format
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from truekernel.cli.names import names_of, whole
from truekernel.cli.output import console, print_json
from truekernel.errors import BadInputError

if TYPE_CHECKING:
    from truekernel.fuzz.campaign import FuzzResult
    from truekernel.fuzz.options import FuzzProgress
    from truekernel.fuzz.records import Finding

DEFAULT_RUN = Path("runs/fuzz")
LINE_SECONDS = 10.0
_Plain = Parameter(negative="")
_Whole = Parameter(converter=whole)
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def fuzz(
    library: str,
    replayed: Path | None = None,
    /,
    *,
    ops: Annotated[list[str] | None, _Plain] = None,
    weight: Annotated[list[str] | None, Parameter(name=("--weight", "--weights"), negative="")] = None,
    budget: str = "10m",
    processor_time: Annotated[bool, _Plain] = False,
    policy: str = "uniform",
    start_from: Path | None = None,
    oracles: str = "eager",
    coverage: Annotated[list[str] | None, _Plain] = None,
    public_only: Annotated[bool, _Plain] = False,
    no_knowledge: Annotated[bool, _Plain] = False,
    no_constraints: Annotated[bool, _Plain] = False,
    no_seeds: Annotated[bool, _Plain] = False,
    most_calls: Annotated[int, _Whole] = 6,
    seed: Annotated[int, _Whole] = 0,
    workers: Annotated[int | None, _Whole] = None,
    run: Path = DEFAULT_RUN,
    resume: Annotated[bool, _Plain] = False,
    baseline: Path | None = None,
    export_issue: Path | None = None,
    scripts: Path | None = None,
    json: Annotated[bool, _Plain] = False,
) -> int:
    """Look for inputs that crash a deep-learning library, hang it, or make it silently wrong.

    `truekernel fuzz torch` makes test cases until the budget is spent; `truekernel fuzz replay RUN` runs the findings of a run again, for example with another
    version of the library. A killed run goes on with the same command and --resume; no finding is lost.

    Parameters
    ----------
    library
        The library to fuzz: torch. Or "replay".
    replayed
        With replay: a run directory, or the findings.json of one.
    ops
        Operators to fuzz: globs over their names (conv*, torch.linalg.*), or families ("linear algebra"). Default: all.
    weight
        How often to choose operators, e.g. "conv*=5"; may be repeated.
    budget
        How long: 90s, 10m, 8h.
    processor_time
        Count processor time of each worker in place of the clock: on a busy machine the amount of work is the same.
    policy
        What chooses: uniform, naive (types only, nothing learned), and learned ones.
    start_from
        Directory in which a policy saved what it learned in an earlier run (RUN/policy-0).
    oracles
        Judges beside crash, assertion, hang and memory: eager, compile (dear: seconds a case), or none.
    coverage
        Kinds of coverage to count: functions, overloads, lines; or none. Default: functions, overloads.
    public_only
        Leave out operators that only the dispatcher knows.
    no_knowledge
        Do not let past bug reports suggest operators and values.
    no_constraints
        Do not redraw calls within what samples show to belong together.
    no_seeds
        Do not mutate samples.
    most_calls
        Most calls of one test case, 1 to 6.
    seed
        Seed of all choices.
    workers
        Worker processes. Default: one for each processor.
    run
        Directory that keeps the run.
    resume
        Go on with a run that was stopped.
    baseline
        Findings that are known already (findings.json of an earlier run, or its directory): exit with 1 if there are others.
    export_issue
        Folder to write each finding to as the text of an issue.
    scripts
        Folder to write each finding to as a script.
    json
        Print one JSON document.
    """
    if library == "replay":
        if replayed is None:
            raise BadInputError(
                "replay what? Give a run directory, or the findings.json of one: truekernel fuzz replay RUN"
            )
        return _replay(replayed, json=json)
    if replayed is not None:
        raise BadInputError(
            f"'{replayed}' is one word too many: give the library alone, as in truekernel fuzz torch --budget 10m"
        )
    from truekernel.fuzz.campaign import run_fuzz
    from truekernel.fuzz.options import FuzzOptions
    from truekernel.fuzz.replaying import load_findings

    known = {finding.key for finding in load_findings(baseline)} if baseline else set()
    kinds = names_of(coverage)
    options = FuzzOptions(
        library,
        run,
        operators=names_of(ops),
        weights=_weights(weight or []),
        budget=seconds_of(budget),
        processor_time=processor_time,
        policy=policy,
        start_from=start_from,
        seed=seed,
        workers=len(os.sched_getaffinity(0)) if workers is None else workers,
        tier=oracles,
        coverage=() if kinds == ("none",) else kinds or ("functions", "overloads"),
        knowledge=not no_knowledge,
        constraints=not no_constraints,
        seeds=not no_seeds,
        internal=not public_only,
        most_calls=most_calls,
        resume=resume,
    )
    result = run_fuzz(options, _Lines())
    (run / "findings.json").write_text(json_format.dumps(result.document(), indent=1), encoding="utf-8")
    _write(result, library, scripts, export_issue)
    others = [finding for finding in result.findings if finding.key not in known] if baseline else []
    if json:
        print_json(result.document() | {"beyond_baseline": [finding.key for finding in others]})
    else:
        _print(result, others if baseline else None)
    return 1 if others else 0


def seconds_of(text: str) -> float:
    """Seconds of "90s", "10m", "8h" or "1.5h". Raises BadInputError for anything else."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip())
    if not found or float(found[1]) <= 0:
        raise BadInputError(f"--budget {text[:40]}: give a time such as 90s, 10m or 8h")
    return float(found[1]) * _UNITS[found[2]]


def _weights(given: list[str]) -> dict[str, float]:
    table = {}
    for text in names_of(given):
        name, _, number = text.partition("=")
        try:
            table[name] = float(number)
        except ValueError:
            raise BadInputError(f"--weight {text[:60]}: give a glob and a number, such as conv*=5") from None
    return table


class _Lines:
    """Progress as lines on standard error, every ten seconds; the last line is rewritten on a terminal."""

    def __init__(self) -> None:
        self._console = console(error=True)
        self._said = float("-inf")

    def __call__(self, progress: FuzzProgress) -> None:
        terminal = self._console.is_terminal
        if progress.seconds - self._said < (1.0 if terminal else LINE_SECONDS) and progress.seconds < progress.budget:
            return
        self._said = progress.seconds
        self._console.print(
            progress_text(progress), end="\r" if terminal and progress.seconds < progress.budget else "\n"
        )


def progress_text(progress: FuzzProgress) -> str:
    """ "1 min 0 s: 12345 cases (91 % accepted, 206 a second), 812 operators; functions 20123, overloads 900; 7 findings (3 public)"."""
    from truekernel.cli.progress import _span

    share = f"{100 * progress.valid / progress.executed:.0f} % accepted, " if progress.executed else ""
    reached = ", ".join(f"{kind} {count}" for kind, count in sorted(progress.coverage.items()))
    return (
        f"{_span(progress.seconds)}: {progress.executed} cases ({share}{progress.cases_a_second:.0f} a second), {progress.operators} operators"
        f"{'; ' + reached if reached else ''}; {progress.findings} findings ({progress.public} public)"
    )


def _write(result: FuzzResult, library: str, scripts: Path | None, issues: Path | None) -> None:
    if scripts is None and issues is None:
        return
    from truekernel.fuzz import libraries
    from truekernel.fuzz.script import export

    adapter = libraries.load(library)
    if scripts is not None:
        export(list(result.findings), adapter, scripts)
    if issues is not None:
        export(list(result.findings), adapter, issues, issues=True)


def _print(result: FuzzResult, others: list[Finding] | None) -> None:
    from rich.table import Table

    out = console()
    out.print(progress_text(result.progress))
    if result.findings:
        out.print(_table(Table(box=None, pad_edge=False), result.findings, set(result.fresh)))
    if others is not None:
        out.print(
            f"{len(others)} findings are not in the baseline"
            + (": " + ", ".join(one.key for one in others) if others else "")
        )


def _table(table: Any, findings: tuple[Finding, ...], fresh: set[str]) -> Any:
    for column in ("severity", "kind", "oracle", "API", "new", "finding"):
        table.add_column(column)
    for one in findings:
        api = "public" if one.public else "backward" if one.backward else "internal"
        table.add_row(one.severity, one.kind, one.oracle, api, "new" if one.key in fresh else "", one.title)
    return table


def _replay(path: Path, *, json: bool) -> int:
    """Exit code 0: nothing has changed; 1: a finding is mended or fails otherwise."""
    from truekernel.fuzz.replaying import load_findings, replay

    findings = load_findings(path)
    results = replay(findings)
    counts = {name: sum(one.verdict == name for one in results) for name in ("fails", "mended", "otherwise")}
    if json:
        print_json({"counts": counts, "findings": [one.document() for one in results]})
    else:
        out = console()
        for one in results:
            out.print(
                f"{one.verdict:9} {one.finding.title}"
                + (f" (now: {one.outcome.kind} {one.outcome.error})" if one.verdict != "fails" else "")
            )
        before = {name: value for one in findings for name, value in one.versions.items() if name == one.case.library}
        out.print(
            f"{counts['fails']} fail as before, {counts['mended']} are mended, {counts['otherwise']} fail otherwise; found with {before or 'no version stated'}"
        )
    return 1 if counts["mended"] or counts["otherwise"] else 0
