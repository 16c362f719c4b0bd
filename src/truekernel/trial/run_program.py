"""One program on one set of inputs, from source to outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truekernel.errors import PlanError
from truekernel.execution import simt
from truekernel.execution.recorder import trace
from truekernel.model import Axes, Configuration, Outcome, Problem, Program, Schedule, Tensors, Where
from truekernel.source import kernel_signatures

if TYPE_CHECKING:
    import torch


def run_program(
    program: Program,
    problem: Problem,
    axes: Axes,
    inputs: Tensors,
    *,
    schedule: Schedule = "gpu",
    checked: bool = False,
    fma: bool = True,
    cpu_seconds: float = 60.0,
    server: simt.Server | None = None,
) -> tuple[Outcome, list[torch.Tensor] | None]:
    """Compile `program` and run it once; returns the outcome and, if that is ok, one tensor for each output of the problem.

    `inputs`: CPU tensors by name, in the dtypes and shapes that the problem states. Elements that the program does not write
    hold 0xFF bytes. A plan that fails and a source that does not compile are the outcome "compile_error". `server`: one to
    use, instead of starting one.
    """
    try:
        plan = trace(program, kernel_signatures(program.source), problem, axes)
    except PlanError as error:
        return Outcome("compile_error", message=str(error)), None
    library = simt.compile_single(program.source, plan.kernels, simt.Options(fma=fma, checked=checked))
    if isinstance(library, simt.CompileFailure):
        return Outcome("compile_error", Where(line=library.line or None), library.message), None
    configuration = Configuration(schedule=schedule, checked=checked)
    own = None if server else simt.Server()
    used = server or own
    assert used is not None
    try:
        used.define("run_program", plan, inputs, mutates=problem.mutates)
        run = used.run(library, 0, [("run_program", configuration)], cpu_seconds=cpu_seconds, keep_outputs=True)
        used.release(library)
    finally:
        if own is not None:
            own.close()
        library.close()
    return run.executions[0].outcome, run.outputs[0]
