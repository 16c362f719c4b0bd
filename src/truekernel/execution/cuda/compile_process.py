"""A process that compiles: reads frames with sources, answers with machine code or the compiler's log.

python -m truekernel.execution.cuda.compile_process
"""

from __future__ import annotations

import os

from truekernel.execution.cuda.nvrtc import Nvrtc, NvrtcMissing
from truekernel.execution.cuda.options import Options
from truekernel.execution.cuda.wire import Channel, ClosedError, Message

BEHIND = 10
"""Niceness: compilers fill all processors, and those that feed the GPU come first."""


def main() -> None:
    """Serve the parent until it has gone."""
    os.nice(BEHIND)
    channel = Channel(os.dup(0), os.dup(1))
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    try:
        try:
            nvrtc = Nvrtc()
        except NvrtcMissing as error:
            channel.send({"error": str(error)})
            return
        nvrtc.compile(
            "__global__ void first() {}", ("first",), Options(arch="sm_75")
        )  # what the first one loads, none waits for later
        channel.send({"version": list(nvrtc.version)})
        while True:
            request, source = channel.receive()
            channel.send(*_answer(nvrtc, request, source.decode()))
    except ClosedError:
        return


def _answer(nvrtc: Nvrtc, request: Message, source: str) -> tuple[Message, tuple[bytes]]:
    compiled = nvrtc.compile(source, tuple(request["kernels"]), Options(**request["options"]))
    return {"symbols": compiled.symbols, "log": compiled.log}, (compiled.cubin,)


if __name__ == "__main__":
    main()
