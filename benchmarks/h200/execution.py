"""Check the whole GPU room on the machine at hand, and measure it.

    PYTHONPATH=src python benchmarks/h200/execution.py [--parts corpus,compile,...] [--out results/h200/execution.json]

Parts: faults (planted faults are what they should be, the GPU's memory comes back), corpus (every program is right against float64 on its witness cases),
compile (machine code of mutants on all cores), throughput (mutants from source to statistics), containment (50 bad among 500 good), sanitise
(compute-sanitizer on planted faults). Prints a short table; the exit code is 1 when a check fails.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch
from faults import GOOD, PLANTED, SANITISED

from truekernel import corpus
from truekernel.cases.witness import witness_cases
from truekernel.execution import cuda
from truekernel.execution.cuda.health import Watch
from truekernel.execution.recorder import trace
from truekernel.model import BufferArg, BufferSpec, Configuration, Launch, LaunchPlan, ScalarArg
from truekernel.mutation import mutants, rules
from truekernel.numerics import statistics as host_statistics
from truekernel.numerics.digest import digest
from truekernel.numerics.expected import Expected
from truekernel.source import kernel_signatures
from truekernel.trial.gate import wrong
from truekernel.trial.stage import Stage

CORES = len(os.sched_getaffinity(0))
PARTS = ("faults", "compile", "corpus", "throughput", "containment", "sanitise")
SERVERS = max(1, CORES // 4)
"""Contexts on the GPU at once; making and ending one waits for the others'."""
ELEMENTS = 100_003
CASES = 4


def plan(shared: int = 0, elements: int = ELEMENTS) -> LaunchPlan:
    """y = f(x) with blocks of 256 threads."""
    buffers = (BufferSpec("x", (elements,), "float32", "input"), BufferSpec("y", (elements,), "float32", "empty"))
    grid = (-(-elements // 256), 1, 1)
    args = (BufferArg(0), BufferArg(1), ScalarArg("int", elements))
    return LaunchPlan(buffers, (Launch("k", grid, (256, 1, 1), args, shared),), (1,))


def inputs(elements: int = ELEMENTS) -> dict[str, torch.Tensor]:
    return {"x": torch.arange(elements, dtype=torch.float32) / 7 + 1}


def expected(elements: int = ELEMENTS) -> list[Expected]:
    truth = inputs(elements)["x"].double() * 2
    return [Expected("y", "float32", "value", truth.float(), truth, truth.abs() * 2.0**-24)]


def compiled(source: str, **options: Any) -> cuda.Library:
    library = cuda.compile_single(source, ["k"], cuda.Options(**options))
    if isinstance(library, cuda.CompileFailure):
        raise TypeError(f"does not compile: {library}")
    return library


def faults() -> Iterator[tuple[str, bool, Any]]:
    """Planted faults in one server, the good kernel after each; free memory before and after."""
    before = free_memory()
    with cuda.Server() as server:
        for shared in {p.shared for p in PLANTED}:
            server.define(f"case{shared}", plan(shared), inputs(), expected())
        good = compiled(GOOD)
        yield "sentinel taken", server.watch(good, "case0"), ""
        for planted in PLANTED:
            started = time.perf_counter()
            key = f"case{planted.shared}"
            run = server.run(compiled(planted.source), 0, [(key, Configuration())], cpu_seconds=0.5)
            seconds = time.perf_counter() - started
            execution = run.executions[0]
            hazards = "; ".join(execution.hazards)
            fine = execution.outcome.status == planted.status
            fine &= (planted.hazard in hazards) if planted.hazard else not hazards
            if planted.right is not None and execution.outcome.status == "ok":
                fine &= planted.right == (execution.statistics["worst"] < 100 and not execution.statistics["unwritten"])
            after = server.run(good, 0, [(key if not planted.shared else "case0", Configuration())]).executions[0]
            fine &= after.outcome.status == "ok" and after.statistics["worst"] < 2 and not after.hazards
            said = f"{execution.outcome.status} {hazards} {execution.outcome.message}"
            yield f"planted: {planted.name}", fine, f"{said.strip()} ({seconds:.2f} s)"
        outputs = server.run(good, 0, [("case0", Configuration())], keep_outputs=True).outputs[0]
        yield "outputs come back", outputs is not None and torch.equal(outputs[0], inputs()["x"] * 2), ""
        yield "workers started", server.workers_started > 5, server.workers_started
        ticking = GOOD.replace("x[i] * 2.0f", "x[i] * 2.0f + (clock64() & 255)")
        repeats = server.repeat(compiled(ticking), "case0", Configuration(), 50)
        yield (
            "repeats: a clock's low bits",
            repeats.of == 49 and repeats.differing > 0,
            f"{repeats.differing}/{repeats.of}",
        )
        repeats = server.repeat(good, "case0", Configuration(), 50)
        yield "repeats: good kernel", repeats.differing == 0, f"{repeats.differing}/{repeats.of}"
        seconds = statistics.median(e.outcome.seconds for e in repeats.executions)
        started = time.perf_counter()
        server.run(good, 0, [("case0", Configuration())] * 200)
        wall = (time.perf_counter() - started) / 200
        yield "one execution", True, f"{1e6 * wall:.0f} us wall, {1e6 * seconds:.1f} us of it in the kernel"
    time.sleep(1)
    after_all = free_memory()
    yield "memory back", after_all >= before - (64 << 20), f"{before >> 20} MiB free before, {after_all >> 20} after"
    yield "management library lists processes", True, Watch().usable


def free_memory() -> int:
    """Free bytes of the GPU, asked in a process of its own."""
    from truekernel.execution.cuda.support import support_code
    from truekernel.execution.cuda.worker_process import WorkerProcess

    worker = WorkerProcess(0)
    worker.open(support_code)
    worker.end()
    return worker.free_at_start


def one_problem(name: str) -> list[tuple[str, bool, Any]]:
    """All programs of a problem on its first witness cases."""
    torch.set_num_threads(1)
    problem = corpus.problems()[name]
    found: list[tuple[str, bool, Any]] = []
    try:
        with cuda.Server() as server:
            stage = Stage(server, problem, [(case, None) for case in witness_cases(problem)[:CASES]], ((1e-2, 1e-2),))  # type: ignore[arg-type]
            for program in corpus.programs().values():
                if program.problem == name:
                    plans = stage.plans(program.source, program.plan_source)
                    library = cuda.compile_single(program.source, plans.kernels)
                    if isinstance(library, cuda.CompileFailure):
                        found.append((program.name, False, str(library)))
                        continue
                    requests = [(case_id, Configuration()) for case_id in stage.prepared]
                    both = stage.outputs(library, 0, plans, requests)  # type: ignore[arg-type]
                    executions = [execution for execution, _ in both]
                    for execution, outputs in both:
                        found += differs(stage, program.name, execution, outputs)
                    why = wrong(executions)
                    worst = max((e.statistics.get("worst", 0.0) for e in executions), default=0.0)
                    found.append((program.name, why is None, why or f"worst {worst:.3g} error scales"))
    except Exception:
        found.append((name, False, traceback.format_exc(limit=3)))
    return found


def differs(stage: Stage, name: str, execution: Any, outputs: Any) -> list[tuple[str, bool, Any]]:
    """Where statistics from the device are not those of the outputs on the host; sums may differ in their last bits."""
    if outputs is None:
        return []
    wanted = host_statistics(outputs, stage.prepared[execution.case_id].expected, "poison", stage.tolerances)
    for key, value in wanted.items():
        got = execution.statistics[key]
        if got != value and not (key in ("rms", "bias") and abs(got - value) <= 1e-9 * max(abs(value), 1.0)):
            return [(name, False, f"{key}: {got} on the device, {value} on the host")]
    if execution.output_hash != digest(outputs):
        return [(name, False, "digest differs")]
    return []


def check_corpus() -> Iterator[tuple[str, bool, Any]]:
    started = time.perf_counter()
    with pool() as processes:
        for rows in processes.map(one_problem, corpus.problems()):
            yield from rows
    yield "corpus", True, f"{time.perf_counter() - started:.1f} s"


def pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(CORES, multiprocessing.get_context("forkserver"))


def mutant_sources(names: Sequence[str], most: int) -> tuple[dict[int, str], dict[int, tuple[str, ...]], list[str]]:
    """Mutants of the .cu text of some programs, with their kernels."""
    sources: dict[int, str] = {}
    kernels: dict[int, tuple[str, ...]] = {}
    owners: list[str] = []
    for name in names:
        program = corpus.programs()[name]
        problem = corpus.problems()[program.problem]
        axes = witness_cases(problem)[0].lengths
        launched = trace(program, kernel_signatures(program.source), problem, axes).kernels
        for mutant in [m for m in mutants(program, rules()) if m.file == "cu"][: most // len(names)]:
            kernels[len(sources)] = launched
            sources[len(sources)] = mutant.source
            owners.append(name)
    return sources, kernels, owners


def check_compile() -> Iterator[tuple[str, bool, Any]]:
    mixed = ("softmax_online", "matmul_tiled", "layer_norm_warp", "sum_dim", "axpby_half")
    warm = {k: f"__global__ void k{k}(int* x) {{ *x = {k}; }}" for k in range(CORES)}
    cuda.compile_many(warm, {k: (f"k{k}",) for k in warm})
    result = None
    for title, names, turn in (
        ("five programs, cold", mixed, 0),
        ("five programs", mixed, 1),
        ("softmax", mixed[:1], 2),
    ):
        sources, kernels, _ = mutant_sources(names, 400)
        sources = {n: f"{source}\n// {turn}" for n, source in sources.items()}
        started = time.perf_counter()
        result = cuda.compile_many(sources, kernels)
        seconds = time.perf_counter() - started
        milliseconds = 1e3 * seconds / len(sources)
        text = f"{milliseconds:.2f} ms a mutant: {len(sources)} in {seconds:.2f} s, {len(result.members)} compile"
        yield f"compile: {title}", milliseconds < 40, text
    assert result is not None
    started = time.perf_counter()
    hashes = {library.code_hash() for library in result.libraries}
    good = len(result.members)
    each = 1e3 * (time.perf_counter() - started) / max(good, 1)
    yield "code hash", len(hashes) > good // 3, f"{len(hashes)} of {good} distinct, {each:.2f} ms each"
    started = time.perf_counter()
    cuda.compile_many(sources, kernels)
    yield (
        "compile again",
        True,
        f"{1e3 * (time.perf_counter() - started) / len(sources):.2f} ms a mutant from the cache",
    )


def meet(folder: Path, names: str, wanted: int) -> None:
    """Wait until all shares are ready."""
    deadline = time.monotonic() + 60
    while len(list(folder.glob(names))) < wanted and time.monotonic() < deadline:
        time.sleep(0.01)


def some_mutants(job: tuple[int, int]) -> tuple[int, int, float, float]:
    """A share of a softmax's mutants from source to statistics on ten cases: mutants, executions, when it began and ended."""
    share, shares = job
    torch.set_num_threads(1)
    cuda.compile_single("__global__ void k(int* x) { *x = 1; }", ["k"])
    program = corpus.programs()["softmax_online"]
    problem = corpus.problems()[program.problem]
    sources, _, _ = mutant_sources((program.name,), 100_000)
    with cuda.Server() as server:
        cases = [(case, None) for case in witness_cases(problem)[:10]]
        stage = Stage(server, problem, cases, ((1e-2, 1e-2), (1e-4, 1e-4)))  # type: ignore[arg-type]
        plans = stage.plans(program.source, program.plan_source)
        requests = [(case_id, Configuration()) for case_id in stage.prepared]
        base = cuda.compile_single(program.source, plans.kernels)
        stage.time_limits(requests, stage.execute(base, 0, plans, requests))  # type: ignore[arg-type]
        server.watch(base, f"{plans.digest}:{requests[0][0]}")  # type: ignore[arg-type]
        barrier_file = Path(os.environ["TK_BARRIER"]) / str(share)
        barrier_file.touch()
        meet(barrier_file.parent, "*", shares)
        began, done, ran = time.time(), 0, 0
        mine = {number: f"{sources[number]}\n// {shares}" for number in range(share, len(sources), shares)}
        compiled_ones = cuda.compile_many(mine, plans.kernels, processes=max(1, CORES // shares)).members
        for number in mine:
            library = compiled_ones.get(number)
            if library is not None:
                limits = [stage._limit(request) for request in requests]
                wanted = [(f"{plans.digest}:{case_id}", c) for case_id, c in requests]
                series = [1] * len(wanted)
                run = server.run(library, 0, wanted, cpu_seconds=limits, series=series, tolerances=stage.tolerances)
                ran += len(run.executions)
                server.release(library)
            done += 1
        return done, ran, began, time.time()


def check_throughput() -> Iterator[tuple[str, bool, Any]]:
    import tempfile

    for shares in (CORES // 4, CORES):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TK_BARRIER"] = folder
            with ProcessPoolExecutor(shares, multiprocessing.get_context("spawn")) as processes:
                rows = list(processes.map(some_mutants, [(k, shares) for k in range(shares)]))
        seconds = max(row[3] for row in rows) - min(row[2] for row in rows)
        done, ran = sum(row[0] for row in rows), sum(row[1] for row in rows)
        slowest = max(row[3] - row[2] for row in rows)
        text = f"{done / seconds:.0f} mutants/s with {shares} workers ({done} mutants, {ran} executions, {seconds:.2f} s, slowest {slowest:.2f} s)"
        yield "throughput", done / seconds > 20, text


def share_of_mix(job: tuple[int, int, bool]) -> tuple[dict[int, str], float, float]:
    """A share of 500 good kernels, with or without 50 bad ones among them: statuses and worst errors by number."""
    share, shares, with_bad = job
    torch.set_num_threads(1)
    bad = [
        p
        for p in PLANTED
        if p.name not in ("good", "much shared memory", "too much shared memory", "wrong", "unwritten tail")
    ]
    mix = [(n, GOOD.replace("2.0f", f"(2.0f + {n} * 0.001f)")) for n in range(500)]
    if with_bad:
        for n in range(50):
            mix.insert(11 * n, (1000 + n, bad[n % len(bad)].source))
    with cuda.Server() as server:
        server.define("case", plan(), inputs(), expected())
        good = compiled(GOOD)
        server.watch(good, "case")
        barrier_file = Path(os.environ["TK_BARRIER"]) / f"{with_bad}{share}"
        barrier_file.touch()
        meet(barrier_file.parent, f"{with_bad}*", shares)
        began = time.time()
        found = {}
        mine = dict(mix[share::shares])
        for number, library in cuda.compile_many(mine, ["k"], processes=CORES // shares).members.items():
            execution = server.run(
                library, 0, [("case", Configuration())] * 10, cpu_seconds=0.5, series=[1] * 10
            ).executions[0]
            found[number] = f"{execution.outcome.status} {execution.output_hash}"
            server.release(library)
        return found, began, time.time()


def check_containment() -> Iterator[tuple[str, bool, Any]]:
    import tempfile

    before = free_memory()
    results = {}
    for with_bad in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TK_BARRIER"] = folder
            with ProcessPoolExecutor(SERVERS, multiprocessing.get_context("spawn")) as processes:
                rows = list(processes.map(share_of_mix, [(k, SERVERS, with_bad) for k in range(SERVERS)]))
        found = {number: status for row in rows for number, status in row[0].items()}
        seconds = max(row[2] for row in rows) - min(row[1] for row in rows)
        results[with_bad] = found, seconds
    alone, mixed = results[False][0], results[True][0]
    same = all(alone[n] == mixed[n] for n in range(500))
    yield "containment: verdicts of 500 good ones", same, f"{sum(alone[n] != mixed[n] for n in range(500))} changed"
    rates = 500 / results[False][1], 550 / results[True][1]
    yield "containment: kernels a second", True, f"{rates[0]:.0f} without, {rates[1]:.0f} with 50 bad ones among 550"
    time.sleep(1)
    after = free_memory()
    yield (
        "containment: memory back",
        after >= before - (64 << 20),
        f"{before >> 20} MiB free before, {after >> 20} after",
    )


def check_sanitised() -> Iterator[tuple[str, bool, Any]]:
    from truekernel.execution.cuda.sanitiser import sanitise

    elements = 1000
    sources = [GOOD, *(source for _, _, source, _ in SANITISED), GOOD]
    jobs = [cuda.Job(compiled(source, checked=True), plan(elements=elements), inputs(elements)) for source in sources]
    started = time.perf_counter()
    results = sanitise(jobs)
    seconds = time.perf_counter() - started
    for number in (0, len(jobs) - 1):
        result = results[number]
        text = "; ".join(f"{f.tool} {f.title}" for f in result.findings) or str(result.unfinished or "nothing found")
        yield "sanitised: good kernel", not result.findings and not result.unfinished, text
    for (tool, status, _, line), result in zip(SANITISED, results[1:-1], strict=True):
        hits = [f for f in result.findings if f.tool == tool and f.status == status]
        text = (
            f"{sum(f.count for f in hits)} findings: {hits[0]}"
            if hits
            else f"{result.findings[:3]} {result.unfinished}"
        )
        yield f"sanitised: {tool}", bool(hits) and hits[0].line == line, text
    yield "sanitised: seconds", True, f"{seconds:.1f} s for {len(jobs)} kernels under four tools"


CHECKS = {
    "faults": faults,
    "compile": check_compile,
    "corpus": check_corpus,
    "throughput": check_throughput,
    "containment": check_containment,
    "sanitise": check_sanitised,
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--out", default=str(Path(os.environ.get("OUT", ".")) / "execution.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    info = cuda.device_info()
    print(f"{info.name}, {info.arch}, {info.memory >> 30} GiB, driver {info.driver}, {CORES} cores", flush=True)
    rows: list[dict[str, Any]] = []
    for part in options.parts.split(","):
        started = time.perf_counter()
        try:
            for name, fine, said in CHECKS[part]():
                rows.append({"part": part, "check": name, "fine": bool(fine), "said": str(said)})
                if part != "corpus" or not fine or name == "corpus":
                    print(f"{'ok  ' if fine else 'FAIL'} {name}: {str(said)[:300]}", flush=True)
        except Exception:
            rows.append({"part": part, "check": part, "fine": False, "said": traceback.format_exc()})
            print(f"FAIL {part}: {traceback.format_exc(limit=6)}", flush=True)
        print(f"---- {part}: {time.perf_counter() - started:.1f} s", flush=True)
        out = {"gpu": info.name, "driver": info.driver, "cores": CORES, "rows": rows}
        Path(options.out).write_text(json.dumps(out, indent=1) + "\n")
    bad = sum(not row["fine"] for row in rows)
    print(f"{len(rows) - bad} checks passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
