"""A stranger's file: kernels cut out, solve() translated into a plan."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from truekernel.errors import BadInputError, SourceError
from truekernel.model import AxisSpec, OutputSpec, Problem, TensorSpec
from truekernel.source import cut_kernels, parse_plan, translate_solve
from truekernel.source.tree import has_errors

KERNELS = """
#include <cuda_runtime.h>
#include <cooperative_groups.h>
#include <iostream>
#include "torch/extension.h"
#define TILE 16
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) exit(1); } while (0)
constexpr int THREADS = 256;
using torch::Tensor;
struct Pair { float value; int index; };
static std::vector<int> cache;
__constant__ float table[32];
void declared(int);
__device__ float twice(float v) { return v + v; }
template <int BLOCK> __global__ void part(const float* A, float* t, int N) { if (threadIdx.x < N) t[0] = twice(A[0]); }
__global__ void finish(const float* t, float* C, int N, float s) { C[0] += t[0] * s; }
int ceil_div(int a, int b) { return (a + b - 1) / b; }
torch::Tensor forward(torch::Tensor x) { return torch::empty_like(x); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward, "x"); }
"""
SOLVE = """
extern "C" void solve(const float* A, float* C, int N) {
    dim3 block(THREADS);
    const int small = 128;
    dim3 grid(ceil_div(N, small), 1);
    float* t = nullptr;
    float* u;
    size_t bytes = N * sizeof(float);
    CHECK(cudaMalloc((void**)&t, bytes));
    cudaMalloc(&u, bytes);
    cudaMemset(C, 0, sizeof(float));
    part<small><<<grid, small>>>(A, t, N);
    for (int step = 1; step < N; step *= 2) {
        part<THREADS><<<CEIL_DIV(N, THREADS), block, THREADS * sizeof(float)>>>(t, u, N);
        float* swapped = t; t = u; u = swapped;
    }
    if (N > 4) { finish<<<1, 1>>>(t, C, N, 1.0f / N); } else finish<<<1, 1, 0>>>(t + 1, C, N - 1, 0.5f);
    cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess) { printf("%s", cudaGetErrorString(status)); }
    cudaDeviceSynchronize();
    cudaFree(t);
}
int main() { std::cout << 1; return 0; }
"""


def _problem(**changes: object) -> Problem:
    fields = {
        "name": "total",
        "family": "reduction",
        "summary": "",
        "axes": {"n": AxisSpec(10, 10, "reduction")},
        "inputs": (TensorSpec("a", ("n",)),),
        "outputs": (OutputSpec("c", (1,)),),
        "reference": lambda inputs, axes: (inputs["a"],),
        "flops": lambda axes: 1.0,
        "bytes": lambda axes: 1.0,
    }
    return Problem(**{**fields, **changes})  # type: ignore[arg-type]


class _Handle(SimpleNamespace):
    def offset(self, elements: int) -> tuple[str, int]:
        return (self.name, elements)


class _Run:
    """Records what a plan asks for."""

    def __init__(self) -> None:
        self.log: list[tuple] = []

    def empty(self, shape, dtype="float32"):
        return self._buffer("empty", shape, dtype)

    def zeros(self, shape, dtype="float32"):
        return self._buffer("zeros", shape, dtype)

    def _buffer(self, kind, shape, dtype):
        self.log.append((kind, shape, dtype))
        return _Handle(name=f"{kind}{len(self.log)}", shape=shape, dtype=dtype)

    def launch(self, kernel, grid, block, args, shared=0):
        self.log.append((kernel, grid, block, tuple(getattr(a, "name", a) for a in args), shared))


def _run(plan: str, **axes: int) -> tuple[list[tuple], object]:
    scope: dict = {}
    exec(compile(plan, "plan", "exec"), scope)
    run = _Run()
    result = scope["launch"](run, {"a": _Handle(name="a"), "b": _Handle(name="b")}, axes)
    return run.log, result


def test_host_code_is_blanked_and_lines_stay() -> None:
    text = KERNELS + SOLVE
    cut = cut_kernels(text)
    assert not has_errors(cut.source)
    kept = [
        "#include <cuda_runtime.h>",
        "cooperative_groups.h",
        "#define TILE 16",
        "struct Pair",
        "__constant__ float table",
        "twice(A[0])",
    ]
    gone = ["iostream", "torch", "std::vector", "declared", "ceil_div(", "solve", "main", "PYBIND"]
    assert all(piece in cut.source for piece in kept)
    assert not any(piece in cut.source for piece in gone)
    before, after = text.split("\n"), cut.source.split("\n")
    assert len(before) == len(after)
    assert all(new in ("", old.rstrip()) for old, new in zip(before, after, strict=True))
    assert {d.name for d in cut.dropped} >= {"solve", "main", "forward", "ceil_div"}


def test_a_file_without_kernels_is_refused() -> None:
    with pytest.raises(BadInputError, match="no __global__ function"):
        cut_kernels("int main() { return 0; }")


def test_solve_becomes_a_plan() -> None:
    plan = translate_solve(KERNELS + SOLVE, _problem(), "total.cu")
    assert parse_plan(plan).calls("launch")
    log, result = _run(plan, n=9)
    assert log == [
        ("empty", (1,), "float32"),
        ("empty", 9, "float32"),
        ("empty", 9, "float32"),
        ("zeros", (1,), "float32"),
        ("part<128>", (1, 1, 1), 128, ("a", "empty2", 9), 0),
        ("part<THREADS>", 1, (256, 1, 1), ("empty2", "empty3", 9), 1024),
        ("part<THREADS>", 1, (256, 1, 1), ("empty3", "empty2", 9), 1024),
        ("part<THREADS>", 1, (256, 1, 1), ("empty2", "empty3", 9), 1024),
        ("part<THREADS>", 1, (256, 1, 1), ("empty3", "empty2", 9), 1024),
        ("finish", 1, 1, ("empty2", "zeros4", 9, 1.0 / 9), 0),
    ]
    assert result.name == "zeros4"  # type: ignore[attr-defined]
    log, _ = _run(plan, n=3)
    assert log[-1] == ("finish", 1, 1, (("empty2", 1), "zeros4", 2, 0.5), 0)


def test_parameters_find_what_they_stand_for() -> None:
    problem = _problem(
        axes={"rows": AxisSpec(4, 4, "batch"), "cols": AxisSpec(5, 5, "reduction")},
        inputs=(TensorSpec("a", ("rows", "cols")), TensorSpec("b", ("cols",))),
        outputs=(OutputSpec("c", ("rows - 1", "cols // 2")),),
        constants={"alpha": 0.25},
    )
    text = """
    __global__ void k(const float* b, const float* x, float* y, float alpha, int m, int n) { y[0] = x[0]; }
    void solve(const float* b, const float* in, float* out, float alpha, int m, int n) {
        k<<<dim3(m, n), dim3(32, 4)>>>(b, in, out, alpha, m, n);
    }
    """
    log, result = _run(translate_solve(text, problem), rows=4, cols=5)
    assert log[0] == ("empty", (3, 2), "float32")
    assert log[1] == ("k", (4, 5, 1), (32, 4, 1), ("b", "a", "empty1", 0.25, 4, 5), 0)
    assert result.name == "empty1"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("cudaMemcpy(C, A, 4, cudaMemcpyDeviceToDevice);", "cudaMemcpy"),
        ("int count; cudaGetDeviceCount(&count);", "cudaGetDeviceCount"),
        ("finish<<<1, 1>>>(A, C, N, 1.0f); cudaMemset(C, 0, 4);", "after a kernel has used it"),
        ("cudaMemset(C, 1, 4);", "set whole buffers to zero"),
        ("float first = *A;", "read device memory"),
        ("int sizes[3];", "array 'sizes'"),
        ("do { N--; } while (N);", "do statement"),
        ("std::vector<int> v; v.push_back(1);", "push_back"),
    ],
)
def test_what_a_plan_cannot_say_is_refused_with_its_line(statement: str, why: str) -> None:
    text = f"{KERNELS}\nvoid solve(const float* A, float* C, int N) {{\n{statement}\n}}\n"
    line = text.split("\n").index(statement) + 1
    with pytest.raises(SourceError, match=rf"^x\.cu:{line}:\d+: .*{why}"):
        translate_solve(text, _problem(), "x.cu")


def test_unclear_parameters_are_refused() -> None:
    text = f"{KERNELS}\nvoid solve(const float* A, float* C, int N, int extra) {{ }}\n"
    with pytest.raises(SourceError, match="'extra' is no axis"):
        translate_solve(text, _problem())
    with pytest.raises(BadInputError, match="no host function solve"):
        translate_solve(KERNELS, _problem())
    with pytest.raises(BadInputError, match="name the problem"):
        translate_solve(KERNELS + SOLVE)
