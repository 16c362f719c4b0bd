"""Time compilation and execution on the CPU. Prints a table on stderr and one JSON document on stdout.

python benchmarks/simt_speed.py > results/simt_speed.json          # all programs of the corpus, some minutes
python benchmarks/simt_speed.py --programs 8 --mutants 40          # a quick look

`compile_ms`: compile + link a mutant, amortised over all mutants of the programs' device code: schemata, and batches for what
is left over; `compile_cpu_ms`: the same in processor time of all processes, which other load on the machine hardly changes. `schema_ms`, `batch_ms`: each
for its own mutants; `single_ms`: compiled alone (median). One compilation after the other, caches filled before. `launch_ms`: one tiny launch from Python, median. `*_s`: CPU seconds of one execution, plain build, best of three.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import random
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

from truekernel import cases, corpus, mutation
from truekernel.execution import simt
from truekernel.execution.recorder import trace
from truekernel.model import Case, Configuration, LaunchPlan, Mutant, Problem, Program
from truekernel.source import kernel_signatures

VADD = """__global__ void vadd(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
"""


def vadd_plan(n: int) -> LaunchPlan:
    from truekernel.model import BufferArg, BufferSpec, Launch, ScalarArg

    buffers = tuple(
        BufferSpec(name, (n,), "float32", init) for name, init in (("a", "input"), ("b", "input"), ("c", "empty"))
    )
    args = (BufferArg(0), BufferArg(1), BufferArg(2), ScalarArg("int", n))
    return LaunchPlan(buffers, (Launch("vadd", ((n + 255) // 256, 1, 1), (256, 1, 1), args),), (2,))


def processor_seconds() -> float:
    """Processor time of this process, of its children that ended, and of its living children and theirs that ended."""
    own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    total = own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                total += sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")
    return total


def device_mutants(program: Program, most: int) -> list[Mutant]:
    found = [m for m in mutation.mutants(program, mutation.rules().values()) if m.file == "cu" and not m.flags]
    random.Random(1).shuffle(found)
    return found[:most] if most else found


def compile_program(program: Program, problem: Problem, most: int, totals: dict[str, Any]) -> None:
    """Compile mutants of one program in all ways; adds milliseconds and counts to `totals`."""
    plan = trace(program, kernel_signatures(program.source), problem, problem.audit_axes())
    mutants = dict(enumerate(device_mutants(program, most), start=1))
    cpu = processor_seconds()
    begin = time.perf_counter()
    schema = simt.compile_schema(program.source, plan.kernels, {n: m.edits for n, m in mutants.items()})
    middle = time.perf_counter()
    batch = simt.compile_batch({n: mutants[n].source for n in schema.leftovers}, plan.kernels)
    end = time.perf_counter()
    totals["schema_total"] += (middle - begin) * 1e3
    totals["batch_total"] += (end - middle) * 1e3
    totals["cpu_total"] += (processor_seconds() - cpu) * 1e3
    totals["mutants"] += len(mutants)
    totals["switched"] += len(schema.members)
    for number in list(mutants)[:5]:
        begin = time.perf_counter()
        alone = simt.compile_single(mutants[number].source, plan.kernels)
        totals["single"].append((time.perf_counter() - begin) * 1e3)
        if isinstance(alone, simt.Library):
            alone.close()
    for library in (*schema.libraries, *batch.libraries):
        library.close()


def compiling(programs: int, most: int) -> dict[str, Any]:
    totals: dict[str, Any] = {
        "schema_total": 0.0,
        "batch_total": 0.0,
        "cpu_total": 0.0,
        "mutants": 0,
        "switched": 0,
        "single": [],
    }
    simt.compile_single(VADD, ("vadd",))
    chosen = list(corpus.programs().values())
    if programs:
        chosen = chosen[:: max(1, len(chosen) // programs)][:programs]
    for program in chosen:
        compile_program(program, corpus.problems()[program.problem], most, totals)
        print(f"{program.name}: {totals['mutants']} mutants so far", file=sys.stderr)
    left = totals["mutants"] - totals["switched"]
    return {
        "compile_ms": (totals["schema_total"] + totals["batch_total"]) / totals["mutants"],
        "compile_cpu_ms": totals["cpu_total"] / totals["mutants"],
        "schema_ms": totals["schema_total"] / totals["switched"],
        "batch_ms": totals["batch_total"] / max(1, left),
        "single_ms": statistics.median(totals["single"]),
        "mutants": totals["mutants"],
        "switched": totals["switched"],
        "programs": len(chosen),
    }


def launching(server: simt.Server, launches: int = 300) -> float:
    server.define("tiny", vadd_plan(1000), {"a": torch.rand(1000), "b": torch.rand(1000)})
    library = simt.compile_single(VADD, ("vadd",))
    assert isinstance(library, simt.Library)
    times = []
    for _ in range(launches):
        begin = time.perf_counter()
        run = server.run(library, 0, [("tiny", Configuration())])
        times.append((time.perf_counter() - begin) * 1e3)
        assert run.executions[0].outcome.status == "ok"
    return statistics.median(times)


def best_seconds(
    server: simt.Server, source: str, plan: LaunchPlan, inputs: dict[str, torch.Tensor], checked: bool
) -> float:
    library = simt.compile_single(source, plan.kernels, simt.Options(checked=checked))
    assert isinstance(library, simt.Library), str(library)
    server.define("large", plan, inputs)
    run = server.run(library, 0, [("large", Configuration(checked=checked))] * 3, cpu_seconds=120)
    assert all(e.outcome.status == "ok" for e in run.executions), run.executions
    return min(e.outcome.seconds for e in run.executions)


def program_seconds(server: simt.Server, name: str, axes: dict[str, int], checked: bool) -> float:
    program = corpus.programs()[name]
    problem = corpus.problems()[program.problem]
    assert axes.keys() == problem.axes.keys(), (axes, problem.axes.keys())
    plan = trace(program, kernel_signatures(program.source), problem, axes)
    inputs = cases.make_inputs(problem, Case.of(problem.name, axes, "uniform", 1))
    return best_seconds(server, program.source, plan, inputs, checked)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time compilation and execution on the CPU.")
    parser.add_argument("--programs", type=int, default=0, help="number of programs to compile mutants of (0: all)")
    parser.add_argument("--mutants", type=int, default=0, help="mutants of each program (0: all)")
    chosen = parser.parse_args()
    result: dict[str, Any] = compiling(chosen.programs, chosen.mutants)
    million = 1 << 20
    with simt.Server() as server:
        result["launch_ms"] = launching(server)
        inputs = {"a": torch.rand(million), "b": torch.rand(million)}
        for suffix, checked in (("", False), ("_checked", True)):
            result[f"vadd1m{suffix}_s"] = best_seconds(server, VADD, vadd_plan(million), inputs, checked)
            result[f"matmul512{suffix}_s"] = program_seconds(
                server, "matmul_tiled", {"M": 512, "K": 512, "N": 512}, checked
            )
            result[f"softmax1024{suffix}_s"] = program_seconds(
                server, "softmax_two_kernels", {"rows": 1024, "features": 1024}, checked
            )
    compiler = simt.default_compiler()
    result["compiler"] = compiler.version
    result["machine"] = f"{len(os.sched_getaffinity(0))} processors, {platform.machine()}, Linux {platform.release()}"
    result["load"] = os.getloadavg()[0]
    for name, value in result.items():
        print(f"{name:22} {value:.3f}" if isinstance(value, float) else f"{name:22} {value}", file=sys.stderr)
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
