"""Measure how many mutants a second go from source to all verdicts on the GPU of this machine, on ten cases each, at audit sizes.

    PYTHONPATH=src python benchmarks/h200/throughput.py [--mutants 4000] [--out results/h200/throughput.json]

A stratified sample of the mutants of all programs. What a problem's mutants share (references on the device, the original's runs, processes with their contexts) is made before
the clock starts, since a study has it once. Then every mutant is compiled from its source with nothing cached, its machine code hashed, executed on the first ten cases of the
checkers' suites with poisoned outputs, red zones and all statistics, and judged by every checker; after each one the original must give its bits, and resident contents
be unchanged.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import profiled

from audit import Busy

CORES = len(os.sched_getaffinity(0))
GPU_PROCESSES = 3
"""More wait for each other: a GPU gives contexts slices of its time, and making one needs many."""
CASES = 10
CHUNK = 48
CHECKERS = ("kernelbench", "kernelbench-verified", "exact-official", "truekernel")


def shares(size: int, seed: int, processes: int) -> tuple[list[dict[str, list[str]]], int]:
    """Mutant ids by program for each process, about as many for each; problems are not divided. And how many mutants there are."""
    from truekernel import corpus, mutation
    from truekernel.audit.plan import stratified_sample

    mutation.rules()
    with ProcessPoolExecutor(CORES, multiprocessing.get_context("fork")) as pool:
        everything = dict(zip(corpus.programs(), pool.map(mutants_of, corpus.programs()), strict=True))
    chosen = stratified_sample(everything, size, seed)
    problems: dict[str, dict[str, list[str]]] = {}
    for name, mutants in chosen.items():
        problems.setdefault(corpus.programs()[name].problem, {})[name] = [m.id for m in mutants]
    found: list[dict[str, list[str]]] = [{} for _ in range(processes)]
    for programs in sorted(problems.values(), key=lambda programs: -_weight(programs)):
        min(found, key=_weight).update(programs)
    return found, sum(len(ids) for share in found for ids in share.values())


def mutants_of(program: str) -> tuple[Any, ...]:
    from truekernel import corpus, mutation

    return tuple(mutation.mutants(corpus.programs()[program], mutation.rules()))


def _weight(programs: dict[str, list[str]]) -> float:
    return sum(len(ids) for ids in programs.values())


def ready(folder: Path, wanted: int) -> None:
    """Wait until all processes are."""
    (folder / str(os.getpid())).touch()
    while len(list(folder.iterdir())) < wanted:
        time.sleep(0.01)


def one_share(job: tuple[dict[str, list[str]], int, str, float]) -> dict[str, Any]:
    """A share of the mutants, program by program: when it began and ended, and what was counted."""
    programs, processes, folder, most_seconds = job
    import torch

    from truekernel import checkers as checker_room
    from truekernel import corpus, mutation
    from truekernel.audit.builds import ahead
    from truekernel.audit.setup import _tolerances, _union
    from truekernel.audit.trials import STRAYING
    from truekernel.checkers import accepts
    from truekernel.errors import PlanError
    from truekernel.execution import cuda
    from truekernel.execution.cuda.compile import compilers
    from truekernel.trial.devices import Cuda, Source
    from truekernel.trial.stage import Stage

    torch.set_num_threads(1)
    if os.environ.get(profiled.FOLDER):
        profiled.begin()
    os.environ["XDG_CACHE_HOME"] = folder
    checkers = checker_room.resolve(CHECKERS)
    device = Cuda(processes=max(2, CORES // processes))
    compilers().prepare(max(2, CORES // processes))
    counts: Counter[str] = Counter()
    with cuda.Server() as server:
        prepared = []
        for name, ids in programs.items():
            program = corpus.programs()[name]
            problem = corpus.problems()[program.problem]
            suites = {title: checker.suite(problem) for title, checker in checkers.items()}
            requests = _union(checkers, suites, device)[:CASES]
            wanted = {case_id for case_id, _ in requests}
            cases = {case.id: case for suite in suites.values() for case in suite if case.id in wanted}
            suites = {title: [case for case in suite if case.id in wanted] for title, suite in suites.items()}
            stage = Stage(server, problem, [(case, None) for case in cases.values()], _tolerances(checkers))
            stage.set_spreads({key: [e.scale for e in p.expected] for key, p in stage.prepared.items()})
            plans = stage.plans(program.source, program.plan_source)
            (base,) = device.alone([Source(program.source + f"\n// {os.getpid()}\n", plans.kernels)])
            assert not isinstance(base, str), base
            stage.time_limits(requests, stage.execute(base, 0, plans, requests))
            mutants = {m.id: m for m in mutation.mutants(program, mutation.rules())}
            last = [m for m in map(mutants.__getitem__, ids) if m.made_by[0].rule_class in STRAYING]
            mine = [*(mutants[i] for i in ids if mutants[i] not in last), *last]
            prepared.append((stage, plans, base, requests, suites, mine))
        for stage, plans, base, requests, _, _ in prepared:
            if stage.watch(base, plans, requests[0][0]):
                break
        ready(Path(folder) / "ready", processes)
        begun, before = time.time(), server.workers_ended.copy()
        ended = begun
        profiled.reset()
        chunks = [(row, row[-1][at : at + CHUNK]) for row in prepared for at in range(0, len(row[-1]), CHUNK)]
        seen: dict[int, set[str]] = {id(row): {row[2].code_hash() + row[1].digest} for row in prepared}

        def compiled(item: tuple[Any, list[Any]]) -> tuple[list[Any], list[Any]]:
            (stage, plans, *_), chunk = item
            each = []
            for mutant in chunk:
                try:
                    each.append(plans if mutant.file == "cu" else stage.plans(mutant.source, mutant.plan_source))
                except PlanError:
                    each.append(None)
            pairs = [(m, p) for m, p in zip(chunk, each, strict=True) if p is not None]
            return pairs, device.alone([Source(m.source, p.kernels) for m, p in pairs])

        for (row, chunk), (pairs, libraries) in ahead(chunks, compiled, device.ahead):
            stage, plans, _, requests, suites, _ = row
            series = [
                sum(1 << k for k, s in enumerate(suites.values()) if any(c.id == r[0] for c in s)) for r in requests
            ]
            if time.time() - begun > most_seconds:
                break
            counts["mutants"] += len(chunk)
            counts["refused"] += len(chunk) - len(pairs)
            for (_, own), library in zip(pairs, libraries, strict=True):
                if isinstance(library, str):
                    counts["stillborn"] += 1
                    continue
                code = library.code_hash() + own.digest
                if code in seen[id(row)]:
                    counts["the same as another"] += 1
                    continue
                seen[id(row)].add(code)
                found = stage.execute(library, 0, own, requests, series)
                counts["executions"] += len(found)
                counts["executed"] += 1
                by_request = {(e.case_id, e.configuration): e for e in found}
                for title, checker in checkers.items():
                    verdict = accepts(checker, suites[title], by_request, device.schedules).verdict
                    counts[f"{title}: {verdict}"] += 1
                counts.update({e.outcome.status for e in found} - {"ok"})
                server.release(library)
            for own in {p.digest: p for _, p in pairs if p.digest != plans.digest}.values():
                stage.release(own)
            ended = time.time()
        profiled.write("parent")
        return {"begun": begun, "ended": ended, "counts": counts, "contexts lost": server.workers_ended - before}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=GPU_PROCESSES, help="that share the GPU")
    parser.add_argument("--most-seconds", type=float, default=1e9, help="begin no further chunk after that long")
    parser.add_argument("--profile", type=Path, help="put clocks around the parts; profiled.py FOLDER shows them")
    parser.add_argument("--out", type=Path, default=Path("results/h200/throughput.json"))
    options = parser.parse_args()
    from truekernel.execution import cuda

    info = cuda.device_info()
    if options.profile is not None:
        options.profile.mkdir(parents=True)
        os.environ[profiled.FOLDER] = str(options.profile)
    jobs, mutants = shares(options.mutants, options.seed, options.processes)
    jobs = [job for job in jobs if job]
    with tempfile.TemporaryDirectory(prefix="truekernel-") as folder, Busy() as busy:
        (Path(folder) / "ready").mkdir()
        with ProcessPoolExecutor(len(jobs), multiprocessing.get_context("spawn")) as processes:
            rows = list(processes.map(one_share, [(job, len(jobs), folder, options.most_seconds) for job in jobs]))
        begun, ended = min(r["begun"] for r in rows), max(r["ended"] for r in rows)
        clock = time.monotonic() - time.time()
        share = busy.share(begun + clock, ended + clock)
        memory = busy.most_gb
    counts: Counter[str] = sum((Counter(r["counts"]) for r in rows), Counter())
    document = {
        "machine": f"{info.name}, {info.memory >> 30} GiB, {CORES} cores, driver {info.driver}",
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("torch", "truekernel", "cuda-core")},
        "date": datetime.now(UTC).date().isoformat(),
        "mutants": counts["mutants"],
        "chosen": mutants,
        "cases": CASES,
        "seconds": round(ended - begun, 2),
        "mutants_per_s": round(counts["mutants"] / (ended - begun), 1),
        "seconds_of_each_process": sorted(round(r["ended"] - r["begun"], 1) for r in rows),
        "contexts_lost": dict(sum((Counter(r["contexts lost"]) for r in rows), Counter())),
        "gpu_busy": round(share, 3),
        "most_memory_gib": round(memory, 1),
        "counts": dict(sorted(counts.items())),
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(document, indent=1) + "\n")
    print(json.dumps(document, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
