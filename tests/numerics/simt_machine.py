"""A `device.Machine` without a device: the project's own CPU backend runs the unmodified kernels."""

from collections.abc import Sequence

import torch

from truekernel.execution import simt
from truekernel.model import BufferArg, BufferSpec, Configuration, Launch, LaunchPlan, ScalarArg
from truekernel.numerics.formats import to_bytes

FIRST = 1 << 56
STEP = 1 << 44


class SimtMachine:
    """Buffers have made-up addresses; launches are collected and run, from the first, when something is downloaded."""

    def __init__(self, source, kernels: Sequence[str], *, checked: bool = False) -> None:
        library = simt.compile_single(source(), kernels, simt.Options(fma=False, checked=checked))
        assert not isinstance(library, simt.CompileFailure), str(library)
        self.library = library
        self.configuration = Configuration(checked=checked)
        self.server = simt.Server()
        self.contents: list[bytes] = []
        self.launches: list[Launch] = []

    def close(self):
        self.server.close()

    def allocate(self, nbytes):
        return self.hold(bytes([0x42]) * nbytes)

    def hold(self, data: bytes) -> int:
        """Address of a buffer with these bytes."""
        self.contents.append(data)
        return FIRST + (len(self.contents) - 1) * STEP

    def tensor(self, tensor: torch.Tensor, skipped: int = 0) -> int:
        """Address of a tensor's bytes, `skipped` bytes into a buffer."""
        return self.hold(bytes(skipped) + to_bytes(tensor)) + skipped

    def upload(self, address, data):
        number, offset = divmod(address - FIRST, STEP)
        assert offset == 0
        assert len(data) <= len(self.contents[number])
        self.contents[number] = data

    def launch(self, kernel, blocks, threads, arguments):
        args = tuple(self._argument(data) for data in arguments)
        self.launches.append(Launch(kernel, (blocks, 1, 1), (threads, 1, 1), args))

    def download(self, address, nbytes):
        number, offset = divmod(address - FIRST, STEP)
        used = sorted(
            {a.buffer for launch in self.launches for a in launch.args if isinstance(a, BufferArg)} | {number}
        )
        place = {buffer: k for k, buffer in enumerate(used)}
        buffers = tuple(BufferSpec(f"b{b}", (len(self.contents[b]),), "uint8", "input") for b in used)
        launches = tuple(self._placed(launch, place) for launch in self.launches)
        inputs = {f"b{b}": torch.frombuffer(bytearray(self.contents[b]), dtype=torch.uint8) for b in used}
        names = tuple(inputs)
        self.server.define("case", LaunchPlan(buffers, launches, (place[number],)), inputs, mutates=names)
        run = self.server.run(self.library, 0, [("case", self.configuration)], keep_outputs=True)
        execution = run.executions[0]
        assert execution.outcome.status == "ok", (execution.outcome, execution.hazards)
        self.launches = []
        outputs = run.outputs[0]
        assert outputs is not None
        return to_bytes(outputs[0])[offset : offset + nbytes]

    def _argument(self, data):
        value = int.from_bytes(data, "little")
        if len(data) == 4:
            return ScalarArg("int", value - (1 << 32) if value >> 31 else value)
        if FIRST <= value < FIRST + len(self.contents) * STEP:
            number, offset = divmod(value - FIRST, STEP)
            return BufferArg(number, offset)
        return ScalarArg("unsigned long long", value)

    @staticmethod
    def _placed(launch, place):
        args = tuple(BufferArg(place[a.buffer], a.offset) if isinstance(a, BufferArg) else a for a in launch.args)
        return Launch(launch.kernel, launch.grid, launch.block, args)
