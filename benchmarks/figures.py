"""Collect the measured figures of results/*.json into results/figures.json, newest last.

    python benchmarks/figures.py                       # all of them
    python benchmarks/figures.py "audit.cpu*" "gpu.*"  # those that were measured at this commit

Reads what the other benchmarks wrote, and demo_speed.json, which holds the seconds and counts of `make demo`'s report; a missing file leaves its figures out.
"""

from __future__ import annotations

import fnmatch
import json
import os
import platform
import statistics
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path("results")


def load(name: str) -> Any:
    path = RESULTS / name
    return json.loads(path.read_text()) if path.exists() else None


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{model}, {len(os.sched_getaffinity(0))} cores, no GPU"


def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def add(name: str, value: float, unit: str, command: str, n: int | None = None, note: str = "") -> None:
        found.append(
            {
                "name": name,
                "value": value,
                "low": None,
                "high": None,
                "n": n,
                "unit": unit,
                "command": command,
                "note": note,
            }
        )

    if speed := load("simt_speed.json"):
        command = "python benchmarks/simt_speed.py > results/simt_speed.json"
        note = "schemata and batches of all device-code mutants of all programs; compiling each alone comes on top in an audit"
        add("cpu.compile_ms", round(speed["compile_ms"], 2), "ms", command, n=speed["mutants"], note=note)
        add("cpu.launch_ms", round(speed["launch_ms"], 3), "ms", command, note="fork included, median")
        add(
            "cpu.matmul512_s",
            round(speed["matmul512_s"], 3),
            "s",
            command,
            note="tile 16, plain build, CPU seconds, best of three",
        )
    if audits := load("audit_speed.json"):
        full = audits[-1]
        command = "python benchmarks/audit_speed.py --run runs/full > results/audit_speed.json"
        note = "all mutants of all programs, from planning to the summary"
        add("audit.cpu_mutants_per_s", full["unique_per_s"], "1/s", command, n=full["unique"], note=note)
        add("audit.cpu_peak_gb", full["peak_gb"], "GB", command, note="proportional set size of all processes")
    if demos := load("demo_speed.json"):
        command = (
            "python benchmarks/audit_speed.py --run runs/demo ... > results/demo_speed.json (the command of make demo)"
        )
        add("audit.demo_s", demos[-1]["seconds"], "s", command)
        add("audit.demo_mutants", demos[-1]["unique"], "mutants", command)
    if kills := load("kill9.json"):
        add(
            "audit.kill9_identical",
            kills["identical"],
            "runs",
            "python benchmarks/kill9.py > results/kill9.json",
            n=kills["kills"],
        )
    if hostile := load("hostile.json"):
        command = "python benchmarks/hostile.py > results/hostile.json"
        add("audit.hostile_survived", hostile["survived_and_named"], "kernels", command, n=hostile["kernels"])
    if fuzzed := load("fuzz/summary.json"):
        command = "truekernel fuzz torch --public-only --budget 34m --seed 20261130 --run runs/fuzz, then python benchmarks/fuzz_report.py runs/fuzz --out results/fuzz"
        note = f"cases of one call; of all {fuzzed['executed']} cases of up to six calls {fuzzed['valid_share']:.3f} end without a refusal"
        add(
            "fuzz.valid_share",
            round(fuzzed["valid_call_share"], 4),
            "share",
            command,
            n=fuzzed["single_calls"],
            note=note,
        )
        minutes = fuzzed["clock_seconds"] / 60
        note = f"in {minutes:.0f} minutes of two workers, other work beside them"
        add("fuzz.ops_called", fuzzed["public_operators_called_validly"], "operators", command, note=note)
        sure = {kind: n for kind, n in fuzzed["public_by_kind"].items() if not kind.startswith("mismatch")}
        real = len(fuzzed["examined_real"])
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(fuzzed["public_by_kind"].items()))
        note = f"in {fuzzed['processor_seconds'] / 3600:.1f} core-hours, each script failing again in a fresh process; {kinds}"
        note += f"; counted are those that are no mismatch, and {real} mismatches that were examined and are real"
        add("fuzz.public_failures", sum(sure.values()) + real, "findings", command, note=note)
    if again := load("fuzz/examined_again.json"):
        command = "truekernel fuzz torch --public-only --budget 16m --seed 20261210 --run runs/a, and --workers 1 --budget 13m --seed 20261211 --run runs/b"
        verdicts = [one["verdict"] for one in again["examined"].values()]
        note = (
            f"{again['drawn']}; examined by somebody who had not written the judges: results/fuzz/examined_again.json"
        )
        add("fuzz.true_mismatches", verdicts.count("real"), "mismatches", command, n=len(verdicts), note=note)
    return found


def gpu_rows() -> list[dict[str, Any]]:
    """Figures of one H200 that no script of benchmarks/h200 adds itself."""
    found = load("h200/kernelbench_equality.json")
    if found is None:
        return []
    equal = [row["equal"] for row in found["equality"]]
    ratios = [row["theirs_s"] / row["ours_s"] for row in found["timed"]]
    command = (
        "python benchmarks/h200/kernelbench_equality.py --kernelbench PATH --out results/h200/kernelbench_equality.json"
    )
    common = {"low": None, "high": None, "command": command, "where": "h200"}
    machine = found["machine"]
    common |= {
        "machine": f"one {machine['gpu']}, {machine['cores']} cores",
        "versions": {"python": machine["python"], "torch": machine["torch"], "truekernel": version("truekernel")},
    }
    unequal = "; ".join(f"{row['title']} of {row['problem']}" for row in found["equality"] if not row["equal"])
    return [
        {
            "name": "gpu.kernelbench_verdicts_equal",
            "value": sum(equal),
            "n": len(equal),
            "unit": "verdicts",
            "note": f"40 mutants and {len(equal) - 40} honest variants; not equal: {unequal or 'none'}",
            **common,
        },
        {
            "name": "gpu.vs_kernelbench_eval",
            "value": round(statistics.median(ratios), 1),
            "n": len(ratios),
            "unit": "times",
            "note": f"median of ten problems, from {min(ratios):.0f} to {max(ratios):.0f}; two at shortened sizes; the candidate is our NVRTC export, which spares the evaluation the compilation of load_inline",
            **common,
        },
    ]


def device_rows() -> list[dict[str, Any]]:
    """Figures of one H200 from files that name the commit they were measured at."""
    found: list[dict[str, Any]] = []

    def add(document: dict[str, Any], name: str, value: float, unit: str, n: int, note: str, command: str) -> None:
        row = {"name": name, "value": value, "low": None, "high": None, "n": n, "unit": unit, "note": note}
        place = {"command": command, "where": "h200", "machine": document.get("machine", "NVIDIA H200, 16 cores")}
        given = document.get("versions") or {key: document[key] for key in ("python", "torch") if key in document}
        found.append(row | place | {"versions": given, "commit": document["commit"], "date": document["date"]})

    if document := load("h200/throughput.json"):
        note = (
            f"from source to all verdicts on {document['cases']} cases, all programs, nothing cached; what a problem's mutants share is made before the clock starts; "
            f"{sum(document['contexts_lost'].values())} contexts were lost to faults and made anew; GPU busy {document['gpu_busy']:.0%}; "
            f"earlier: {', '.join(str(row['mutants_per_s']) for row in document['earlier'])}"
        )
        command = "python benchmarks/h200/throughput.py --mutants 4000 --processes 3 --most-seconds 30"
        add(document, "gpu.mutants_per_s", document["mutants_per_s"], "1/s", document["mutants"], note, command)
    if document := load("h200/compile.json"):
        compiled = document["compile"]
        note = "in equal parts from all programs, up to twelve in a translation unit, nothing cached, compile processes already up"
        value = round(compiled["ms_each_over_all_cores"], 2)
        command = "python benchmarks/h200/audit.py --parts compile --compiled 2000"
        add(document, "gpu.compile_ms", value, "ms", compiled["mutants"], note, command)
    if document := load("h200/judging.json"):
        large = [row for row in document["speed"] if row["gigabytes"] > 1.01]
        full = min(row["full_share"] for row in large if row["dtype"] == "float32")
        alone = [f"{row['dtype']} {row['published_share']:.0%}" for row in large]
        note = (
            f"float32, 6.4 GB, all statistics, the worse of outputs that are close and outputs that are wrong; the comparisons of published checkers alone: {', '.join(alone)}; "
            f"torch.allclose {min(row['allclose_share'] for row in large):.0%}"
        )
        command = "python benchmarks/h200/judging.py --quick --gigabytes 1.0 6.4 --json results/h200/judging.json"
        add(document, "gpu.judge_bandwidth_share", round(full, 3), "share", len(large), note, command)
    if document := load("h200/timing.json"):
        command = "python benchmarks/h200/timing.py --out results/h200/timing.json"
        note = f"{document['pairs']} pairs of fresh processes each"
        same, five = document["aa_not_same"], document["five_percent_found"]
        add(
            document,
            "judge.aa_not_same",
            same["rate"],
            "share",
            same["count"],
            f"upper bound {same['high']:.3f}; {note}",
            command,
        )
        text = f"lower bound {five['low']:.3f}; chains of multiplications, the longer by a twentieth; {note}"
        add(document, "judge.five_percent_found", five["rate"], "share", five["count"], text, command)
    return found


def main() -> None:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    common = {
        "where": "cpu2",
        "machine": machine(),
        "versions": {
            "python": platform.python_version(),
            "torch": version("torch"),
            "truekernel": version("truekernel"),
        },
        "commit": commit,
        "date": datetime.now(UTC).date().isoformat(),
    }
    path = RESULTS / "figures.json"
    kept = json.loads(path.read_text()) if path.exists() else []
    stamp = {"commit": commit, "date": common["date"]}
    wanted = sys.argv[1:] or ["*"]
    new = [*({**row, **common} for row in rows()), *({**row, **stamp} for row in gpu_rows()), *device_rows()]
    new = [row for row in new if any(fnmatch.fnmatchcase(row["name"], pattern) for pattern in wanted)]
    path.write_text(json.dumps([*kept, *new], indent=1) + "\n")


if __name__ == "__main__":
    main()
