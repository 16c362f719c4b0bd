"""The real worker process, on a driver whose device is the process' own memory. Symbols of kernels are names of functions here."""

import ctypes
import struct

from cuda_fake_driver import FakeDriver, words

from truekernel.execution.cuda import worker
from truekernel.execution.cuda.device_memory import ZONE, probe_value
from truekernel.execution.cuda.driver import DriverError


def double(_driver, parameters):
    x, y = words(parameters, 2)
    ctypes.memmove(y, struct.pack("<5f", *(2 * v for v in struct.unpack("<5f", ctypes.string_at(x, 20)))), 20)


def behind(driver, parameters):
    double(driver, parameters)
    ctypes.c_char.from_address(words(parameters, 2)[1] + 24).value = b"!"


def to_input(driver, parameters):
    double(driver, parameters)
    ctypes.c_float.from_address(words(parameters, 2)[0]).value = 7.0


def far(driver, parameters):
    """Changes contents of cases other than the one at hand."""
    double(driver, parameters)
    mine = words(parameters, 2)[0] - ZONE
    for blob in gpu_memory[0].blobs.values():
        if blob.base != mine:
            ctypes.c_char.from_address(blob.address).value = b"!"


def faulty(driver, parameters):
    driver.fault(700)


def hang(driver, parameters):
    driver.hung = True


def refused(driver, parameters):
    raise DriverError(1, "CUDA_ERROR_INVALID_VALUE", "invalid argument", "cuLaunchKernel")


KERNELS = {f.__name__: f for f in (double, behind, to_input, far, faulty, hang, refused)}
gpu_memory = []


class Gpu(FakeDriver):
    def __init__(self):
        super().__init__(KERNELS)

    def open(self, device):
        pass

    def device_count(self):
        return 1

    def device_name(self, device):
        return "own memory"

    def arch(self, device):
        return "sm_90"

    def version(self):
        return 13000

    def total_memory(self, device):
        return 1 << 30

    def most_shared(self, device):
        return 1 << 16

    def tk_probe(self, grid, parameters):
        out = words(parameters, 1)[0]
        values = [probe_value(block, thread) for block in range(grid[0]) for thread in range(256)]
        ctypes.memmove(out, struct.pack(f"<{len(values)}I", *values), 4 * len(values))


class Memory(worker.Memory):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        gpu_memory.append(self)


if __name__ == "__main__":
    worker.Driver = Gpu
    worker.Memory = Memory
    worker.main()
