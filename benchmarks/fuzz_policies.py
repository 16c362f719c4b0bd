"""How much policies reach and find in equal time. One JSON line a run on stdout; --summary reads such lines and prints means with intervals.

python benchmarks/fuzz_policies.py --policies uniform,thompson,agent --seeds 5 --seconds 240 >> runs.jsonl
python benchmarks/fuzz_policies.py --policies agent:discount=1,agent:discount=0.9 --seeds 3 --seconds 120 >> sweep.jsonl
python benchmarks/fuzz_policies.py --summary runs.jsonl sweep.jsonl

A policy is a name, then settings: `agent:steps=512:rate=0.003`. Seconds are of processor time (worker, executor, training process), so that other load on the machine
does not count. Failures are told apart by signature and not triaged: neither confirmed nor minimised, so that their number compares policies and says nothing about the
library. A failure with a new signature is rewarded as one of medium severity. `curve`: at each tenth of the time, native functions and failures so far.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from truekernel.fuzz import policies
from truekernel.fuzz.campaign import _plain
from truekernel.fuzz.options import FuzzOptions
from truekernel.fuzz.records import Feedback
from truekernel.fuzz.worker import Worker

FIGURES = ("functions", "failures", "crashes", "executed", "valid share")


class Measured(Worker):
    """A worker without triage whose policy has settings."""

    def __init__(self, options: FuzzOptions, policy: str, settings: dict[str, float]) -> None:
        job = _plain(options) | {"number": 0, "state": None, "known": {}, "folder": "", "load": None}
        super().__init__(job)
        self.policy = policies.make(policy, self.space, self.seed, settings)

    def _feedback(self, case: Any, report: Any, finding: Any, fresh: bool) -> Feedback:
        feedback = super()._feedback(case, report, finding, fresh)
        if report.worst.failed and len(self.known) > self._signatures:
            feedback = replace(feedback, fresh=True, severity="medium")
        self._signatures = len(self.known)
        return feedback

    _signatures = 0

    def measure(self) -> dict[str, Any]:
        budget, curve = self.job["budget"], []
        while (seconds := self.spent()) < budget:
            while len(curve) < 10 * seconds / budget:
                curve.append([self.covered["functions"], len(self.known)])
            for _ in self._one(seconds):
                pass
        counts = self.counts
        executed = max(counts["executed"], 1)
        return {
            "functions": self.covered["functions"],
            "overloads": self.covered["overloads"],
            "failures": len(self.known),
            "crashes": counts["crash"],
            "kinds": {kind: counts[kind] for kind in ("valid", "refused", "crash", "assert", "hang", "memory")},
            "executed": executed,
            "duplicates": counts["duplicates"],
            "valid share": 1 - counts["refused"] / executed,
            "operators": sum(1 for accepted, _ in self.tally.values() if accepted),
            "curve": [*curve[1:], [self.covered["functions"], len(self.known)]],
            "trainings": getattr(self.policy, "trainings", 0),
            "training seconds": self.policy.processor_seconds() if hasattr(self.policy, "processor_seconds") else 0.0,
        }

    def close(self) -> None:
        self.executor.close()
        if hasattr(self.policy, "close"):
            self.policy.close()


def measured(label: str, seed: int, seconds: float, operators: tuple[str, ...]) -> dict[str, Any]:
    name, *pairs = label.split(":")
    settings = {key: float(value) for key, value in (pair.split("=") for pair in pairs)}
    options = FuzzOptions(
        "torch",
        Path("unused"),
        operators,
        budget=seconds,
        processor_time=True,
        seed=seed,
        triage=False,
        policy="uniform",
    )
    worker = Measured(options, name, settings)
    try:
        return {"policy": label, "seed": seed, "seconds": seconds} | worker.measure()
    finally:
        worker.close()


def interval(values: list[float]) -> tuple[float, float]:
    """Of the mean, 95 %, by bootstrap."""
    dice = random.Random(1)
    means = sorted(statistics.fmean(dice.choices(values, k=len(values))) for _ in range(4000))
    return means[100], means[3899]


def summary(paths: list[str]) -> None:
    runs: dict[str, list[dict[str, Any]]] = {}
    for path in paths:
        for line in Path(path).read_text().splitlines():
            run = json.loads(line)
            runs.setdefault(f"{run['policy']} ({run['seconds']:g} s)", []).append(run)
    for label, group in runs.items():
        print(f"{label}, {len(group)} seeds")
        for figure in FIGURES:
            values = [float(run[figure]) for run in group]
            low, high = interval(values)
            print(f"  {figure:12} {statistics.fmean(values):10.4g}  [{low:.4g}, {high:.4g}]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policies", default="uniform,thompson,agent")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--ops", default="")
    parser.add_argument("--summary", nargs="+", default=[])
    arguments = parser.parse_args()
    if arguments.summary:
        summary(arguments.summary)
        return
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    operators = tuple(filter(None, arguments.ops.split(",")))
    # Seed by seed, so that an interrupted measurement has all policies.
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        for label in arguments.policies.split(","):
            pid = os.fork()
            if pid == 0:
                try:
                    print(json.dumps(measured(label, seed, arguments.seconds, operators)), flush=True)
                except BaseException as error:
                    print(f"{label}, seed {seed}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                finally:
                    os._exit(0)
            os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
