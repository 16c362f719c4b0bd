"""What a candidate's outputs on one case mean. Runs in the judge's process, on bytes that left the candidate's."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from truekernel.checkers import Checker, Judgement
from truekernel.judge.session import Ran
from truekernel.judge.steps import Step
from truekernel.judge.verdict import CaseRecord
from truekernel.model import Configuration, Execution
from truekernel.numerics import statistics

MOST_SHARE = 1e9


@dataclass(frozen=True, slots=True)
class Judged:
    """A case judged. `outputs`: of its first execution that ended well."""

    record: CaseRecord
    outputs: list[torch.Tensor] | None


def judge_step(step: Step, checker: Checker, ran: Sequence[tuple[Configuration, Ran]], *, poisoned: bool) -> Judged:
    """Judge the executions of one case. `poisoned`: buffers held poison where the configuration says so (CUDA); a Python candidate allocates its own."""
    executions: list[Execution] = []
    refused = ""
    digest = hashlib.sha256()
    share: float | None = None
    for configuration, one in ran:
        refused = refused or one.refused
        if one.modified and not refused:
            refused = f"it writes to its input '{one.modified[0]}'"
        found: dict[str, float] = {}
        if one.outputs is not None:
            fill = configuration.fill if poisoned else "stale"
            found = statistics(one.outputs, step.expected, fill, checker.tolerances)
            share = max(share or 0.0, min(checker.margin(step.case, found), MOST_SHARE))
            for output in one.outputs:
                digest.update(raw_bytes(output))
        executions.append(Execution(step.case.id, configuration, one.outcome, found))
    judgement = Judgement("reject", refused) if refused else _judged(step, checker, executions)
    first = next((one.outputs for _, one in ran if one.outputs is not None), None)
    why = judgement.why if poisoned else judgement.why.removesuffix(" (gpu schedule)")
    record = CaseRecord(
        case_id=step.case.id,
        axes=step.case.lengths,
        recipe=step.case.recipe,
        seed=step.case.seed,
        follows=step.follows,
        near=step.near,
        verdict=judgement.verdict,
        why=why,
        share=share,
        output_sha256=digest.hexdigest() if share is not None else "",
    )
    return Judged(record, first)


def _judged(step: Step, checker: Checker, executions: Sequence[Execution]) -> Judgement:
    if not executions:
        return Judgement("undetermined", "nothing was executed")
    return checker.judge(step.case, executions)


def raw_bytes(tensor: torch.Tensor) -> bytes:
    """The bytes of a tensor's elements."""
    flat = tensor.contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def same_bits(first: Sequence[torch.Tensor], second: Sequence[torch.Tensor]) -> bool:
    """Whether two executions gave the same bytes."""
    return [raw_bytes(tensor) for tensor in first] == [raw_bytes(tensor) for tensor in second]
