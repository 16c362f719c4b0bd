import importlib.util
import os
import time

import pytest

from truekernel.errors import GpuMissingError, MachineError, NvrtcMissingError
from truekernel.execution import cuda
from truekernel.execution.cuda import compilers, devices
from truekernel.execution.cuda.cache import CubinCache
from truekernel.execution.cuda.diagnostics import failure
from truekernel.execution.cuda.headers import OWN, include_paths
from truekernel.execution.cuda.machine_code import code_hash

needs_nvrtc = pytest.mark.skipif(
    importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.core") is None, reason="no cuda.core"
)
OPTIONS = cuda.Options(arch="sm_90")
GOOD = "__global__ void k(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] = x[i] * 2.0f + 1.0f; }"
LOG = """6: NVRTC_ERROR_COMPILATION, compilation log:

kernel.cu(3): warning #177-D: variable "z" was declared but never referenced
  int z;
      ^

kernel.cu(7): error: identifier "y" is undefined
  __global__ void k(int*x){ y=1; }
                            ^

1 error detected in the compilation of "kernel.cu".
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("truekernel.execution.cuda.compile.cubins", lambda: cache)
    cache = CubinCache(tmp_path / "cubins")
    return cache


def test_first_error_of_the_kernel_file_is_shown():
    found = failure(LOG)
    assert (found.message, found.line, found.column) == ('identifier "y" is undefined', 7, 27)
    assert str(failure("ptxas error   : Entry function 'k' uses too much shared data")).startswith("Entry function")
    assert "can't be used" in str(failure('__nv_name_map(3): error: identifier "zz" is undefined\n'))
    assert str(failure("/usr/x/cuda_fp16.h(9): error: bad\n")) == "cuda_fp16.h:9: bad"
    assert str(failure("the compiler did not end within 60 s")) == "the compiler did not end within 60 s"
    assert str(failure("")) == "the compiler failed without a word"


@needs_nvrtc
def test_kernels_compile_and_failures_have_lines():
    sources = {1: GOOD, 2: "\n\n__global__ void k(int* x) { *x = y; }", 3: "__global__ void other() {}"}
    result = cuda.compile_many(sources, ["k"], OPTIONS, processes=2)
    assert list(result.members) == [1]
    assert (result.failures[2].line, result.failures[2].message) == (3, 'identifier "y" is undefined')
    assert "launched kernel" in result.failures[3].message


@needs_nvrtc
def test_template_kernels_and_names_of_the_host_compile():
    source = """#include <cfloat>
#include <cmath>
#include <climits>
#include <cooperative_groups.h>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math_constants.h>
constexpr float low = -INFINITY;
template <int N, typename T> __global__ void k(T* x, uint32_t n) { x[0] = low + NAN + FLT_MAX + M_PI + N + INT_MAX; }
"""
    library = cuda.compile_single(source, ["k<256, float>", "k<3, double>"], OPTIONS)
    assert isinstance(library, cuda.Library), str(library)
    assert len({library.code_hash(["k<256, float>"]), library.code_hash(["k<3, double>"]), library.code_hash()}) == 3
    broken = cuda.compile_single(source.replace("NAN +", "NAN + q +"), ["k<256, float>"], OPTIONS)
    assert broken.line == 10


@needs_nvrtc
def test_code_hash_follows_the_code_and_nothing_else():
    def digest(source, kernel="k", **options):
        library = cuda.compile_single(source, [kernel], cuda.Options(arch="sm_90", **options))
        assert isinstance(library, cuda.Library), str(library)
        return library.code_hash()

    other = "__global__ void other(int* y) { y[0] = 1; }\n"
    same = [
        digest(GOOD),
        digest("\n\n" + GOOD.replace("i < n", "i <  n /* same */")),
        digest(GOOD.replace("void k(", "void renamed("), "renamed"),
        digest(GOOD, lineinfo=True),
        digest(other + GOOD),
        digest(GOOD + other),
    ]
    assert len(set(same)) == 1
    table = "__constant__ float w[2] = {1, 2};\n" + GOOD.replace("2.0f", "w[n & 1]")
    different = [
        digest(GOOD.replace("2.0f", "3.0f")),
        digest(GOOD.replace("i < n", "i <= n")),
        digest(GOOD, fma=False),
        digest(GOOD, debug=True),
        digest(GOOD.replace("void k", "void __launch_bounds__(64) k")),
        digest(GOOD.replace("float* x", "volatile float* x")),
        digest(table),
        digest(table.replace("{1, 2}", "{1, 3}")),
    ]
    assert len({same[0], *different}) == len(different) + 1


@needs_nvrtc
def test_second_compile_comes_from_the_cache(own_cache, monkeypatch):
    first = cuda.compile_single(GOOD, ["k"], OPTIONS)
    monkeypatch.setattr(compilers.Compilers, "compile", lambda *_: pytest.fail("compiled again"))
    again = cuda.compile_single(GOOD, ["k"], OPTIONS)
    assert again.cubin == first.cubin
    with pytest.raises(pytest.fail.Exception):
        cuda.compile_single(GOOD, ["k"], cuda.Options(arch="sm_80"))


@needs_nvrtc
def test_compiler_that_hangs_is_replaced(monkeypatch):
    monkeypatch.setattr(compilers, "COMPILE_SECONDS", 0.05)
    bomb = "template <int N> struct F { static constexpr long v = F<N-1>::v + F<N-2>::v; };\n#include <cooperative_groups.h>\n"
    found = cuda.compile_single(bomb + GOOD, ["k"], OPTIONS)
    assert "did not end within" in found.message
    monkeypatch.setattr(compilers, "COMPILE_SECONDS", 60.0)
    assert isinstance(cuda.compile_single(GOOD, ["k"], OPTIONS), cuda.Library)


def test_missing_compiler_is_said_in_one_line(monkeypatch):
    class Silent:
        def receive(self, seconds):
            return {"error": "ModuleNotFoundError: No module named 'cuda'"}, bytearray()

    monkeypatch.setattr(compilers, "channel_of", lambda process: Silent())
    with pytest.raises(NvrtcMissingError, match=r"No module named 'cuda'\): pip install cuda-core") as error:
        assert compilers.CompileProcess().version
    assert "\n" not in str(error.value)


def test_missing_driver_and_gpu_are_told_apart():
    assert "no NVIDIA driver (libcuda.so.1: not found)" in str(devices.missing("no_driver", "libcuda.so.1: not found"))
    assert "no NVIDIA GPU" in str(devices.missing("no_device", "device 0: 0 are visible"))
    assert "can't be used" in str(devices.missing("driver", "cuInit: CUDA_ERROR_UNKNOWN"))


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="this machine has a GPU")  # noqa: PTH110
def test_machine_without_a_gpu_says_so():
    devices.device_info.cache_clear()
    with pytest.raises(GpuMissingError, match="use the CPU"):
        cuda.device_info()
    with pytest.raises(GpuMissingError, match="use the CPU"), cuda.Server():
        pass


def test_cache_keeps_whole_entries_and_its_limit(tmp_path):
    cache = CubinCache(tmp_path / "c", limit=3000)
    assert cache.get("a") is None
    for number, name in enumerate("abc"):
        cache.put(name, {"k": "_Z1k"}, bytes(1000))
        os.utime(tmp_path / "c" / f"{name}.bin", (number, number))
    assert cache.get("a") == ({"k": "_Z1k"}, bytes(1000))
    cache.sweep()
    left = sorted(path.name for path in (tmp_path / "c").iterdir())
    assert left == ["a.bin", "c.bin"]
    (tmp_path / "c" / "a.bin").write_bytes(b"TKW1 cut off")
    assert cache.get("a") is None
    assert time.time() - (tmp_path / "c" / "c.bin").stat().st_mtime > 1000


def test_own_headers_come_first():
    assert include_paths((13, 0))[0] == str(OWN)


def test_code_that_is_no_elf_file_is_a_fault_of_the_machine():
    for data in (b"", b"\x7fELF", bytes(100)):
        with pytest.raises(MachineError, match="no ELF file"):
            code_hash(data, ["k"])
