"""Where programs are compiled and executed: this machine's processors, or an NVIDIA GPU. The rooms above see no difference but what is stated here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from truekernel.errors import BadInputError
from truekernel.execution.backend import Compiled, Runner
from truekernel.model import FILLS, SCHEDULES, Edit, Fill, LaunchPlan, Outcome, Schedule, Where

if TYPE_CHECKING:
    import torch

DeviceName = Literal["cpu", "cuda"]


@dataclass(frozen=True, slots=True)
class Source:
    """Device code, and the name expressions of the kernels that will be launched."""

    text: str
    kernels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A variant in a library that it shares with others."""

    library: Compiled
    variant: int


@dataclass(frozen=True, slots=True)
class Watched:
    """A program to execute under a device's own tool: its launch plan on each of some cases, and their inputs."""

    source: Source
    plans: tuple[LaunchPlan, ...]
    inputs: tuple[Mapping[str, torch.Tensor], ...]
    mutates: Sequence[str] = ()


class Device(Protocol):
    """Compiles and executes. `schedules`: orders of threads that can be asked for. `sanitises`: whether libraries can be compiled to check every access."""

    @property
    def name(self) -> DeviceName:
        """As on the command line."""
        ...

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """What `Configuration.schedule` may be."""
        ...

    @property
    def fills(self) -> tuple[Fill, ...]:
        """What `Configuration.fill` may be."""
        ...

    @property
    def sanitises(self) -> bool:
        """Whether `checked` means something here."""
        ...

    @property
    def ahead(self) -> int:
        """How many chunks of mutants to compile while one is executed: 0 where both are work of the same processors."""
        ...

    def label(self) -> str:
        """Compiler and machine in one line. Raises when programs can't be executed here."""
        ...

    def runner(self) -> Runner:
        """A new runner, to be closed."""
        ...

    def alone(self, sources: Sequence[Source], *, fma: bool = True, checked: bool = False) -> list[Compiled | str]:
        """Each source compiled alone, in order, or why it does not compile."""
        ...

    def shared(
        self, source: Source, edits: Mapping[int, tuple[Edit, ...]], texts: Mapping[int, str], *, checked: bool = False
    ) -> dict[int, Part]:
        """Variants of `source`, by number (1 or more), in shared libraries, where that saves time. `texts`: each variant's whole text."""
        ...

    def by_tool(self, programs: Sequence[Watched]) -> list[list[Outcome]]:
        """Faults of each program that a tool beside the device shows; an empty list when there is no such tool, or it was not asked for."""
        ...


@dataclass(frozen=True, slots=True)
class Cpu:
    """The processors of this machine."""

    name: DeviceName = "cpu"
    schedules: tuple[Schedule, ...] = SCHEDULES
    fills: tuple[Fill, ...] = FILLS
    sanitises: bool = True
    ahead: int = 0

    def label(self) -> str:
        """The C++ compiler. Raises CompilerMissingError."""
        from truekernel.execution import simt

        return simt.default_compiler().label

    def runner(self) -> Runner:
        """A native server."""
        from truekernel.execution import simt

        return simt.Server()

    def alone(self, sources: Sequence[Source], *, fma: bool = True, checked: bool = False) -> list[Compiled | str]:
        """One after the other: audits have a worker process for each processor."""
        from truekernel.execution import simt

        options = simt.Options(fma=fma, checked=checked)
        results = [simt.compile_single(source.text, source.kernels, options) for source in sources]
        return [str(result) if isinstance(result, simt.CompileFailure) else result for result in results]

    def shared(
        self, source: Source, edits: Mapping[int, tuple[Edit, ...]], texts: Mapping[int, str], *, checked: bool = False
    ) -> dict[int, Part]:
        """A schema for expressions and statements, batches for the rest."""
        from truekernel.execution import simt

        options = simt.Options(checked=checked)
        schema = simt.compile_schema(source.text, source.kernels, edits, options)
        parts = {number: Part(library, number) for number, library in schema.members.items()}
        rest = {number: texts[number] for number in schema.leftovers}
        if rest:
            batch = simt.compile_batch(rest, source.kernels, options)
            parts |= {number: Part(library, number) for number, library in batch.members.items()}
        return parts

    def by_tool(self, programs: Sequence[Watched]) -> list[list[Outcome]]:  # noqa: ARG002
        """None: `checked` libraries find them."""
        return []


@dataclass(frozen=True, slots=True)
class Cuda:
    """An NVIDIA GPU. `processes`: compile processes of each worker; `sanitise`: whether `by_tool` runs compute-sanitizer."""

    name: DeviceName = "cuda"
    schedules: tuple[Schedule, ...] = ("gpu",)
    fills: tuple[Fill, ...] = ("poison", "stale")
    sanitises: bool = False
    ahead: int = 2
    processes: int = 2
    sanitise: bool = False

    def label(self) -> str:
        """GPU and compiler. Raises GpuMissingError, NvrtcMissingError."""
        from truekernel.execution import cuda
        from truekernel.execution.cuda.compile import compilers

        info = cuda.device_info()
        major, minor = compilers().version()
        return f"NVRTC {major}.{minor} for {info.name} ({info.arch})"

    def runner(self) -> Runner:
        """Worker processes on the GPU. They start, and so do those that compile, while the caller prepares what they will run."""
        from truekernel.execution import cuda
        from truekernel.execution.cuda.compile import compilers

        compilers().prepare(self.processes)
        server = cuda.Server(keep=True)
        server.prepare()
        return server

    def alone(self, sources: Sequence[Source], *, fma: bool = True, checked: bool = False) -> list[Compiled | str]:
        """Several at a time, some in one translation unit, which leaves their machine code as it is. On a GPU a sanitised execution is another tool's, and no library of its own."""
        from truekernel.execution import cuda
        from truekernel.execution.cuda.units import TOGETHER

        if checked:
            raise BadInputError("a sanitised library is asked for: a GPU has compute-sanitizer instead")
        numbered = dict(enumerate(sources))
        result = cuda.compile_many(
            {number: source.text for number, source in numbered.items()},
            {number: source.kernels for number, source in numbered.items()},
            cuda.Options(fma=fma),
            processes=self.processes,
            together=TOGETHER,
        )
        return [
            result.members[number] if number in result.members else str(result.failures[number]) for number in numbered
        ]

    def shared(
        self,
        source: Source,  # noqa: ARG002
        edits: Mapping[int, tuple[Edit, ...]],  # noqa: ARG002
        texts: Mapping[int, str],  # noqa: ARG002
        *,
        checked: bool = False,  # noqa: ARG002
    ) -> dict[int, Part]:
        """Nothing: NVRTC takes a kernel in 20 ms, and there are many processors."""
        return {}

    def by_tool(self, programs: Sequence[Watched]) -> list[list[Outcome]]:
        """What compute-sanitizer finds. Raises TruekernelError when it is missing or can't watch this GPU."""
        if not self.sanitise:
            return []
        from truekernel.execution import cuda

        compiled = cuda.compile_many(
            {number: program.source.text for number, program in enumerate(programs)},
            {number: program.source.kernels for number, program in enumerate(programs)},
            cuda.Options(checked=True),
            processes=self.processes,
        ).members
        owners = [(number, plan, inputs) for number in compiled for plan, inputs in _pairs(programs[number])]
        jobs = [cuda.Job(compiled[number], plan, inputs, programs[number].mutates) for number, plan, inputs in owners]
        found: list[list[Outcome]] = [[] for _ in programs]
        for (number, plan, _), result in zip(owners, cuda.sanitise(jobs), strict=True):
            for finding in result.findings:
                name = plan.buffers[finding.buffer].name if finding.buffer >= 0 else None
                offset = finding.offset if finding.buffer >= 0 else None
                where = Where(finding.thread, finding.block, finding.line or None, name, offset)
                found[number].append(Outcome(finding.status, where, f"{finding.tool}: {finding.title}"))
        return found


def _pairs(program: Watched) -> Iterator[tuple[LaunchPlan, Mapping[str, torch.Tensor]]]:
    yield from zip(program.plans, program.inputs, strict=True)


def device(name: str, workers: int = 1, *, sanitise: bool = False) -> Device:
    """The device of a name; `workers`: processes that will use it at once. Raises BadInputError for another name."""
    if name == "cpu":
        return Cpu()
    if name == "cuda":
        return Cuda(processes=max(1, len(os.sched_getaffinity(0)) // max(workers, 1)), sanitise=sanitise)
    raise BadInputError(f"device '{name}': give cpu or cuda")
