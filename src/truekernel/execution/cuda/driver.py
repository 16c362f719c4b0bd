"""The CUDA driver's own interface, as far as it is needed to load cubins, launch kernels and copy memory. Standard library only.

Worker processes start within a fraction of a second because nothing else is loaded. Functions and their versions: CUDA Driver API reference manual.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p

NOT_READY = 600
NO_DEVICE = 100
OUT_OF_MEMORY = 2
LARGEST_PLAIN_SHARED = 48 * 1024
"""Dynamic shared memory beyond this needs an attribute of the kernel (CUDA C++ Programming Guide, "Shared Memory")."""
_MAX_DYNAMIC_SHARED = 8
_SHARED_OPT_IN = 97
_MAJOR, _MINOR = 75, 76
_PROPERTIES = struct.Struct("<iiiiQBBHI")
"""CUmemAllocationProp: pinned, no handle to share, on a device."""
_LIBRARIES = ("libcuda.so.1", "libcuda.so")
_SIGNATURES: dict[str, tuple[object, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (c_void_p,),
    "cuDeviceGetCount": (c_void_p,),
    "cuDeviceGet": (c_void_p, c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceTotalMem_v2": (c_void_p, c_int),
    "cuDeviceGetAttribute": (c_void_p, c_int, c_int),
    "cuDevicePrimaryCtxRetain": (c_void_p, c_int),
    "cuCtxSetCurrent": (c_void_p,),
    "cuMemGetInfo_v2": (c_void_p, c_void_p),
    "cuMemAlloc_v2": (c_void_p, c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemHostAlloc": (c_void_p, c_size_t, c_uint),
    "cuMemAddressReserve": (c_void_p, c_size_t, c_size_t, c_uint64, c_uint64),
    "cuMemCreate": (c_void_p, c_size_t, c_char_p, c_uint64),
    "cuMemMap": (c_uint64, c_size_t, c_size_t, c_uint64, c_uint64),
    "cuMemSetAccess": (c_uint64, c_size_t, c_char_p, c_size_t),
    "cuMemUnmap": (c_uint64, c_size_t),
    "cuMemcpyHtoD_v2": (c_uint64, c_void_p, c_size_t),
    "cuMemcpyDtoH_v2": (c_void_p, c_uint64, c_size_t),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
    "cuMemcpyDtoDAsync_v2": (c_uint64, c_uint64, c_size_t, c_void_p),
    "cuMemsetD8Async": (c_uint64, c_uint, c_size_t, c_void_p),
    "cuModuleLoadData": (c_void_p, c_char_p),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (c_void_p, c_void_p, c_char_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuLaunchKernel": (c_void_p, *(c_uint,) * 7, c_void_p, c_void_p, c_void_p),
    "cuLaunchCooperativeKernel": (c_void_p, *(c_uint,) * 7, c_void_p, c_void_p),
    "cuStreamCreate": (c_void_p, c_uint),
    "cuStreamBeginCapture_v2": (c_void_p, c_int),
    "cuStreamEndCapture": (c_void_p, c_void_p),
    "cuGraphInstantiateWithFlags": (c_void_p, c_void_p, c_uint64),
    "cuGraphLaunch": (c_void_p, c_void_p),
    "cuEventCreate": (c_void_p, c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventQuery": (c_void_p,),
    "cuEventElapsedTime": (c_void_p, c_void_p, c_void_p),
    "cuCtxSynchronize": (),
    "cuGetErrorName": (c_int, c_void_p),
    "cuGetErrorString": (c_int, c_void_p),
}


class DriverMissingError(Exception):
    """The driver's library can't be loaded."""


class DriverError(Exception):
    """A driver call failed. `code`, `name`: as in the manual ("CUDA_ERROR_ILLEGAL_ADDRESS"); `text`: the driver's own words."""

    def __init__(self, code: int, name: str, text: str, call: str) -> None:
        super().__init__(f"{call}: {name} ({code}): {text}")
        self.code, self.name, self.text, self.call = code, name, text, call


class Driver:
    """The driver of this machine; devices are counted as CUDA_VISIBLE_DEVICES shows them."""

    def __init__(self) -> None:
        self._library = _load()
        for name, arguments in _SIGNATURES.items():
            function = getattr(self._library, name)
            function.argtypes = arguments
            function.restype = c_int
        self.call("cuInit", 0)

    def call(self, name: str, *arguments: object) -> None:
        """Call a function; raises DriverError unless it succeeds."""
        code = getattr(self._library, name)(*arguments)
        if code:
            raise self.error(code, name)

    def error(self, code: int, call: str) -> DriverError:
        """The error of a status code."""
        return DriverError(code, self._text("cuGetErrorName", code), self._text("cuGetErrorString", code), call)

    def _text(self, function: str, code: int) -> str:
        text = c_char_p()
        failed = getattr(self._library, function)(code, byref(text))
        return f"error {code}" if failed or not text.value else text.value.decode(errors="replace")

    def version(self) -> int:
        """Newest CUDA version that the driver serves: 13000 is 13.0."""
        version = c_int()
        self.call("cuDriverGetVersion", byref(version))
        return version.value

    def device_count(self) -> int:
        """Number of visible devices."""
        count = c_int()
        self.call("cuDeviceGetCount", byref(count))
        return count.value

    def device_name(self, device: int) -> str:
        """Name of a device: "NVIDIA H200"."""
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, len(name), device)
        return name.value.decode(errors="replace")

    def total_memory(self, device: int) -> int:
        """Memory of a device in bytes."""
        total = c_size_t()
        self.call("cuDeviceTotalMem_v2", byref(total), device)
        return total.value

    def attribute(self, device: int, attribute: int) -> int:
        """A number of CUdevice_attribute."""
        value = c_int()
        self.call("cuDeviceGetAttribute", byref(value), attribute, device)
        return value.value

    def arch(self, device: int) -> str:
        """Architecture for the compiler: "sm_90"."""
        return f"sm_{self.attribute(device, _MAJOR)}{self.attribute(device, _MINOR)}"

    def most_shared(self, device: int) -> int:
        """Largest shared memory of a block that asks for it, in bytes."""
        return self.attribute(device, _SHARED_OPT_IN)

    def open(self, device: int) -> None:
        """Make the device's primary context current in this thread."""
        context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def free_memory(self) -> int:
        """Free device memory in bytes, all processes counted."""
        free, total = c_size_t(), c_size_t()
        self.call("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value

    def allocate(self, nbytes: int) -> int:
        """Address of new device memory."""
        address = c_uint64()
        self.call("cuMemAlloc_v2", byref(address), nbytes)
        return address.value

    def free(self, address: int) -> None:
        """Give memory back."""
        self.call("cuMemFree_v2", address)

    def host_memory(self, nbytes: int) -> int:
        """Address of page-locked host memory."""
        address = c_void_p()
        self.call("cuMemHostAlloc", byref(address), nbytes, 0)
        return address.value or 0

    def reserve(self, nbytes: int) -> int:
        """Start of a range of addresses without memory."""
        address = c_uint64()
        self.call("cuMemAddressReserve", byref(address), nbytes, 0, 0, 0)
        return address.value

    def create(self, nbytes: int, device: int) -> int:
        """A piece of device memory that has no address yet."""
        handle = c_uint64()
        self.call("cuMemCreate", byref(handle), nbytes, _PROPERTIES.pack(1, 0, 1, device, 0, 0, 0, 0, 0), 0)
        return handle.value

    def map(self, address: int, handles: Sequence[int], nbytes: int, device: int) -> None:
        """Put pieces of `nbytes` each one after the other at an address; the same piece may have many addresses."""
        for number, handle in enumerate(handles):
            self.call("cuMemMap", address + number * nbytes, nbytes, 0, handle, 0)
        self.call("cuMemSetAccess", address, len(handles) * nbytes, struct.pack("<iii", 1, device, 3), 1)

    def unmap(self, address: int, nbytes: int) -> None:
        """Take memory away from a range of addresses."""
        self.call("cuMemUnmap", address, nbytes)

    def upload(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Copy bytes to the device, and wait."""
        if len(data):
            source = (ctypes.c_char * len(data)).from_buffer(data) if isinstance(data, bytearray) else bytes(data)
            self.call("cuMemcpyHtoD_v2", address, source, len(data))

    def download(self, address: int, nbytes: int) -> bytearray:
        """Bytes from the device, after all work before them."""
        data = bytearray(nbytes)
        if nbytes:
            self.call("cuMemcpyDtoH_v2", (ctypes.c_char * nbytes).from_buffer(data), address, nbytes)
        return data

    def load(self, cubin: bytes) -> c_void_p:
        """A module of machine code."""
        module = c_void_p()
        self.call("cuModuleLoadData", byref(module), cubin)
        return module

    def unload(self, module: c_void_p) -> None:
        """Unload a module."""
        self.call("cuModuleUnload", module)

    def function(self, module: c_void_p, symbol: str) -> c_void_p:
        """A kernel of a module by its symbol."""
        function = c_void_p()
        self.call("cuModuleGetFunction", byref(function), module, symbol.encode())
        return function

    def allow_shared(self, function: c_void_p, nbytes: int) -> None:
        """Let a kernel be launched with more dynamic shared memory than `LARGEST_PLAIN_SHARED`."""
        self.call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, nbytes)

    def launch(
        self,
        function: c_void_p,
        grid: Sequence[int],
        block: Sequence[int],
        parameters: ctypes.Array[c_void_p],
        *,
        shared: int = 0,
        stream: c_void_p | None = None,
        cooperative: bool = False,
    ) -> None:
        """Launch a kernel; `parameters`: addresses of its arguments."""
        if cooperative:
            self.call("cuLaunchCooperativeKernel", function, *grid, *block, shared, stream, parameters)
        else:
            self.call("cuLaunchKernel", function, *grid, *block, shared, stream, parameters, None)

    def stream(self) -> c_void_p:
        """A new stream that waits for the default stream and lets it wait."""
        stream = c_void_p()
        self.call("cuStreamCreate", byref(stream), 0)
        return stream

    def event(self) -> c_void_p:
        """A new event that takes the time."""
        event = c_void_p()
        self.call("cuEventCreate", byref(event), 0)
        return event

    def reached(self, event: c_void_p) -> bool:
        """Whether all work before a recorded event is done; raises the DriverError of a kernel that failed."""
        code = self._library.cuEventQuery(event)
        if code and code != NOT_READY:
            raise self.error(code, "cuEventQuery")
        return code == 0

    def seconds(self, start: c_void_p, end: c_void_p) -> float:
        """Device time between two events that were reached."""
        milliseconds = c_float()
        self.call("cuEventElapsedTime", byref(milliseconds), start, end)
        return milliseconds.value / 1e3


def parameters(values: Sequence[bytes]) -> tuple[ctypes.Array[c_void_p], object]:
    """Kernel arguments, each its bytes, as `Driver.launch` takes them; keep the second value alive until the launch."""
    stores = [ctypes.create_string_buffer(value, max(len(value), 1)) for value in values]
    addresses = (c_void_p * max(len(stores), 1))(*(ctypes.addressof(store) for store in stores))
    return addresses, stores


def _load() -> ctypes.CDLL:
    why = ""
    for name in _LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            why = why or str(error)
    raise DriverMissingError(why)
