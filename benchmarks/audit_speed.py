"""Time an audit and its memory: mutants a second from source to all verdicts, peak resident memory of all its processes.

python benchmarks/audit_speed.py --run runs/full > results/audit_speed.json           # everything
python benchmarks/audit_speed.py --run runs/x1 --sample 500 1000 2000 > results/...   # how cost grows with mutants
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from pathlib import Path


def descendants(root: int) -> list[int]:
    """Process ids of `root` and all below it."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found, queue = [], [root]
    while queue:
        pid = queue.pop()
        found.append(pid)
        queue += children.get(pid, [])
    return found


def proportional_set(pid: int) -> int:
    """Memory of a process in bytes, pages shared with others counted in proportion."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def watched(command: list[str]) -> tuple[float, float, int]:
    """Run a command: wall seconds, peak memory of its process tree in GB, exit code."""
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(2):
            peak = max(peak, sum(proportional_set(pid) for pid in descendants(process.pid)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    code = process.wait()
    done.set()
    watcher.join()
    return time.monotonic() - begun, peak / 1e9, code


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--sample", type=int, nargs="*", default=[0], help="0 = all mutants")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("rest", nargs="*", help="further options of truekernel audit")
    arguments = parser.parse_args()
    rows = []
    for sample in arguments.sample:
        run = arguments.run if len(arguments.sample) == 1 else arguments.run.with_name(f"{arguments.run.name}-{sample}")
        command = [sys.executable, "-m", "truekernel", "audit", "--run", str(run), "--workers", str(arguments.workers)]
        command += [f"--sample={sample}"] if sample else []
        seconds, peak, code = watched([*command, *arguments.rest])
        report = subprocess.run(
            [sys.executable, "-m", "truekernel", "report", str(run), "--json"],
            capture_output=True,
            text=True,
            check=True,
        )
        counts = json.loads(report.stdout)["counts"]
        rows.append(
            {
                "sample": sample,
                "exit_code": code,
                "seconds": round(seconds, 2),
                "chosen": counts["chosen"],
                "unique": counts["unique"],
                "unique_per_s": round(counts["unique"] / seconds, 2),
                "chosen_per_s": round(counts["chosen"] / seconds, 2),
                "peak_gb": round(peak, 3),
            }
        )
        print(rows[-1], file=sys.stderr)
    json.dump(rows, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
