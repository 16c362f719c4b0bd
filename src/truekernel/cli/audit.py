"""`truekernel audit`: measure checkers."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from truekernel.cli.names import names_of, whole
from truekernel.cli.output import console

DEFAULT_RUN = Path("runs/audit")
_Plain = Parameter(negative="")
_Whole = Parameter(converter=whole)

GPU_WORKERS = 3
"""More wait for each other: a GPU gives contexts slices of its time, and making one takes many. Their compile processes use the other cores."""


def audit(
    *,
    checker: Annotated[list[str] | None, Parameter(name=("--checker", "--checkers"), negative="")] = None,
    checker_cmd: Annotated[list[str] | None, _Plain] = None,
    checker_seconds: float = 300.0,
    problems: Annotated[list[str] | None, Parameter(name=("--problems", "--problem"), negative="")] = None,
    program: Annotated[list[Path] | None, Parameter(name=("--program", "--programs"), negative="")] = None,
    solves: str | None = None,
    kernelbench: Path | None = None,
    rules: Annotated[list[str] | None, Parameter(name=("--rules", "--rule"), negative="")] = None,
    sample: Annotated[int | None, _Whole] = None,
    seed: Annotated[int, _Whole] = 0,
    workers: Annotated[int | None, _Whole] = None,
    device: Literal["cpu", "cuda", "cpu,cuda"] = "cpu",
    sanitise: Annotated[bool, _Plain] = False,
    run: Path = DEFAULT_RUN,
    resume: Annotated[bool, _Plain] = False,
    fail_over: float | None = None,
    json: Annotated[bool, _Plain] = False,
    html: Path | None = None,
) -> int:
    """Mutate programs, run every mutant, and report how many wrong ones each checker accepts and how many right ones it rejects.

    Needs no GPU. A killed audit goes on with the same command and --resume; nothing that was stored is run again.

    Parameters
    ----------
    checker
        Checker to measure (see `truekernel checkers`), or package.module:function of yours; may be repeated. Default: all.
    checker_cmd
        Command of yours to measure, e.g. "python my_eval.py {reference} {candidate}": two Python files in the form of KernelBench; or with {reference_output} and
        {candidate_output}, two files of torch.save. It says its verdict as the last JSON line, {"correct": true}, or by exit status 0 or 1. May be repeated.
    checker_seconds
        Limit of one run of such a command.
    problems
        Problems, programs or families to take, or globs over them. Default: all.
    program
        A .cu file of yours to audit with: beside a launch plan (.py of the same name), or with host code whose function solve(...)
        launches its kernels; may be repeated. Only these are taken unless --problems adds some of ours.
    solves
        The problem that the files of --program solve (see `truekernel problems`), where their plans do not say so.
    kernelbench
        Your checkout of KernelBench: its references and inputs take the place of ours, for programs whose problem it has; weights are drawn as its models draw them.
    rules
        Mutation rules or classes to apply, or globs over them (see `truekernel rules`). Default: all.
    sample
        Run only this many mutants, drawn in proportion to program and class.
    seed
        Seed of the sample.
    workers
        Worker processes. Default: one for each processor, three on a GPU.
    device
        Where kernels are executed: on this machine's processors, on an NVIDIA GPU, or on both, which tells where they disagree.
    sanitise
        On a GPU, run survivors and mutants that nothing proves wrong under compute-sanitizer too.
    run
        Directory that keeps the run.
    resume
        Go on with a run that was stopped.
    fail_over
        Exit with 1 when a checker accepts more than this share of the wrong kernels (0 to 1).
    json
        Print the summary as one JSON document.
    html
        Where to write the report. Default: report.html in the run directory.
    """
    from truekernel.audit import run_audit
    from truekernel.audit.options import DEFAULT_CHECKERS, AuditOptions
    from truekernel.checkers import command_name
    from truekernel.cli.progress import shown_progress
    from truekernel.cli.report import print_report
    from truekernel.corpus import load_program
    from truekernel.errors import BadInputError

    own = tuple(load_program(path, problem=solves) for path in program or ())
    if solves is not None and not own:
        raise BadInputError(f"--solves {solves}: give the file that solves it with --program FILE.cu")
    commands = tuple(command_name(text, checker_seconds) for text in checker_cmd or ())
    both = device == "cpu,cuda"
    options = AuditOptions(
        run_dir=run / "cuda" if both else run,
        checkers=(names_of(checker) + commands) or DEFAULT_CHECKERS,
        problems=names_of(problems),
        programs=own,
        rules=names_of(rules),
        sample=sample,
        seed=seed,
        workers=_workers(workers, "cpu" if device == "cpu" else "cuda"),
        device="cpu" if device == "cpu" else "cuda",
        sanitise=sanitise,
        kernelbench=kernelbench,
        resume=resume,
        fail_over=fail_over,
    )
    with shown_progress() as progress:
        if both:
            here = replace(options, run_dir=run / "cpu", device="cpu", workers=_workers(workers, "cpu"), sanitise=False)
            run_audit(here, progress)
        summary = run_audit(options, progress)
    if both:
        from truekernel.audit.device_comparison import compare, write
        from truekernel.report.devices import print_comparison

        found = compare(run / "cpu", run / "cuda")
        write(found, run / "comparison.json")
        print_comparison(found, console(error=json))
    return print_report(summary, html=html or run / "report.html", json=json, fail_over=fail_over)


def _workers(asked: int | None, device: str) -> int:
    cores = len(os.sched_getaffinity(0))
    return asked if asked is not None else cores if device == "cpu" else min(GPU_WORKERS, cores)
