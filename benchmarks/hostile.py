"""Run 100 hostile kernels and count those whose outcome is named right with this process and the native server alive afterwards.

    python benchmarks/hostile.py > results/hostile.json

Each kernel is a body of `__global__ void k(float* out, const float* in, int n)`, launched plainly or in the checked build, with the outcomes
that are right for it. A well-behaved kernel runs after each of them on the same server and must still be right.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

import torch

from truekernel.execution import simt
from truekernel.model import BufferArg, BufferSpec, Configuration, Launch, LaunchPlan, ScalarArg

N = 256


@dataclass(frozen=True)
class Hostile:
    """`right`: outcomes that name what the kernel does. `prelude`: text before the kernel."""

    name: str
    body: str
    right: tuple[str, ...]
    checked: bool = False
    block: int = 64
    shared: int = 0
    prelude: str = ""


FAULT = ("out_of_bounds",)
END = ("trap", "crash")


def kernels() -> list[Hostile]:
    found: list[Hostile] = []

    def add(name: str, bodies: list[str], right: tuple[str, ...], **more: object) -> None:
        for number, body in enumerate(bodies):
            found.append(Hostile(f"{name}-{number}", body, right, **more))  # type: ignore[arg-type]

    i = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
    add(
        "null-store",
        [
            "*(volatile float*)0 = 1;",
            "if (threadIdx.x == 7) *(volatile int*)16 = 1;",
            f"{i} ((volatile float*)0)[i] = i;",
            "float* p = n > 0 ? nullptr : out; *(volatile float*)p = 2;",
        ],
        FAULT,
    )
    add(
        "null-load",
        ["out[0] = *(volatile const float*)0;", "out[threadIdx.x] = ((volatile const float*)64)[threadIdx.x];"],
        FAULT,
    )
    add(
        "wild-store",
        [
            "*(volatile float*)0x123456789000ull = 1;",
            "*(volatile char*)(~0ull) = 1;",
            "*(volatile float*)0x7fffffff0000ull = 1;",
            "((volatile float*)out)[1ll << 40] = 1;",
            "((volatile float*)out)[-(1ll << 40)] = 1;",
            "*(volatile double*)0xdeadbeefdeadbeefull = 3;",
        ],
        FAULT,
    )
    add(
        "far-over-run",
        [f"{i} out[i + 1000000] = 1;", f"{i} out[i * 100000] = 1;", "out[n * 4096] = 1;", "out[2147483647] = 1;"],
        FAULT,
    )
    add("far-under-run", [f"{i} out[-1 - i * 100000] = 1;", "out[-2147483647] = 1;", "out[-n * 4096] = 1;"], FAULT)
    add("far-read", [f"{i} out[i] = in[i + 50000000];", "out[0] = in[-100000000];"], FAULT)
    add(
        "near-over-run-checked",
        [
            f"{i} out[i + 1] = 1;",
            "out[n] = 1;",
            "out[-1] = 1;",
            f"{i} out[i] = in[i + 1];",
            "out[0] = in[-1];",
            "out[n + 511] = 2;",
        ],
        FAULT,
        checked=True,
    )
    add("write-to-input-far", ["((float*)in)[n * 4096] = 1;"], FAULT)
    add(
        "infinite-loop",
        [
            "while (true) {}",
            "for (;;) out[0] = 1;",
            "volatile int x = 0; while (x == 0) {}",
            "volatile float* p = out; while (p[0] != 42.0f) {}",
            "int s = 1; while (n) s += s; out[0] = s;",
            "if (threadIdx.x == 3) while (true) __syncwarp(1u << 3);",
        ],
        ("timeout",),
    )
    add(
        "spin-for-ever",
        [
            "__shared__ volatile int flag; flag = 0; while (!flag) {}",
            "while (atomicAdd((int*)out, 0) != -7) {}",
            "while (atomicCAS((int*)out, 123456, 1) != 123456) {}",
        ],
        ("timeout",),
    )
    recursion = "__device__ __noinline__ int down(volatile int* p, int n) { volatile int a[64]; a[n & 63] = n; return down(p, n + 1) + a[(n + 1) & 63] + *p; }\n"
    add(
        "infinite-recursion",
        ["out[0] = down((int*)out, 0);", "if (threadIdx.x == 5) out[5] = down((int*)out, n);"],
        END,
        prelude=recursion,
    )
    big = "__device__ __noinline__ void deep(volatile float* p, int n) { volatile char big[100000]; big[n & 1023] = 1; if (n < 1000000) deep(p, n + 1); p[0] += big[n & 1023]; }\n"
    add("deep-stack", ["deep(out, 0);", "if (blockIdx.x == 1) deep(out, 1);"], END, prelude=big)
    # Threads that have ended count as arrived, on a GPU as here: those left out must wait at another barrier.
    add(
        "divergent-barrier",
        [
            "if (threadIdx.x < 8)\n__syncthreads();\n__syncthreads();",
            "if (threadIdx.x % 2) {\n__syncthreads();\n} else {\n__syncthreads();\n}",
            "for (int j = 0; j < (int)threadIdx.x; ++j)\n__syncthreads();\n__syncthreads_or(1);",
            "if (threadIdx.x < 32) { __syncthreads(); }\n else {\n __syncthreads(); }",
            "if (threadIdx.x < 20)\n__syncthreads_and(1);\n__syncthreads_or(1);",
        ],
        ("barrier_divergence", "deadlock"),
        checked=True,
    )
    add(
        "shuffle-deadlock",
        [
            "float v = 0; if (threadIdx.x < 16) v = __shfl_sync(0xffffffffu, 1.0f, 0);\n__syncthreads(); out[threadIdx.x] = v;",
            "if (threadIdx.x & 1) __syncwarp();\n__syncthreads();",
            "unsigned v = 0; if (threadIdx.x < 4) v = __ballot_sync(0xffffffffu, 1);\n__syncthreads(); out[threadIdx.x] = v;",
            "if (threadIdx.x == 0) __syncthreads();\nelse if (threadIdx.x < 32) __syncwarp();",
        ],
        ("deadlock", "barrier_divergence", "trap"),
    )
    add("illegal-mask", ["out[0] = __shfl_sync(0x1u, 1.0f, 0);", "__syncwarp(0x2u);"], ("trap", "deadlock"))
    add("huge-shared", ["extern __shared__ float s[]; s[threadIdx.x] = 1; out[0] = s[0];"], ("trap",), shared=1 << 20)
    add(
        "huge-shared-just",
        ["extern __shared__ float s[]; s[threadIdx.x] = 1; out[0] = s[0];"],
        ("trap",),
        shared=228 * 1024,
    )
    add("too-many-threads", ["out[0] = 1;", "out[threadIdx.x] = 1;"], ("trap",), block=2048)
    add(
        "shared-over-run",
        [
            "__shared__ float s[32]; s[threadIdx.x] = 1; __syncthreads(); out[0] = s[threadIdx.x];",
            "__shared__ float a[16]; __shared__ float b[16]; if (threadIdx.x < 16) { a[threadIdx.x] = 1; b[threadIdx.x] = 2; } __syncthreads(); if (blockIdx.x + threadIdx.x == 0) out[0] = a[16 + (n & 1)];",
            "__shared__ int s[8]; s[n] = 1;",
            "__shared__ float s[64]; s[threadIdx.x - 1] = 1;",
        ],
        FAULT,
        checked=True,
    )
    add(
        "dynamic-shared-over-run",
        ["extern __shared__ float s[]; s[threadIdx.x + 64] = 1;", "extern __shared__ float s[]; s[-1] = 1;"],
        FAULT,
        checked=True,
        shared=256,
    )
    smash = "__device__ __noinline__ void smash(volatile float* p, int n) { volatile char b[16]; for (int j = 0; j < n * 64; ++j) ((volatile char*)b)[j] = 0x41; p[0] = b[3]; }\n"
    add(
        "stack-smash",
        ["smash(out, n);", "if (threadIdx.x == 9) smash(out, n * 4);"],
        ("crash", "out_of_bounds", "trap"),
        prelude=smash,
    )
    # The symbols of the C library under names of our own: a GPU's compiler would refuse the calls, nothing else stops them here.
    posix = "".join(
        f'{kind} c_{name}({args}) __asm__("{name}");\n'
        for kind, name, args in (
            ("void", "exit", "int"),
            ("void", "_exit", "int"),
            ("int", "fork", ""),
            ("int", "getpid", ""),
            ("void", "abort", ""),
            ("int", "kill", "int, int"),
            ("long", "write", "int, const void*, unsigned long"),
            ("int", "open", "const char*, int, ..."),
            ("int", "raise", "int"),
            ("int", "close", "int"),
            ("int", "unlink", "const char*"),
            ("int", "socket", "int, int, int"),
            ("int", "execve", "const char*, char* const*, char* const*"),
            ("int", "dup2", "int, int"),
            ("long", "syscall", "long, ..."),
        )
    )
    add("exit", ["c_exit(0);", "c__exit(0);", "if (threadIdx.x == 1) c_exit(1);", "c__exit(96);"], END, prelude=posix)
    add(
        "process",
        [
            "c_fork();",
            "if (c_fork() == 0) while (true) {}",
            'c_execve("/bin/true", nullptr, nullptr);',
            "c_abort();",
            "c_raise(9);",
            "c_kill(c_getpid(), 9);",
            "c_kill(-1, 15);",
        ],
        END,
        prelude=posix,
    )
    add(
        "files",
        [
            'c_open("/etc/passwd", 0);',
            'c_unlink("/tmp/something");',
            "c_socket(2, 1, 0);",
            "for (int f = 0; f < 64; ++f) c_close(f);",
            "for (int f = 3; f < 64; ++f) c_dup2(1, f);",
            "c_syscall(62, c_getpid(), 9);",
            'for (int f = 0; f < 3; ++f) c_write(f, "x", 1);',
        ],
        END,
        prelude=posix,
    )
    add(
        "misaligned",
        [
            "*(float*)((char*)out + 1) = 1;",
            "*(double*)((char*)out + 4) = 1;",
            "float4 v = *(const float4*)(in + 1); out[0] = v.x;",
        ],
        ("misaligned",),
        checked=True,
    )
    add(
        "trap",
        ["__trap();", "assert(n < 0);", "if (threadIdx.x == 63) __trap();"],
        ("trap",),
        prelude="#include <cassert>\n",
    )
    add(
        "division",
        ["out[0] = 1 / (n - 256);", "out[0] = n % (n - 256);", "out[0] = (-2147483647 - 1) / (n - 257);"],
        ("host_differs",),
    )
    add("shift", ["out[0] = 1 << (n - 200);", "out[0] = 1u >> n;"], ("host_differs",))
    add(
        "race",
        [
            "__shared__ int s; s = threadIdx.x; out[0] = s;",
            "out[0] = threadIdx.x;",
            "__shared__ float s[64]; s[threadIdx.x] = 1; out[threadIdx.x] = s[63 - threadIdx.x];",
            "out[0] += 1;",
        ],
        ("race", "uninitialised_read"),
        checked=True,
    )
    add(
        "uninitialised-shared",
        [
            "__shared__ float s[64]; out[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];",
            "extern __shared__ float s[]; out[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];",
        ],
        ("uninitialised_read",),
        checked=True,
        shared=256,
    )
    add(
        "jump",
        ["((void (*)())0x1234)();", "((void (*)())nullptr)();", "((void (*)())out)();"],
        ("crash", "out_of_bounds", "trap"),
    )
    return found


GOOD = Hostile("good", "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = 2 * in[i];", ("ok",))


def source(kernel: Hostile) -> str:
    return f"{kernel.prelude}__global__ void k(float* out, const float* in, int n) {{\n{kernel.body}\n}}\n"


def plan(kernel: Hostile) -> LaunchPlan:
    buffers = (BufferSpec("in", (N,), "float32", "input"), BufferSpec("out", (N,), "float32", "empty"))
    args = (BufferArg(1), BufferArg(0), ScalarArg("int", N))
    return LaunchPlan(buffers, (Launch("k", (4, 1, 1), (kernel.block, 1, 1), args, kernel.shared),), (1,))


def main() -> None:
    inputs = {"in": torch.arange(N, dtype=torch.float32)}
    rows, right = [], 0
    good = simt.compile_single(source(GOOD), ("k",))
    assert isinstance(good, simt.Library)
    with simt.Server() as server:
        server.define("good", plan(GOOD), inputs)
        for kernel in kernels():
            library = simt.compile_single(source(kernel), ("k",), simt.Options(checked=kernel.checked))
            if isinstance(library, simt.CompileFailure):
                rows.append({"name": kernel.name, "outcome": f"does not compile: {library}", "right": False})
                continue
            server.define("case", plan(kernel), inputs)
            (execution,) = server.run(
                library, 0, [("case", Configuration(checked=kernel.checked))], cpu_seconds=1.0
            ).executions
            after = server.run(good, 0, [("good", Configuration())], keep_outputs=True)
            alive = after.outputs[0] is not None and torch.equal(after.outputs[0][0], 2 * inputs["in"])
            named = execution.outcome.status in kernel.right
            right += alive and named
            rows.append(
                {
                    "name": kernel.name,
                    "outcome": execution.outcome.status,
                    "message": execution.outcome.message,
                    "expected": kernel.right,
                    "right": named,
                    "alive": alive,
                }
            )
            if not (alive and named):
                print(rows[-1], file=sys.stderr)
    json.dump({"kernels": len(rows), "survived_and_named": right, "rows": rows}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
