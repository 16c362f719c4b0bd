"""Kernels with planted faults, and what an execution on a GPU must make of each."""

from __future__ import annotations

from dataclasses import dataclass

HEAD = "__global__ void k(const float* x, float* y, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
GOOD = HEAD + "  if (i < n) y[i] = x[i] * 2.0f;\n}\n"


@dataclass(frozen=True)
class Planted:
    """`status`: outcome; `hazard`: part of a hazard that must be reported, "" for none; `right`: whether outputs are right all the same, None where a
    race decides."""

    name: str
    source: str
    status: str = "ok"
    hazard: str = ""
    right: bool | None = None
    shared: int = 0


def body(text: str) -> str:
    """A kernel that does `text` and then its work."""
    return f"{HEAD}  {text}\n  if (i < n) y[i] = x[i] * 2.0f;\n}}\n"


PLANTED = (
    Planted("good", GOOD, right=True),
    Planted("wrong", GOOD.replace("2.0f", "2.5f"), right=False),
    Planted("unwritten tail", GOOD.replace("i < n", "i < n - 1"), right=False),
    Planted("one behind", body("if (i == 0) y[n] = 1.0f;"), hazard="wrote behind buffer", right=True),
    Planted("one before", body("if (i == 0) y[-1] = 1.0f;"), hazard="wrote before buffer", right=True),
    Planted("writes its input", body("if (i == 0) const_cast<float*>(x)[n - 1] += 1.0f;"), hazard="wrote to input"),
    Planted("far out of bounds", body("if (i == 0) y[1ll << 40] = 1.0f;"), "out_of_bounds"),
    Planted("null pointer", body("if (i == 0) *(volatile float*)nullptr = 1.0f;"), "out_of_bounds"),
    Planted("misaligned", body("if (i == 0) *(volatile float*)((char*)y + 1) = 1.0f;"), "misaligned"),
    Planted("trap", body("if (i == 3) __trap();"), "trap"),
    Planted("assert", "#include <assert.h>\n" + body("assert(i != 5);"), "trap"),
    Planted("hang", body("if (i == 0) while (*(volatile const float*)x != 12345.0f) {}"), "timeout"),
    Planted("too much shared memory", GOOD, "trap", shared=227 * 1024 + 1024),
    Planted("much shared memory", GOOD, right=True, shared=100 * 1024),
)

SANITISED = (
    ("memcheck", "out_of_bounds", body("if (i == 0) y[n] = 1.0f;"), 3),
    ("memcheck", "out_of_bounds", HEAD + "  y[i] = x[i] * 2.0f;\n}\n", 3),
    (
        "racecheck",
        "race",
        HEAD + "  __shared__ float s[256];\n  s[threadIdx.x] = i < n ? x[i] : 0.0f;\n"
        "  float other = s[(threadIdx.x + 32) % 256];\n  if (i < n) y[i] = x[i] * 2.0f + 0.0f * other;\n}\n",
        4,
    ),
    ("initcheck", "uninitialised_read", HEAD + "  if (i < n) y[i] = x[i] * 2.0f + 0.0f * y[i];\n}\n", 3),
    (
        "synccheck",
        "barrier_divergence",
        body("if (threadIdx.x < 40) __syncthreads();"),
        3,
    ),
)
"""Tool, status, source, line of the fault."""
