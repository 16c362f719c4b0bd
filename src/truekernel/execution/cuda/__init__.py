"""CUDA C++ kernels on a GPU: compiled by NVRTC, run in worker processes that may die without harm.

    from truekernel.execution import cuda
    from truekernel.execution.recorder import trace
    from truekernel.model import Configuration
    from truekernel.source import kernel_signatures

    plan = trace(program, kernel_signatures(program.source), problem, axes)
    library = cuda.compile_single(program.source, plan.kernels)
    if isinstance(library, cuda.CompileFailure):
        print(library)                                     # "12:5: identifier "x" is undefined"
    else:
        with cuda.Server() as server:
            server.define("case", plan, inputs)            # inputs: dict of CPU tensors by name
            run = server.run(library, 0, [("case", Configuration())], keep_outputs=True)
        print(run.executions[0].outcome, run.outputs[0])

Names are loaded on first use: the room's own processes start without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truekernel.execution.cuda.compile import ManyResult, compile_many, compile_single
    from truekernel.execution.cuda.devices import DeviceInfo, device_info
    from truekernel.execution.cuda.library import Library
    from truekernel.execution.cuda.options import Options
    from truekernel.execution.cuda.sanitiser import Job, sanitise
    from truekernel.execution.cuda.sanitiser_log import Finding
    from truekernel.execution.cuda.server import Repeats, Server
    from truekernel.execution.simt.library import CompileFailure
    from truekernel.execution.simt.server import Run

_HOMES = {
    "CompileFailure": "truekernel.execution.simt.library",
    "DeviceInfo": "truekernel.execution.cuda.devices",
    "Finding": "truekernel.execution.cuda.sanitiser_log",
    "Job": "truekernel.execution.cuda.sanitiser",
    "Library": "truekernel.execution.cuda.library",
    "ManyResult": "truekernel.execution.cuda.compile",
    "Options": "truekernel.execution.cuda.options",
    "Repeats": "truekernel.execution.cuda.server",
    "Run": "truekernel.execution.simt.server",
    "Server": "truekernel.execution.cuda.server",
    "compile_many": "truekernel.execution.cuda.compile",
    "compile_single": "truekernel.execution.cuda.compile",
    "device_info": "truekernel.execution.cuda.devices",
    "sanitise": "truekernel.execution.cuda.sanitiser",
}

__all__ = [
    "CompileFailure",
    "DeviceInfo",
    "Finding",
    "Job",
    "Library",
    "ManyResult",
    "Options",
    "Repeats",
    "Run",
    "Server",
    "compile_many",
    "compile_single",
    "device_info",
    "sanitise",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
