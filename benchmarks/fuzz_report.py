"""What runs of `truekernel fuzz` found and how well they called: findings with scripts, shares of valid calls, calls a second.

python benchmarks/fuzz_report.py RUN [RUN ...] --out results/fuzz        # a minute or so: every script is run again, in a process of its own

Leaves out what `examined.json` there calls a false alarm. Writes `findings.json` (those whose script fails again), `scripts/`, `summary.json` and, where it is missing, `documented_operators.txt`: the frozen list of documented functions by which
shares of valid calls are counted.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from truekernel.fuzz import libraries
from truekernel.fuzz.library import Library
from truekernel.fuzz.records import Finding, Outcome, document, parsed
from truekernel.fuzz.script import file_name, script
from truekernel.fuzz.showing import fails
from truekernel.fuzz.triage import key_of
from truekernel.store import Store

LEAST_CALLS = 5


def documented(library: Library) -> list[str]:
    """Documented public functions that write nothing in place; methods are left out, since functions of the same name stand for them."""
    return [
        operator.name
        for operator in library.operators()
        if operator.public
        and operator.documented
        and not operator.name.endswith("_")
        and not operator.name.startswith("torch.Tensor.")
    ]


def read(runs: list[Path]) -> tuple[dict[str, Finding], dict[str, list[int]], Counter[str], dict[str, Any]]:
    """Findings by key, (accepted, refused) by operator, counts, and the last progress of each worker."""
    findings: dict[str, Finding] = {}
    tally: dict[str, list[int]] = {}
    counts: Counter[str] = Counter()
    progress: dict[str, Any] = {}
    for run in runs:
        store = Store.open(run)
        for _, value in store.items("finding"):
            found = _named(parsed(value))
            if found.key not in findings or found.public > findings[found.key].public:
                findings[found.key] = found
        for _, state in store.items("state"):
            for name, (accepted, refused) in state["tally"].items():
                both = tally.setdefault(name, [0, 0])
                both[0] += accepted
                both[1] += refused
        for key, value in store.items("progress"):
            counts.update(value["counts"])
            progress[f"{run.name} {key}"] = value
        store.close()
    return findings, tally, counts, progress


def _named(found: Finding) -> Finding:
    """The finding under the name that this version gives it."""
    if found.kind != "mismatch":
        return found
    return replace(found, key=key_of(found.operator, Outcome("mismatch", found.oracle, message=found.observed)))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("runs", nargs="+", type=Path)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--library", default="torch")
    chosen = options.parse_args()
    library = libraries.load(chosen.library)
    findings, tally, counts, progress = read(chosen.runs)
    looked_at = chosen.out / "examined.json"
    examined = json.loads(looked_at.read_text(encoding="utf-8"))["examined"] if looked_at.exists() else {}
    for key in [key for key in findings if examined.get(key, {}).get("verdict") == "false alarm"]:
        del findings[key]
    scripts = chosen.out / "scripts"
    scripts.mkdir(parents=True, exist_ok=True)
    for old in scripts.glob("*.py"):
        old.unlink()
    paths = {}
    for key, finding in findings.items():
        paths[key] = scripts / f"{file_name(finding)}.py"
        paths[key].write_text(script(finding, library), encoding="utf-8")
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        ended = pool.map(fails, paths.values(), [findings[key].kind for key in paths])
        verdicts = dict(zip(paths, ended, strict=True))
    kept = {key: findings[key] for key, (failed, _) in verdicts.items() if failed}
    for key in verdicts.keys() - kept.keys():
        paths[key].unlink()
    ordered = sorted(
        kept.values(), key=lambda one: (("critical", "high", "medium", "low").index(one.severity), one.key)
    )
    (chosen.out / "findings.json").write_text(
        json.dumps({"format": 1, "findings": [document(one) for one in ordered]}, indent=1) + "\n", encoding="utf-8"
    )
    frozen = chosen.out / "documented_operators.txt"
    if not frozen.exists():
        frozen.write_text("\n".join(documented(library)) + "\n", encoding="utf-8")
    names = frozen.read_text(encoding="utf-8").split()
    summary = summarised(ordered, verdicts, names, tally, counts, progress) | {"versions": library.versions()}
    judged = [one["verdict"] for one in examined.values()]
    summary["examined"] = {verdict: judged.count(verdict) for verdict in ("real", "false alarm")}
    summary["examined_real"] = sorted(key for key in kept if examined.get(key, {}).get("verdict") == "real")
    (chosen.out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    print(
        json.dumps(
            {key: value for key, value in summary.items() if key not in ("below", "never_called", "scripts_that_pass")},
            indent=1,
        )
    )


def summarised(
    ordered: list[Finding],
    verdicts: dict[str, tuple[bool, str]],
    names: list[str],
    tally: dict[str, list[int]],
    counts: Counter[str],
    progress: dict[str, Any],
) -> dict[str, Any]:
    called = {name: tally.get(name, [0, 0]) for name in names}
    enough = {
        name: accepted / (accepted + refused)
        for name, (accepted, refused) in called.items()
        if accepted + refused >= LEAST_CALLS
    }
    seconds = sum(one["seconds"] for one in progress.values())
    accepted, single = sum(pair[0] for pair in tally.values()), sum(map(sum, tally.values()))
    return {
        "executed": counts["executed"],
        "single_calls": single,
        "valid_call_share": accepted / max(single, 1),
        "clock_seconds": max((one["clock"] for one in progress.values()), default=0.0),
        "valid_share": 1 - counts["refused"] / max(counts["executed"], 1),
        "constrained_valid_share": counts["origin constrained accepted"]
        / max(counts["origin constrained accepted"] + counts["origin constrained refused"], 1),
        "processor_seconds": seconds,
        "cases_a_second_a_core": counts["executed"] / max(seconds, 1e-9),
        "calls_a_second_a_core": counts["calls"] / max(seconds, 1e-9),
        "operators_called_validly": sum(1 for accepted, _ in tally.values() if accepted),
        "public_operators_called_validly": sum(
            1 for name, (accepted, _) in tally.items() if accepted and ".ops." not in name
        ),
        "documented": len(names),
        "documented_called": sum(1 for accepted, _ in called.values() if accepted),
        "documented_with_five_calls": len(enough),
        "documented_at_60_percent": sum(share >= 0.6 for share in enough.values()),
        "below": {name: round(share, 3) for name, share in sorted(enough.items()) if share < 0.6},
        "never_called": sorted(name for name, (accepted, _) in called.items() if not accepted),
        "dropped": {key.removeprefix("dropped "): count for key, count in counts.items() if key.startswith("dropped ")},
        "extreme_values": counts["extreme values"],
        "findings": len(ordered),
        "by_severity": dict(Counter(one.severity for one in ordered)),
        "public_by_kind": dict(
            Counter(f"{one.kind} {one.oracle}" for one in ordered if one.public and not one.backward)
        ),
        "public": sum(one.public and not one.backward for one in ordered),
        "internal": sum(not one.public and not one.backward for one in ordered),
        "backward": sum(one.backward for one in ordered),
        "scripts_that_pass": {key: words for key, (failed, words) in verdicts.items() if not failed},
    }


if __name__ == "__main__":
    main()
