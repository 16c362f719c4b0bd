"""A user's own command as checker: `--checker-cmd "python my_eval.py {reference} {candidate}"`.

Placeholders, each a path of a file that exists while the command runs:
- `{reference}`: the problem in the form of KernelBench, with `Model`, `get_inputs` and `get_init_inputs`; `{candidate}`: the kernel with `ModelNew`. The candidate compiles in milliseconds. The command draws
  its own inputs and is asked once for each kernel.
- or `{reference_output}` and `{candidate_output}`: outputs of one execution, written by torch.save (a tensor, or a tuple of them). The command is asked once for each of the five official
  cases, until one does not accept.
- `{problem}` and `{id}` are the names of problem and kernel, for the command's own notes.

The verdict is that of the last line of standard output that is a JSON object with a key correct, correctness, passed or accepted (true or false) or verdict ("accept", "reject", or words like them).
Without such a line exit status 0 accepts and 1 rejects; so does a Python traceback or another status when the error is the kernel's own: one that the exported file raises, or CUDA's.
Everything else is a broken checker, not a verdict: another status, a signal, a traceback of another error, no end within the time limit.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shlex
import shutil
import signal
import string
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truekernel.cases import suite_seed
from truekernel.checkers.checker import ACCEPT, Judgement, fault
from truekernel.checkers.flat import OFFICIAL_TRIALS, PUBLISHED
from truekernel.checkers.kernelbench import SEEDS
from truekernel.errors import BadInputError
from truekernel.export import Subject, model, model_new
from truekernel.model import Axes, Case, Configuration, Execution, Problem
from truekernel.numerics import Tolerance

if TYPE_CHECKING:
    import torch

PREFIX = "cmd"
SECONDS = 300.0
FILES = frozenset({"reference", "candidate"})
OUTPUTS = frozenset({"reference_output", "candidate_output"})
NOTES = frozenset({"problem", "id"})
FLAGS = ("correct", "correctness", "passed", "accepted")
KERNEL_FAULTS = ("_TkKernelError", "CUDA error", "CUDA_ERROR_", "Error building extension")
"""What the last lines of an evaluator's traceback hold when the kernel failed, not the evaluator."""
_PYTHON_FAILED = re.compile(r'^(?:Traceback \(most recent call last\)|  File ".*", line \d+)', re.MULTILINE)
"""What Python writes about an error; one of syntax has no first line."""
WORDS: dict[str, str] = {
    **dict.fromkeys(("accept", "accepted", "pass", "passed", "correct", "ok", "right", "true"), "accept"),
    **dict.fromkeys(("reject", "rejected", "fail", "failed", "incorrect", "wrong", "false"), "reject"),
}


@dataclass(frozen=True, slots=True)
class CommandChecker:
    """Judges by a command, see above. `name`: "cmd@<seconds>:<command>", from which every process makes the same checker; `seconds`: limit of one run."""

    name: str
    command: tuple[str, ...]
    placeholders: frozenset[str]
    seconds: float = SECONDS
    version: str = ""
    source_url: str = ""
    tolerances: tuple[Tolerance, ...] = ()
    reseedable: bool = False
    needs_outputs: bool = True
    gated: bool = False

    @property
    def needs_files(self) -> bool:
        """Whether it judges source files (`judge_subject`) instead of outputs (`opinion`)."""
        return not self.placeholders & OUTPUTS

    def configurations(self, case: Case) -> tuple[Configuration, ...]:  # noqa: ARG002
        """As on a GPU, with what an allocator left."""
        return PUBLISHED

    def suite(self, problem: Problem) -> list[Case]:
        """KernelBench's five cases, where it judges outputs; the first of them where it draws its own."""
        return [
            Case.of(problem.name, problem.audit_axes(), "official", suite_seed(SEEDS, problem.name, number))
            for number in range(1 if self.needs_files else OFFICIAL_TRIALS)
        ]

    def judge(self, case: Case, executions: Sequence[Execution]) -> Judgement:  # noqa: ARG002
        """Faults as for every checker; the rest needs the command."""
        return fault(executions) or Judgement("undetermined", "the command was not asked")

    def margin(self, case: Case, statistics: Mapping[str, float]) -> float:  # noqa: ARG002
        """Unknown: the command says yes or no."""
        return math.nan

    def opinion(
        self, reference: Sequence[torch.Tensor], candidate: Sequence[torch.Tensor], execution: Execution | None
    ) -> Judgement:
        """What the command says of one execution's outputs."""
        import torch

        found = fault([execution]) if execution is not None else None
        if found is not None:
            return found
        if self.needs_files:
            return Judgement("undetermined", "the command judges source files, there is none of these outputs")
        with tempfile.TemporaryDirectory(prefix="truekernel-") as folder:
            paths = {"reference_output": Path(folder, "reference.pt"), "candidate_output": Path(folder, "candidate.pt")}
            torch.save(_one_or_all(reference), paths["reference_output"])
            torch.save(_one_or_all(candidate), paths["candidate_output"])
            return self.ask({**paths, "problem": "", "id": execution.output_hash if execution else "eager"})

    def judge_subject(
        self, subject: Subject, problem: Problem, axes: Axes, *, host: str = "nvrtc", reference: Path | None = None
    ) -> Judgement:
        """What the command says of a kernel: it is exported for sizes `axes`, next to a reference. `reference`: a problem file to use instead of one that calls ours."""
        with tempfile.TemporaryDirectory(prefix="truekernel-") as folder:
            candidate = Path(folder, "candidate.py")
            candidate.write_text(model_new(subject, problem, axes, host=host), encoding="utf-8")
            if reference is None:
                reference = Path(folder, "reference.py")
                reference.write_text(model(problem, axes), encoding="utf-8")
            return self.ask({"reference": reference, "candidate": candidate, "problem": problem.name, "id": subject.id})

    def ask(self, values: Mapping[str, str | Path]) -> Judgement:
        """Run the command with these values of its placeholders; what it says, or undetermined and why."""
        words = [word.format_map({name: str(value) for name, value in values.items()}) for word in self.command]
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            return _broken(f"{words[0]}: {error.strerror}")
        try:
            out, err = process.communicate(timeout=self.seconds)
        except subprocess.TimeoutExpired:
            _kill(process)
            return _broken(f"no end within {self.seconds:g} seconds")
        return _verdict(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def load_command(name: str) -> CommandChecker:
    """The checker of a name "cmd:<command>" or "cmd@<seconds>:<command>". Raises BadInputError for a placeholder or a program that is not there."""
    head, _, text = name.partition(":")
    _, _, limit = head.partition("@")
    try:
        command = tuple(shlex.split(text))
        seconds = float(limit) if limit else SECONDS
        named = {part for word in command for _, part, _, _ in string.Formatter().parse(word) if part is not None}
    except ValueError as error:
        raise BadInputError(f"--checker-cmd '{text}' can't be read: {error}") from None
    if not command or seconds <= 0:
        raise BadInputError(f"--checker-cmd '{text}': give a command, and a time limit above 0")
    known = FILES | OUTPUTS | NOTES
    if named - known:
        raise BadInputError(
            f"--checker-cmd: no placeholder {{{min(named - known)}}}: known are {', '.join(sorted(known))} (write {{{{ for a brace)"
        )
    if "candidate" not in named and "candidate_output" not in named:
        raise BadInputError("--checker-cmd: the command gets no kernel: write {candidate} or {candidate_output} in it")
    if named & FILES and named & OUTPUTS:
        raise BadInputError(
            "--checker-cmd: use {reference} and {candidate}, or {reference_output} and {candidate_output}, not both"
        )
    if shutil.which(command[0]) is None:
        raise BadInputError(f"--checker-cmd: no program '{command[0]}': install it or give its path")
    return CommandChecker(name, command, frozenset(named), seconds)


def command_name(text: str, seconds: float = SECONDS) -> str:
    """Name of the checker of a command."""
    return f"{PREFIX}@{seconds:g}:{text}"


def is_command(name: str) -> bool:
    """Whether a checker's name is that of a command."""
    return name.partition(":")[0].partition("@")[0] == PREFIX and ":" in name


def _verdict(status: int, out: str, err: str) -> Judgement:
    said = _last_object(out)
    if said is not None:
        word = "accept" if any(said.get(flag) is True for flag in FLAGS) else ""
        if any(said.get(flag) is False for flag in FLAGS):
            word = "reject"
        word = word or WORDS.get(str(said.get("verdict", "")).lower(), "")
        why = str(said.get("why") or said.get("reason") or "").strip()
        if word == "accept":
            return ACCEPT
        if word == "reject":
            return Judgement("reject", why or "the command says no")
        return _broken(why or f"its verdict is {said.get('verdict')!r}")
    if status == 0:
        return ACCEPT
    last = (err.strip().splitlines() or [""])[-1][:200]
    own = next((line for line in reversed(err.splitlines()) if any(fault in line for fault in KERNEL_FAULTS)), None)
    if own is not None and status > 0:
        return Judgement("reject", f"the kernel fails: {own.strip()[:200]}")
    if status == 1 and not _PYTHON_FAILED.search(err):
        return Judgement("reject", last or "the command ends with status 1")
    ended = f"signal {-status}" if status < 0 else f"status {status}"
    return _broken(f"the command ends with {ended}{': ' if last else ''}{last}")


def _last_object(out: str) -> dict[str, Any] | None:
    """The last line that is a JSON object with a verdict."""
    for line in reversed(out.splitlines()):
        if not line.strip().startswith("{"):
            continue
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and any(key in found for key in (*FLAGS, "verdict")):
            return found
    return None


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _broken(why: str) -> Judgement:
    return Judgement("undetermined", why)


def _one_or_all(tensors: Sequence[torch.Tensor]) -> torch.Tensor | tuple[torch.Tensor, ...]:
    parts = tuple(tensor.detach().cpu() for tensor in tensors)
    return parts[0] if len(parts) == 1 else parts
