"""A `device.Machine` on NVIDIA's cuda.core: compiles with NVRTC for the device at hand, launches on one stream."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from truekernel.errors import MachineError

_INTEGERS: dict[int, Any] = {4: ctypes.c_int32, 8: ctypes.c_uint64}


def modules() -> tuple[Any, Any]:
    """cuda.core (before 1.0: cuda.core.experimental) and the driver's bindings. Raises MachineError where they are not installed."""
    try:
        from cuda import core
        from cuda.bindings import driver

        if not hasattr(core, "Program"):
            from cuda.core import experimental as core
    except ImportError as error:
        raise MachineError(f"{error}: install cuda-core, cuda-bindings and nvidia-cuda-nvrtc") from None
    return core, driver


class CudaCore:
    """One device and one stream. `source`: text of the kernels that are launched by name expression; each is compiled when it is first launched.

    `stream`: anything with `__cuda_stream__`, or None for the device's default stream, on which torch works too unless told otherwise.
    Memory that was allocated here is given back by `close` or with the object.
    """

    def __init__(self, source: Callable[[], str], device: int = 0, *, stream: Any = None) -> None:
        self._core, self._driver = modules()
        self.device = self._core.Device(device)
        self.device.set_current()
        self.stream = self.device.default_stream if stream is None else self.device.create_stream(stream)
        self._source = source
        self._kernels: dict[str, Any] = {}
        self._buffers: list[Any] = []

    def allocate(self, nbytes: int) -> int:
        """Address of new device memory."""
        buffer = self.device.allocate(max(nbytes, 1), stream=self.stream)
        self._buffers.append(buffer)
        return int(buffer.handle)

    def upload(self, address: int, data: bytes) -> None:
        """Copy host bytes to the device, in stream order; returns when they are there."""
        held = ctypes.create_string_buffer(data, len(data))
        self._call("cuMemcpyHtoDAsync", address, ctypes.addressof(held), len(data), self.stream.handle)
        self.stream.sync()

    def download(self, address: int, nbytes: int) -> bytes:
        """Copy device bytes to the host after everything before on the stream."""
        held = ctypes.create_string_buffer(nbytes)
        self._call("cuMemcpyDtoHAsync", ctypes.addressof(held), address, nbytes, self.stream.handle)
        self.stream.sync()
        return held.raw

    def launch(self, kernel: str, blocks: int, threads: int, arguments: Sequence[bytes]) -> None:
        """Launch a kernel; arguments of 4 bytes are passed as int, of 8 bytes as unsigned long long, which have the same bits as what they stand for."""
        config = self._core.LaunchConfig(grid=blocks, block=threads)
        values = [_INTEGERS[len(data)].from_buffer_copy(data) for data in arguments]
        self._core.launch(self.stream, config, self._kernel(kernel), *values)

    def close(self) -> None:
        """Give the memory back."""
        while self._buffers:
            self._buffers.pop().close()

    def _kernel(self, name: str) -> Any:
        if name not in self._kernels:
            arch = "".join(map(str, self.device.compute_capability))
            options = self._core.ProgramOptions(
                std="c++17", arch=f"sm_{arch}", fma=False, ftz=False, prec_div=True, prec_sqrt=True
            )
            program = self._core.Program(self._source(), "c++", options)
            expressions = (name,) if "<" in name else ()
            self._kernels[name] = program.compile("cubin", name_expressions=expressions).get_kernel(name)
        return self._kernels[name]

    def _call(self, name: str, *arguments: Any) -> None:
        error = getattr(self._driver, name)(*arguments)[0]
        if int(error) != 0:
            raise MachineError(f"{name}: {error.name}")
