"""How far `truekernel bench` can be trusted, measured on the GPU of this machine: a kernel against itself, and kernels that take 5 % longer by construction.

    python benchmarks/h200/timing.py [--aa 200] [--five 100] [--seconds 550] [--earlier results/h200/timing.json] [--out results/h200/timing.json]

A comparison is what `truekernel bench A B` makes of two candidates: eight pairs of fresh processes. Those of a comparison start together, before any of them is timed. Kernels: chains of
multiplications whose time is proportional to their length, from 5 us to 5 ms, and programs of the corpus at lengths near the official ones. --seconds ends the measurement early; what was measured counts. What --earlier holds is
added to where the code that times was the same then.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import platform
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from truekernel import corpus
from truekernel.audit.intervals import wilson
from truekernel.execution import cuda
from truekernel.judge import bench as bench_room
from truekernel.judge.bench.bench import Bench
from truekernel.judge.bench.pairs import Start
from truekernel.judge.bench.timers import Timer
from truekernel.judge.candidates import Candidate
from truekernel.judge.posing import Posed
from truekernel.model import AxisSpec, OutputSpec, Problem, TensorSpec

PAIRS = 8
SOURCE = """
extern "C" __global__ void chain(const float* x, float* y, int n, int steps, float one, float zero) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  for (int k = 0; k < steps; ++k) v = fmaf(v, one, zero);
  y[i] = v;
}
"""
PLAN = """
def launch(run, inputs, axes):
    n = axes["N"]
    y = run.empty((n,))
    run.launch("chain", (n + 255) // 256, 256, [inputs["x"], y, n, STEPS, 1.0, 0.0])
    return y
"""
CHAINS = ((1 << 14, 2000), (1 << 18, 2000), (1 << 20, 1000), (1 << 22, 2000), (1 << 24, 1000), (1 << 16, 20000))
"""Elements and steps."""
PROGRAMS = ("softmax_online", "layer_norm_warp", "gelu", "sum_dim", "cumsum_tiles")


def copied(n: int) -> Problem:
    """A problem whose answer is its input."""
    return Problem(
        name="chain",
        family="elementwise",
        summary="a copy",
        axes={"N": AxisSpec(n, n, "batch")},
        inputs=(TensorSpec("x", ("N",)),),
        outputs=(OutputSpec("y", ("N",)),),
        reference=lambda inputs, _axes: (inputs["x"].clone(),),
        flops=lambda _axes: 0.0,
        bytes=lambda axes: 8.0 * axes["N"],
    )


class Pooled:
    """A side whose processes start together."""

    def __init__(self, start: Start, count: int) -> None:
        self.timers = [start() for _ in range(count)]
        self._left = list(self.timers)

    def __call__(self) -> Timer:
        return self._left.pop()

    def close(self) -> None:
        for timer in self.timers:
            timer.close()


def chain(bench: Bench, steps: int) -> Start:
    return bench.candidate(Candidate("chain", "plan", SOURCE, SOURCE, PLAN.replace("STEPS", str(steps))))


def program(bench: Bench, name: str) -> Start:
    found = corpus.programs()[name]
    return bench.candidate(Candidate(name, "plan", found.source, found.source, found.plan_source))


def compared(bench: Bench, one: Start, other: Start) -> dict[str, Any]:
    begun = time.monotonic()
    sides = [Pooled(one, PAIRS), Pooled(other, PAIRS)]
    try:
        for timer in (*sides[0].timers, *sides[1].timers):
            timer.ready()
        row = bench.row("other", sides[0], sides[1])
    finally:
        for side in sides:
            side.close()
    found = row.comparison
    return {
        "word": found.word if row.agree else "AMBIGUOUS",
        "ratio": round(found.ratio, 5),
        "low": round(found.low, 5),
        "high": round(found.high, 5),
        "us": round(1e6 * row.candidate_seconds, 2),
        "agree": row.agree,
        "rejected": row.rejected,
        "took_s": round(time.monotonic() - begun, 2),
    }


class Kernel:
    """A kernel and the case that it is timed on, whose references are made once."""

    def __init__(self, title: str, problem: Problem, make: Callable[[Bench], Start]) -> None:
        self.title, self.make = title, make
        self.bench = Bench(Posed(problem), "", secrets.token_hex(16), PAIRS)


def kernels() -> list[Kernel]:
    """All that are compared with themselves."""
    made = [Kernel(f"chain of {s} on {n}", copied(n), lambda bench, s=s: chain(bench, s)) for n, s in CHAINS]  # type: ignore[misc]
    for name in PROGRAMS:
        problem = corpus.problems()[corpus.programs()[name].problem]
        made.append(Kernel(name, problem, lambda bench, n=name: program(bench, n)))  # type: ignore[misc]
    return made


def code() -> str:
    """Hash of what times: results may be pooled as long as it stays."""
    digest = hashlib.sha256()
    for path in sorted(Path(bench_room.__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def rate(hits: int, count: int) -> dict[str, Any]:
    low, high = wilson(hits, count) if count else (0.0, 1.0)
    return {"count": count, "hits": hits, "rate": hits / max(count, 1), "low": low, "high": high}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aa", type=int, default=200)
    parser.add_argument("--five", type=int, default=100)
    parser.add_argument("--earlier", type=Path, default=Path("results/h200/timing.json"))
    parser.add_argument("--seconds", type=float, default=550.0)
    parser.add_argument("--out", type=Path, default=Path("results/h200/timing.json"))
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    info = cuda.device_info()
    found: dict[str, Any] = {
        "commit": "",
        "code": code(),
        "machine": info.name,
        "versions": {
            "python": platform.python_version(),
            "torch": version("torch"),
            "truekernel": version("truekernel"),
        },
        "date": datetime.now(UTC).date().isoformat(),
        "pairs": PAIRS,
        "aa": [],
        "five": [],
    }
    if arguments.earlier.exists():
        earlier = json.loads(arguments.earlier.read_text())
        if earlier["code"] == found["code"]:
            found |= {key: earlier[key] for key in ("commit", "aa", "five")}
    made = kernels()

    def write() -> None:
        five = found["five"]
        right = sum(row["word"] == row["wanted"] for row in five)
        found["aa_not_same"] = rate(sum(row["word"] != "SAME" for row in found["aa"]), len(found["aa"]))
        found["five_percent_found"] = rate(right, len(five))
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")

    share = arguments.aa / max(arguments.aa + arguments.five, 1)
    for number in itertools.count(len(found["aa"]) + len(found["five"])):
        done, wanted = (len(found["aa"]), len(found["five"])), (arguments.aa, arguments.five)
        if time.monotonic() > end or (done[0] >= wanted[0] and done[1] >= wanted[1]):
            break
        if done[1] >= wanted[1] or (done[0] < wanted[0] and done[0] <= share * number):
            kernel = made[done[0] % len(made)]
            start = kernel.make(kernel.bench)
            row = {"kernel": kernel.title, **compared(kernel.bench, start, start)}
            found["aa"].append(row)
        else:
            kernel, steps = made[done[1] // 2 % len(CHAINS)], CHAINS[done[1] // 2 % len(CHAINS)][1]
            short, long = chain(kernel.bench, steps), chain(kernel.bench, steps * 105 // 100)
            slower = done[1] % 2 == 1
            sides = (long, short) if slower else (short, long)
            row = {"kernel": kernel.title, "wanted": "SLOWER" if slower else "FASTER", **compared(kernel.bench, *sides)}
            found["five"].append(row)
        print(row, flush=True)
        write()
    for kernel in made:
        kernel.bench.close()
    write()
    print(json.dumps({key: found[key] for key in ("aa_not_same", "five_percent_found")}, indent=1))


if __name__ == "__main__":
    main()
