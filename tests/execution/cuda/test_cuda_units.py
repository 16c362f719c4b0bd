import importlib.util

import pytest

from truekernel.execution import cuda
from truekernel.execution.cuda import machine_code, units
from truekernel.execution.cuda.cache import CubinCache

needs_nvrtc = pytest.mark.skipif(
    importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.core") is None, reason="no cuda.core"
)
OPTIONS = cuda.Options(arch="sm_90")
SOURCE = """#include <math_constants.h>
#define SCALE 3.0f
constexpr int WIDTH = 32;
template <int Rows> __global__ void k(float* x, int n) {
  extern __shared__ float part[];
  __shared__ float all[WIDTH];
  part[threadIdx.x] = x[threadIdx.x] * SCALE;
  all[threadIdx.x % WIDTH] = CUDART_PI_F;
  __syncthreads();
  if (threadIdx.x < n) x[threadIdx.x] = part[n - threadIdx.x] + all[Rows];
}
"""
CONSTANT = """constexpr int TILE = 32;
__device__ const int& least(const int& a, const int& b) { return b < a ? b : a; }
__global__ void k(int* x, int n) { x[0] = least(TILE, n); }
"""
OTHERS = [SOURCE.replace("* SCALE", f"+ {n}.5f * SCALE") for n in range(3)]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    cache = CubinCache(tmp_path / "cubins")
    monkeypatch.setattr("truekernel.execution.cuda.compile.cubins", lambda: cache)


def test_unit_has_each_source_in_a_namespace_and_no_macro_outlives_its_source():
    unit = units.unit([SOURCE, "__global__ void k(float* x) { x[0] = SCALE; }"])
    assert unit is not None
    text = unit.text
    lines = text.split("\n")
    assert [lines[start - 1] for start in unit.starts] == [f"namespace {units.space(n)} {{" for n in range(2)]
    assert [unit.source_at(line) for line in (1, *unit.starts, len(lines))] == [None, 0, 1, 1]
    assert text.startswith("#include <math_constants.h>\n")
    assert text.count("#include") == 1
    first, second = text.split(f"namespace {units.space(1)}")
    assert first.rstrip().endswith("#undef SCALE")
    assert "SCALE" in second


@pytest.mark.parametrize(
    "source",
    [
        'extern "C" __global__ void k() {}',
        "__constant__ float table[4];\n__global__ void k() {}",
        "#ifdef X\n#include <cuda_fp16.h>\n#endif\n__global__ void k() {}",
        "namespace std { int x; }\n__global__ void k() {}",
    ],
)
def test_sources_that_no_namespace_holds_are_left_alone(source):
    assert units.unit([SOURCE, source]) is None


@needs_nvrtc
def test_machine_code_is_what_it_is_alone():
    sources = dict(enumerate([*OTHERS, CONSTANT]))
    kernels = {number: ["k<1>"] for number in range(3)} | {3: ["k"]}
    alone = cuda.compile_many(sources, kernels, OPTIONS, processes=1)
    together = cuda.compile_many(sources, kernels, OPTIONS, processes=1, together=8)
    assert len({library.unit for library in together.libraries}) == 1
    assert len({library.unit for library in alone.libraries}) == 4
    hashes = [library.code_hash() for library in together.libraries]
    assert hashes == [library.code_hash() for library in alone.libraries]
    assert len(set(hashes)) == 4
    assert [library.stateful for library in together.libraries] == [False] * 4
    assert len({library.path for library in together.libraries}) == 4
    assert machine_code.variables(together.members[3].cubin, together.members[3].space)[0].name == "TILE"


@pytest.mark.parametrize("number", [0, 6, 7, 25, 26, 99])
def test_plain_name_of_a_variable_in_any_space(number):
    space = units.space(number)
    mangled = f"_ZN39_INTERNAL_00000000_9_kernel_cu_5d0de356{len(space)}{space}4COLSE"
    assert machine_code._plain_name(mangled) == "COLS"


@needs_nvrtc
def test_variables_count_by_what_they_hold():
    first, second = "__device__ int a = 1, b = 2;\n", "__device__ int a = 1, b = 3;\n"
    kernel = "__global__ void k(int* x) { x[0] = a; x[1] = b; a = x[2]; }\n"
    sources = dict(enumerate([first + kernel, first + "\n" + kernel, second + kernel]))
    libraries = cuda.compile_many(sources, ["k"], OPTIONS, processes=1, together=8).libraries
    hashes = [library.code_hash() for library in libraries]
    assert hashes[0] == hashes[1] != hashes[2]
    assert all(library.stateful and not library.space for library in libraries)


@needs_nvrtc
def test_failure_in_a_unit_is_that_of_its_source():
    sources = {4: OTHERS[0], 5: OTHERS[1].replace("SCALE;", "SCALE2;"), 6: OTHERS[2]}
    result = cuda.compile_many(sources, ["k<1>"], OPTIONS, processes=1, together=8)
    assert list(result.members) == [4, 6]
    assert len({library.unit for library in result.libraries}) == 1
    assert (result.failures[5].line, result.failures[5].message) == (7, 'identifier "SCALE2" is undefined')
