"""Runs a `.cu` candidate: `python cuda_child.py REQUESTS ANSWERS SHARED`, three descriptors.

Compiler, launch plan and kernels run here. The native server is given one case at a time, without anything to compare with: outputs leave and are judged elsewhere.
"""

from __future__ import annotations

import dataclasses
import mmap
import os
import subprocess
import sys
from typing import Any

import torch

from truekernel.errors import TruekernelError
from truekernel.execution import simt
from truekernel.execution.recorder import MOST_BUFFERS, MOST_LAUNCHES, trace
from truekernel.execution.simt.flags import kernel_flags
from truekernel.execution.simt.kit import native_sources
from truekernel.judge.inside import readings, wire
from truekernel.model import AxisSpec, BufferArg, Configuration, LaunchPlan, OutputSpec, Problem, TensorSpec
from truekernel.source import kernel_signatures

Request = dict[str, Any]
STALE_SEED = 7
MOST_HELD = 512 << 20
"""Bytes of all buffers of repeated calls."""


class Host:
    """The candidate, and its libraries: plain and sanitised, by the kernels that a plan asks for."""

    def __init__(self, shared: int) -> None:
        self._shared = shared
        self._server = simt.Server()
        self._libraries: dict[tuple[tuple[str, ...], bool], simt.Library | simt.CompileFailure] = {}
        self._problem: Problem
        self._source = self._plan_source = ""
        self._told: dict[tuple[str, ...], list[str]] = {}

    def open(self, request: Request) -> Request:
        """Keep the sources; the problem comes as shapes alone."""
        self._source, self._plan_source = request["text"], request["plan"]
        self._problem = problem_of(request["problem"])
        self._signatures = kernel_signatures(self._source)
        return {"compiler": simt.default_compiler().label}

    def call(self, request: Request) -> tuple[Request, list[memoryview]]:
        """Run one case in all configurations asked for; an outcome for each, and outputs for those that ended well."""
        axes = dict(request["axes"])
        plan = trace(self._plan_source, self._signatures, self._problem, axes)
        told = [[plan.buffers[k].dtype, plan.buffers[k].elements] for k in plan.outputs]
        if told != [[dtype, _count(shape)] for dtype, shape in request["outputs"]]:
            return {"runs": [], "given": told}, []
        size = os.fstat(self._shared).st_size
        memory = mmap.mmap(self._shared, size)
        inputs = {name: _tensor(memory, dtype, shape, offset) for name, dtype, shape, offset in request["tensors"]}
        plans = {"case": plan}
        if request["calls"] > 1:
            plans["again"] = repeated(plan, request["calls"])
        for key, one in plans.items():
            self._server.define(key, one, inputs, None, _leftovers(one), mutates=self._problem.mutates)
        if plan.kernels not in self._told:
            # Before a kernel runs for the first time: nothing of the candidate has a say in it.
            self._told[plan.kernels] = self._tells(plan.kernels)
        runs, data = [], []
        for words in request["configurations"]:
            configuration = Configuration(words["schedule"], words["seed"], words["fill"], words["checked"])
            key = "again" if words["again"] else "case"
            library = self._library(plan.kernels, checked=configuration.checked)
            if isinstance(library, simt.CompileFailure):
                runs.append({"status": "compile_error", "message": wire.safe_text(str(library)), "data": False})
                continue
            factor = (10 if configuration.checked else 1) * (request["calls"] if words["again"] else 1)
            limits = [request["cpu_seconds"] * factor]
            run = self._server.run(library, 0, [(key, configuration)], cpu_seconds=limits, keep_outputs=True)
            execution, outputs = run.executions[0], run.outputs[0]
            outcome = execution.outcome
            good = outcome.status == "ok" and outputs is not None
            runs.append(
                {
                    "status": outcome.status,
                    "message": wire.safe_text(outcome.message),
                    "line": outcome.where.line,
                    "buffer": outcome.where.buffer,
                    "seconds": outcome.seconds,
                    "hazards": [wire.safe_text(hazard) for hazard in execution.hazards[:8]],
                    "data": good,
                }
            )
            if good and outputs is not None:
                data += [_raw(tensor) for tensor in outputs]
        for key in plans:
            self._server.forget(key)
        return {"runs": runs, "told": [wire.safe_text(name) for name in self._told[plan.kernels]]}, data

    def _tells(self, kernels: tuple[str, ...]) -> list[str]:
        """Names without which, or with which, the source becomes other machine code than here: it can tell this compiler from a GPU's."""
        if not readings.asked(self._source) - readings.SAME:
            return []
        compiler = simt.default_compiler()
        # With the macros of headers, which a source may name in conditions too.
        names = predefined(compiler, "") | predefined(compiler, readings.includes(self._source))
        names |= predefined(compiler, self._source) - readings.defined(self._source)
        telling = readings.telling(self._source, names)
        library = self._library(kernels, checked=False)
        if not telling or isinstance(library, simt.CompileFailure) or len(telling) > readings.MOST_NAMES:
            return telling
        usual = library.code_hash(kernels)
        for text in readings.readings(self._source, telling, names):
            other = simt.compile_single(text, kernels, simt.Options())
            if isinstance(other, simt.CompileFailure) or other.code_hash(kernels) != usual:
                return telling
        return []

    def _library(self, kernels: tuple[str, ...], *, checked: bool) -> simt.Library | simt.CompileFailure:
        key = (kernels, checked)
        if key not in self._libraries:
            self._libraries[key] = simt.compile_single(self._source, kernels, simt.Options(checked=checked))
        return self._libraries[key]


def predefined(compiler: simt.Compiler, text: str) -> set[str]:
    """Macros that are defined at the end of a text."""
    include = native_sources() / "include"
    flags = [*kernel_flags(compiler.kind, simt.Options()), "-I", str(include), "-include", str(include / "tk_shim.h")]
    command = [*compiler.command, *flags, "-x", "c++", "-dM", "-E", "-"]
    said = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=60).stdout
    return {words[1].partition("(")[0] for line in said.splitlines() if len(words := line.split(None, 2)) > 1}


def repeated(plan: LaunchPlan, calls: int) -> LaunchPlan:
    """A plan that does all of it `calls` times in one process, each time with buffers of its own around the same inputs, and returns the outputs of the last: what kernels leave in variables of the device from call to call
    shows there. Fewer calls where so many would be too large."""
    held = sum(spec.nbytes for spec in plan.buffers)
    calls = min(calls, MOST_BUFFERS // len(plan.buffers), MOST_LAUNCHES // max(1, len(plan.launches)))
    calls = max(1, min(calls, MOST_HELD // max(1, held)))
    own = [k for k, spec in enumerate(plan.buffers) if spec.init != "input"]
    buffers, launches, place = list(plan.buffers), list(plan.launches), {k: k for k in range(len(plan.buffers))}
    for call in range(1, calls):
        place |= {k: len(buffers) + number for number, k in enumerate(own)}
        buffers += [dataclasses.replace(plan.buffers[k], name=f"{plan.buffers[k].name}, call {call + 1}") for k in own]
        for launch in plan.launches:
            args = (
                dataclasses.replace(a, buffer=place[a.buffer]) if isinstance(a, BufferArg) else a for a in launch.args
            )
            launches.append(dataclasses.replace(launch, args=tuple(args)))
    return LaunchPlan(tuple(buffers), tuple(launches), tuple(place[k] for k in plan.outputs))


def problem_of(shapes: Request) -> Problem:
    """A problem of axes and shapes: what a launch plan needs."""

    def nothing(*_: Any) -> Any:
        raise TypeError("shapes alone")

    return Problem(
        name=shapes["name"],
        family="",
        summary="",
        axes={name: AxisSpec(length, length, "batch") for name, length in shapes["axes"].items()},
        inputs=tuple(TensorSpec(name, tuple(shape), dtype) for name, shape, dtype in shapes["inputs"]),
        parameters=tuple(TensorSpec(name, tuple(shape), dtype) for name, shape, dtype in shapes["parameters"]),
        outputs=tuple(OutputSpec(name, tuple(shape), dtype) for name, shape, dtype in shapes["outputs"]),
        mutates=tuple(shapes["mutates"]),
        constants=dict(shapes["constants"]),
        reference=nothing,
        flops=nothing,
        bytes=nothing,
    )


def _count(shape: list[int]) -> int:
    total = 1
    for length in shape:
        total *= length
    return total


def _tensor(memory: mmap.mmap, dtype: str, shape: list[int], offset: int) -> torch.Tensor:
    if not _count(shape):
        return torch.empty(shape, dtype=getattr(torch, dtype))
    return torch.frombuffer(memory, dtype=getattr(torch, dtype), count=_count(shape), offset=offset).reshape(shape)


def _leftovers(plan: LaunchPlan) -> list[torch.Tensor]:
    """What an allocator might have left in the outputs: numbers of moderate size that no reference knows."""
    random = torch.Generator().manual_seed(STALE_SEED)
    found = []
    for k in plan.outputs:
        spec = plan.buffers[k]
        values = torch.rand(spec.elements, generator=random) * 8 + 1
        found.append(values.to(getattr(torch, spec.dtype)))
    return found


def _raw(tensor: torch.Tensor) -> memoryview:
    flat = tensor.contiguous().reshape(-1)
    data: Any = flat.view(torch.uint8).numpy() if flat.numel() else b""
    return memoryview(data)


def main() -> None:
    """Answer requests until there are no more."""
    requests, answers, shared = (int(word) for word in sys.argv[1:4])
    host = Host(shared)
    torch.set_num_threads(1)
    while True:
        try:
            request = wire.read_message(requests)
        except EOFError:
            os._exit(0)
        header: Request
        data: list[memoryview] = []
        try:
            if request["op"] == "ready":
                header = {}
            elif request["op"] == "open":
                header = host.open(request)
            else:
                header, data = host.call(request)
        except TruekernelError as error:
            header, data = {"refused": wire.safe_text(error), "machine": error.exit_code == 3}, []
        wire.write_all(answers, [wire.message({"number": request["number"], **header}), *data])


if __name__ == "__main__":
    main()
