"""Small programs and plans for tests of the compilers and the native server."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from truekernel.execution import simt
from truekernel.execution.recorder import trace
from truekernel.model import AxisSpec, Configuration, Execution, LaunchPlan, OutputSpec, Problem, TensorSpec
from truekernel.numerics.expected import Expected
from truekernel.source import kernel_signatures

N = 300
VADD = """#include <cuda_runtime.h>
__global__ void vadd(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
"""
BLOCK_SUM = """#define THREADS 128
__device__ float twice(float x) { return 2.0f * x; }
template <int UNROLL>
__global__ void vadd(const float* __restrict__ a, const float* __restrict__ b, float* c, int n) {
  extern __shared__ float parts[];
  __shared__ float last[THREADS];
  const int t = threadIdx.x;
  float sum = 0.0f;
  #pragma unroll
  for (int k = 0; k < UNROLL; ++k) {
    int i = t + k * THREADS;
    if (i < n) sum += a[i] * b[i] + twice(b[i]);
  }
  parts[t] = sum;
  __syncthreads();
  for (int step = THREADS / 2; step > 0; step >>= 1) {
    if (t < step) parts[t] += parts[t + step];
    __syncthreads();
  }
  last[t] = parts[0];
  if (t < n) c[t] = last[t] - t;
}
"""
PROBLEM = Problem(
    "vadd",
    "elementwise",
    "c = a + b",
    {"N": AxisSpec(N, N, "batch")},
    (TensorSpec("a", ("N",)), TensorSpec("b", ("N",))),
    (OutputSpec("c", ("N",)),),
    lambda inputs, axes: (inputs["a"] + inputs["b"],),
    lambda axes: 0,
    lambda axes: 0,
)


def plan_of(
    source: str, kernel: str = "vadd", block: int = 128, shared: int = 0, grid: int = 0, n: int = N
) -> LaunchPlan:
    """Plan with one launch of `kernel`; enough blocks for all elements unless `grid` says otherwise."""
    text = f"""
def launch(run, inputs, axes):
    c = run.empty((axes["N"],), "float32")
    run.launch("{kernel}", {grid or -(-n // block)}, {block}, [inputs["a"], inputs["b"], c, axes["N"]], shared={shared})
    return c
"""
    return trace(text, kernel_signatures(source), PROBLEM, {"N": n})


def tensors(n: int = N, seed: int = 0) -> dict[str, torch.Tensor]:
    """Inputs a and b."""
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.rand(n, generator=generator) for name in ("a", "b")}


def expect(published: torch.Tensor) -> Expected:
    """A reference whose error scale is one float32 unit roundoff at 1."""
    truth = published.double()
    return Expected("c", "float32", "value", published, truth, torch.full_like(truth, 2.0**-24))


def compiled(source: str, kernel: str = "vadd", **options: object) -> simt.Library:
    """The source compiled alone; fails the test when it does not compile."""
    library = simt.compile_single(source, (kernel,), simt.Options(**options))  # type: ignore[arg-type]
    assert isinstance(library, simt.Library), str(library)
    return library


def answers(executions: list[Execution]) -> list[tuple[str, str]]:
    """What two builds of one variant must agree on."""
    return [(e.outcome.status, e.output_hash) for e in executions]


def once(
    server: simt.Server, library: simt.Library, key: str, variant: int = 0, **options: object
) -> tuple[Execution, list[torch.Tensor] | None]:
    """One execution under the default schedule, with outputs."""
    configuration = Configuration(checked=library.checked)
    run = server.run(library, variant, [(key, configuration)], keep_outputs=True, **options)  # type: ignore[arg-type]
    return run.executions[0], run.outputs[0]


def edited(source: str, changes: Mapping[str, str]) -> str:
    """`source` with each key, which must occur once, replaced."""
    for old, new in changes.items():
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source
