"""What a worker saw, as outcomes for people."""

from __future__ import annotations

from collections.abc import Iterable

from truekernel.execution.cuda.worker_process import Answer
from truekernel.model import LaunchPlan, Outcome, Status, Where

STATUSES: dict[int, Status] = {
    700: "out_of_bounds",  # CUDA_ERROR_ILLEGAL_ADDRESS
    717: "out_of_bounds",  # CUDA_ERROR_INVALID_ADDRESS_SPACE
    716: "misaligned",  # CUDA_ERROR_MISALIGNED_ADDRESS
    702: "timeout",  # CUDA_ERROR_LAUNCH_TIMEOUT
    710: "trap",  # CUDA_ERROR_ASSERT
    715: "trap",  # CUDA_ERROR_ILLEGAL_INSTRUCTION
    719: "trap",  # CUDA_ERROR_LAUNCH_FAILED: __trap()
}
"""Outcome of each error by which a kernel ends (CUDA Driver API, CUresult); any other is a crash."""


def outcome_of(answer: Answer, plan: LaunchPlan) -> Outcome:
    """Outcome of one execution."""
    if answer.status == "ok":
        return Outcome("ok", seconds=answer.seconds)
    if answer.status == "stray":
        return Outcome(
            "out_of_bounds", Where(), "wrote far outside all buffers, where a GPU has no memory", answer.seconds
        )
    if answer.status == "refused":
        launch = plan.launches[answer.launch]
        text = f"launch refused: {launch.kernel}, grid {launch.grid}, block {launch.block}, {launch.shared} bytes of shared memory"
        return Outcome("trap", message=f"{text}: {answer.text}")
    if answer.status == "fault":
        return Outcome(STATUSES.get(answer.code, "crash"), Where(), answer.text, answer.seconds)
    if answer.status == "timeout":
        return Outcome(
            "timeout", message=answer.text or f"did not end within {answer.seconds:g} s", seconds=answer.seconds
        )
    if answer.status == "no_kernel":
        return Outcome("compile_error", message=f"the library has no kernel '{answer.text}'")
    return Outcome("infrastructure", message=f"{answer.status}: {answer.text}")


def hazard_texts(hazards: Iterable[tuple[str, int, int]], plan: LaunchPlan) -> tuple[str, ...]:
    """Hazards (kind, buffer, byte offset) as text: "out_of_bounds: wrote behind buffer 'y' at byte 4096", as on a CPU."""
    texts = []
    for kind, buffer, offset in hazards:
        if kind == "far":
            texts.append("out_of_bounds: wrote to memory that is not its own")
            continue
        name = plan.buffers[buffer].name
        place = "" if kind == "input" else f" at byte {offset}"
        texts.append(f"out_of_bounds: wrote {'to input' if kind == 'input' else kind} buffer '{name}'{place}")
    return tuple(texts)
