"""A driver whose device is this process' own memory: kernels are Python functions that run when they are launched."""

import ctypes
import itertools
import struct

from truekernel.execution.cuda.driver import DriverError

MASK = 2**64 - 1
STEP = 16 << 20
NOT_SUPPORTED = 801


def mixed(index, low, high):
    h = low ^ ((index * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) & MASK)
    h = ((h ^ (h >> 32)) * 0xFF51AFD7ED558CCD) & MASK
    h = (((h ^ (h >> 29)) + high) * 0xC4CEB9FE1A85EC53) & MASK
    h = ((h ^ (h >> 32)) * 0xFF51AFD7ED558CCD) & MASK
    return h ^ (h >> 29)


def words(parameters, count):
    return [ctypes.c_uint64.from_address(parameters[k]).value for k in range(count)]


def ranges(address, count):
    return [struct.unpack("<QQII", ctypes.string_at(address + 24 * k, 24)) for k in range(count)]


class FakeDriver:
    """`kernels`: function by symbol, called with the addresses of its arguments; one may raise a DriverError later calls meet (`fault`), or hang (`hang`).
    `piecewise`: whether addresses can be reserved; pieces of memory are then counted, not made."""

    def __init__(self, kernels=(), *, piecewise=False):
        self.kernels = dict(kernels)
        self.piecewise = piecewise
        self.memory = {}
        self.maps = {}
        self.pieces = itertools.count(1)
        self.lost = None
        self.hung = False
        self.waiting = []
        self.waits = 0

    def fault(self, code):
        self.lost = DriverError(code, f"CUDA_ERROR_{code}", "a fault", "cuEventQuery")

    def call(self, name, *arguments):
        if self.lost:
            raise self.lost
        if name in {"cuMemcpyDtoDAsync_v2", "cuMemcpyDtoHAsync_v2"}:
            target, source, nbytes, _ = arguments
            self.later(lambda: ctypes.memmove(target, source, nbytes))
        elif name == "cuMemsetD8Async":
            target, value, nbytes, _ = arguments
            if target not in self.maps:
                self.later(lambda: ctypes.memset(target, value, nbytes))

    def later(self, work):
        if not self.hung and self.lost is None:
            work()

    def allocate(self, nbytes):
        buffer = (ctypes.c_char * (nbytes + 512))()
        address = (ctypes.addressof(buffer) + 511) // 512 * 512
        self.memory[address] = buffer
        return address

    def free(self, address):
        del self.memory[address]

    host_memory = allocate

    def upload(self, address, data):
        ctypes.memmove(address, bytes(data), len(data))

    def download(self, address, nbytes):
        self.waits += 1
        return bytearray(ctypes.string_at(address, nbytes))

    def load(self, cubin):
        return cubin

    def unload(self, module):
        pass

    def function(self, module, symbol):
        if symbol not in self.kernels and not hasattr(self, symbol):
            raise DriverError(500, "CUDA_ERROR_NOT_FOUND", "no such kernel", "cuModuleGetFunction")
        return symbol

    def launch(self, function, grid, block, parameters, *, shared=0, stream=None, cooperative=False):
        if self.lost:
            raise self.lost
        own = getattr(self, function, None)
        self.later(lambda: own(grid, parameters) if own else self.kernels[function](self, parameters))

    def tk_fill(self, grid, parameters):
        for address, nbytes, value, _ in ranges(words(parameters, 1)[0], grid[1]):
            ctypes.memset(address, value, nbytes)

    def tk_check(self, grid, parameters):
        table, found = words(parameters, 2)
        for k, (address, nbytes, value, _) in enumerate(ranges(table, grid[0])):
            data = ctypes.string_at(address, nbytes)
            wrong = next((i for i, byte in enumerate(data) if byte != value), MASK)
            ctypes.c_uint64.from_address(found + 8 * k).value = wrong

    def tk_hash(self, grid, parameters):
        table, sums = words(parameters, 2)
        for k, (address, nbytes, _, number) in enumerate(ranges(table, grid[1])):
            data = ctypes.string_at(address, nbytes) if address not in self.maps else b""
            data += bytes(-len(data) % 16)
            pairs = struct.iter_unpack("<QQ", data)
            total = sum(mixed((number << 40) + i, low, high) for i, (low, high) in enumerate(pairs)) & MASK
            ctypes.c_uint64.from_address(sums + 8 * k).value = total

    def tk_probe(self, grid, parameters):
        raise NotImplementedError

    def allow_shared(self, function, nbytes):
        pass

    def stream(self):
        return None

    def event(self):
        return None

    def reached(self, event):
        self.waits += 1
        if self.lost:
            raise self.lost
        return not self.hung

    def seconds(self, start, end):
        return 0.001

    def free_memory(self):
        return 1 << 30

    def reserve(self, nbytes):
        if not self.piecewise:
            raise DriverError(NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "not supported", "cuMemAddressReserve")
        return next(self.pieces) << 40

    def create(self, nbytes, device):
        if not self.piecewise:
            raise DriverError(NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "not supported", "cuMemCreate")
        return next(self.pieces)

    def map(self, address, handles, nbytes, device):
        for k, handle in enumerate(handles):
            for at in range(address + k * nbytes, address + (k + 1) * nbytes, STEP):
                assert at not in self.maps, "mapped twice"
                self.maps[at] = handle

    def unmap(self, address, nbytes):
        for at in range(address, address + nbytes, STEP):
            del self.maps[at]
