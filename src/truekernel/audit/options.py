"""What an audit is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from truekernel.errors import BadInputError
from truekernel.model import Program
from truekernel.trial.devices import DeviceName

DEFAULT_CHECKERS = ("kernelbench", "kernelbench-verified", "exact-official", "truekernel")


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """Options of `run_audit`.

    `checkers`: names, or `package.module:function` for a callable of the user's. `problems`: names, families or globs of problems or programs;
    empty = all. `programs`: programs of the user's own, as `load_program` reads them; they are audited instead of the corpus',
    or beside those that `problems` names. `rules`: names, classes or globs of rules; empty = all. `sample`: number of mutants, drawn stratified by rule class and
    program with `seed`; None = all. `device`: "cpu" or "cuda". `sanitise`: on a GPU,
    run quarantined mutants and survivors under compute-sanitizer too. `kernelbench`: a checkout of KernelBench, whose references and inputs take the place of ours; only
    programs whose problem it has are audited. `fail_over`: the exit code is 1 when a checker's miss rate is above it.
    """

    run_dir: Path
    checkers: tuple[str, ...] = DEFAULT_CHECKERS
    problems: tuple[str, ...] = ()
    programs: tuple[Program, ...] = ()
    rules: tuple[str, ...] = ()
    sample: int | None = None
    seed: int = 0
    workers: int = 2
    device: DeviceName = "cpu"
    sanitise: bool = False
    kernelbench: Path | None = None
    resume: bool = False
    fail_over: float | None = None

    def __post_init__(self) -> None:
        """Refuse values that can't be meant."""
        if self.sample is not None and self.sample < 1:
            raise BadInputError(f"--sample {self.sample}: give the number of mutants to draw, 1 or more")
        if self.workers < 1:
            raise BadInputError(f"--workers {self.workers}: give 1 or more")
        if self.fail_over is not None and not 0 <= self.fail_over <= 1:
            raise BadInputError(f"--fail-over {self.fail_over}: give a miss rate between 0 and 1")
        if self.sanitise and self.device == "cpu":
            raise BadInputError("--sanitise: audits on a CPU always do; give it with --device cuda")
        if not self.checkers:
            raise BadInputError("--checker: name at least one checker")


@dataclass(frozen=True, slots=True)
class Progress:
    """Where an audit stands. `done`/`total` count mutants; `seconds_left` is None until there is a rate to tell it from."""

    stage: str
    done: int
    total: int
    seconds: float
    seconds_left: float | None
