"""CUDA C++ kernels on a CPU: compile them with a host compiler against a shim, run them in a native process of forks.

    from truekernel.execution import simt
    from truekernel.execution.recorder import trace
    from truekernel.model import Configuration
    from truekernel.source import kernel_signatures

    plan = trace(program, kernel_signatures(program.source), problem, axes)
    library = simt.compile_single(program.source, plan.kernels, simt.Options(checked=False))
    if isinstance(library, simt.CompileFailure):
        print(library)                                     # "12:5: use of undeclared identifier 'x'"
    else:
        with simt.Server() as server:
            server.define("case", plan, inputs)            # inputs: dict of CPU tensors by name
            run = server.run(library, 0, [("case", Configuration())], keep_outputs=True)
        print(run.executions[0].outcome, run.outputs[0])   # outputs: one tensor for each output, None unless ok

`trial.run_program` does all of this for one program.
"""

from truekernel.execution.simt.compile import BatchResult, compile_batch, compile_single
from truekernel.execution.simt.flags import Options
from truekernel.execution.simt.library import CompileFailure, Library
from truekernel.execution.simt.schemata import SchemaResult, compile_schema
from truekernel.execution.simt.server import Run, Server
from truekernel.execution.simt.toolchain import Compiler, compiler_named, default_compiler, find_compilers

__all__ = [
    "BatchResult",
    "CompileFailure",
    "Compiler",
    "Library",
    "Options",
    "Run",
    "SchemaResult",
    "Server",
    "compile_batch",
    "compile_schema",
    "compile_single",
    "compiler_named",
    "default_compiler",
    "find_compilers",
]
