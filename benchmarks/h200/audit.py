"""Measure audits on the GPU of this machine: speed, how it grows, containment, agreement with a CPU.

    PYTHONPATH=src python benchmarks/h200/audit.py [--parts compile,rate,containment,agreement] [--sizes 750,1500,3000] [--out results/h200/audit.json]
    python benchmarks/h200/audit.py --cpu-run runs/full ...        # agreement: a run on a CPU with the same seed, that holds the mutants of the largest size
    python benchmarks/h200/audit.py --append results/h200/audit.json

Parts: compile (machine code of mutants of all programs on all cores, nothing cached), rate (whole audits of nested stratified samples, each from source with
an empty cache: wall time, time until the first mutants are stored, share of time in which the GPU was busy; the rate is that of the largest, the marginal
rate the slope over all), containment (50 bad kernels among 500 good ones, as in execution.py), agreement. --append adds the figures of such a file to
results/figures.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import profiled

from truekernel.pool import Job, LocalPool, Message

CORES = len(os.sched_getaffinity(0))
PARTS = ("compile", "rate", "containment", "agreement")
SAMPLED_EVERY = 1.0
RESULTS = Path("results")


class Busy:
    """Share of time in which a kernel ran, and the most memory in use, as nvidia-smi samples them. A context manager."""

    def __enter__(self) -> Busy:
        command = ["nvidia-smi", "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits"]
        self._process = subprocess.Popen(
            [*command, "-lms", str(int(1000 * SAMPLED_EVERY))], stdout=subprocess.PIPE, text=True
        )
        self._samples: list[tuple[float, float, float]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            share, memory = line.split(",")
            self._samples.append((time.monotonic(), float(share) / 100, float(memory) / 1024))

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def share(self, since: float, until: float) -> float:
        """Mean over a stretch of `time.monotonic`."""
        found = [share for at, share, _ in self._samples if since <= at <= until]
        return sum(found) / max(len(found), 1)

    @property
    def most_gb(self) -> float:
        """Memory in use, GiB."""
        return max((memory for _, _, memory in self._samples), default=0.0)


class ProfiledPool(LocalPool):
    """Runs the audit's work with clocks around its parts."""

    def run(self, work: str, jobs: Sequence[Job]) -> Iterator[tuple[int, Message]]:  # noqa: ARG002
        return super().run("profiled:audit_problem", jobs)


def one_audit(size: int, seed: int, folder: Path, profile: Path | None = None) -> dict[str, Any]:
    """A whole audit of `size` mutants with an empty cache of machine code."""
    from truekernel.audit import AuditOptions, run_audit

    if profile is not None:
        (profile / str(size)).mkdir(parents=True)
        os.environ[profiled.FOLDER] = str(profile / str(size))

    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    run = folder / f"run-{size}"
    marks: list[tuple[float, str, int]] = []
    begun = time.monotonic()
    with Busy() as busy:
        options = AuditOptions(run, sample=size, seed=seed, workers=CORES, device="cuda")
        pool = None if profile is None else ProfiledPool(CORES)
        summary = run_audit(options, lambda p: marks.append((time.monotonic() - begun, p.stage, p.done)), pool)
    executing = [(at, done) for at, stage, done in marks if stage == "executing"]
    ended = executing[-1][0]
    first = next((at for at, done in executing if done), ended)
    planned = next(at for at, stage, _ in marks if stage == "executing")
    shutil.rmtree(folder / "cache", ignore_errors=True)
    counts = summary.counts
    return {
        "mutants": counts.chosen,
        "unique": counts.unique,
        "executions": counts.executions,
        "seconds": round(time.monotonic() - begun, 2),
        "planned_at": round(planned, 2),
        "first_at": round(first, 2),
        "ended_at": round(ended, 2),
        "mutants_per_s": round(counts.chosen / ended, 1),
        "gpu_busy": round(busy.share(begun + planned, begun + ended), 3),
        "gpu_busy_after_first": round(busy.share(begun + first, begun + ended), 3),
        "most_memory_gib": round(busy.most_gb, 1),
        "witnessed": counts.witnessed,
        "crashes": counts.crashes,
        "timeouts": counts.timeouts,
        "infrastructure": counts.infrastructure,
        "run": str(run),
    }


def slope(rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Least squares of seconds over mutants: mutants a second beyond the fixed cost, and the fixed cost in seconds."""
    count = len(rows)
    mean_x = sum(r["mutants"] for r in rows) / count
    mean_y = sum(r["ended_at"] for r in rows) / count
    above = sum((r["mutants"] - mean_x) * (r["ended_at"] - mean_y) for r in rows)
    below = sum((r["mutants"] - mean_x) ** 2 for r in rows)
    each = above / below if below else float("nan")
    return (1 / each if each > 0 else float("nan")), mean_y - each * mean_x


def measure_compile(options: argparse.Namespace, _found: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Mutants of all programs in equal parts, on all cores."""
    from execution import mutant_sources
    from truekernel import corpus
    from truekernel.execution import cuda
    from truekernel.execution.cuda.units import TOGETHER

    os.environ["XDG_CACHE_HOME"] = str(Path(options.folder) / "compile")
    sources, kernels, _ = mutant_sources(tuple(corpus.programs()), options.compiled)
    warm = {k: f"__global__ void k{k}(int* x) {{ *x = {k}; }}" for k in range(CORES)}
    cuda.compile_many(warm, {k: (f"k{k}",) for k in warm})
    begun = time.perf_counter()
    result = cuda.compile_many(sources, kernels, together=TOGETHER)
    seconds = time.perf_counter() - begun
    begun = time.perf_counter()
    hashes = {library.code_hash() for library in result.libraries}
    hashing = time.perf_counter() - begun
    yield (
        "compile",
        {
            "mutants": len(sources),
            "compiled": len(result.members),
            "distinct": len(hashes),
            "seconds": round(seconds, 2),
            "ms_each_over_all_cores": round(1e3 * seconds / len(sources), 3),
            "ms_each_on_one_core": round(1e3 * seconds * CORES / len(sources), 1),
            "hash_ms_each": round(1e3 * hashing / max(len(result.members), 1), 3),
        },
    )


def measure_rate(options: argparse.Namespace, found: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Whole audits."""
    rows: list[dict[str, Any]] = []
    for size in options.sizes:
        rows.append(one_audit(size, options.seed, Path(options.folder), options.profile))
        yield "audits", rows
    rate, fixed = slope(rows)
    found["last_run"] = rows[-1]["run"]
    yield "growth", {"marginal_mutants_per_s": round(rate, 1), "fixed_seconds": round(fixed, 1)}


def measure_containment(_options: argparse.Namespace, _found: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """As `execution.py` checks it."""
    from execution import check_containment

    rows = [{"check": name, "fine": bool(fine), "said": str(said)} for name, fine, said in check_containment()]
    yield "containment", rows


def measure_agreement(options: argparse.Namespace, found: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The largest audit against a run on a CPU."""
    from truekernel.audit.device_comparison import compare

    gpu = options.gpu_run or found.get("last_run")
    if options.cpu_run is None or gpu is None:
        yield "agreement", {"left out": "needs --cpu-run, and part rate or --gpu-run"}
        return
    document = compare(Path(options.cpu_run), Path(gpu)).document()
    yield "agreement", document


MEASURES: dict[str, Callable[[argparse.Namespace, dict[str, Any]], Iterator[tuple[str, Any]]]] = {
    "compile": measure_compile,
    "rate": measure_rate,
    "containment": measure_containment,
    "agreement": measure_agreement,
}


def figures(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows for results/figures.json."""
    rows: list[dict[str, Any]] = []

    def add(name: str, value: float, unit: str, n: int | None, note: str) -> None:
        rows.append({"name": name, "value": value, "low": None, "high": None, "n": n, "unit": unit, "note": note})

    if compiled := found.get("compile"):
        note = "in equal parts from all programs, nothing cached, compile processes already up"
        add("gpu.compile_ms", compiled["ms_each_over_all_cores"], "ms", compiled["mutants"], note)
    if audits := found.get("audits"):
        last, growth = audits[-1], found.get("growth", {})
        note = (
            f"whole audit, planning and set-up of {last['first_at']} s included; beyond the fixed cost "
            f"{growth.get('marginal_mutants_per_s')}/s; GPU busy {last['gpu_busy_after_first']:.0%} after the first chunk"
        )
        add("gpu.audit_mutants_per_s", last["mutants_per_s"], "1/s", last["mutants"], note)
    if "agreement" in found.get("agreement", {}):
        agreement = found["agreement"]
        note = f"witness and all verdicts; synchronisation and host differs apart; classes {agreement['classes']}"
        add("gpu.cpu_agreement", round(agreement["agreement"], 4), "share", agreement["compared"], note)
    command = "python benchmarks/h200/audit.py"
    common = {"where": "h200", "command": command, **{key: found[key] for key in ("machine", "versions", "date")}}
    return [{**row, **common} for row in rows]


def append(path: Path) -> None:
    """Add a result's figures to results/figures.json, with the commit of this checkout."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    target = RESULTS / "figures.json"
    kept = json.loads(target.read_text()) if target.exists() else []
    rows = [{**row, "commit": commit.stdout.strip()} for row in figures(json.loads(path.read_text()))]
    target.write_text(json.dumps([*kept, *rows], indent=1) + "\n")


def main() -> int:
    """Measure, or append."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--sizes", type=lambda text: [int(part) for part in text.split(",")], default=[750, 1500, 3000])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--profile", type=Path, help="put clocks around the parts of part rate; profiled.py FOLDER/SIZE shows them"
    )
    parser.add_argument("--compiled", type=int, default=800, help="mutants of the part compile")
    parser.add_argument("--cpu-run", type=Path)
    parser.add_argument("--gpu-run", type=Path)
    parser.add_argument("--append", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS / "h200" / "audit.json")
    options = parser.parse_args()
    if options.append is not None:
        append(options.append)
        return 0
    from truekernel.execution import cuda

    info = cuda.device_info()
    found: dict[str, Any] = {
        "machine": f"{info.name}, {info.memory >> 30} GiB, {CORES} cores, driver {info.driver}",
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("torch", "truekernel", "cuda-core")},
        },
        "date": datetime.now(UTC).date().isoformat(),
    }
    failed = False
    with tempfile.TemporaryDirectory(prefix="truekernel-") as folder:
        options.folder = folder
        for part in options.parts.split(","):
            begun = time.perf_counter()
            try:
                for key, value in MEASURES[part](options, found):
                    found[key] = value
                    shown = value[-1] if isinstance(value, list) else value
                    print(f"{key}: {json.dumps(shown)[:1500]}", flush=True)
                    options.out.parent.mkdir(parents=True, exist_ok=True)
                    options.out.write_text(json.dumps(found, indent=1) + "\n")
            except Exception:
                failed = True
                print(f"FAIL {part}: {traceback.format_exc(limit=6)}", flush=True)
            print(f"---- {part}: {time.perf_counter() - begun:.1f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
