"""Kill audits at random instants, resume them, and compare the reports with that of an undisturbed run.

    python benchmarks/kill9.py --kills 20 > results/kill9.json

An audit of a few problems runs once undisturbed. Then it starts afresh again and again: each is killed with SIGKILL (it and all its
processes' parent) at an instant drawn uniformly from the undisturbed run's duration, resumed to its end, and its JSON and HTML reports are
compared byte by byte, times and the directory's name aside.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def audit(run: Path, options: list[str], *, resume: bool = False) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "truekernel",
        "audit",
        "--run",
        str(run),
        *options,
        *(["--resume"] if resume else []),
    ]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def report(run: Path) -> str:
    """The report as JSON, without what may differ: times and the directory's name."""
    done = subprocess.run(
        [sys.executable, "-m", "truekernel", "report", str(run), "--json"], capture_output=True, text=True, check=True
    )
    document = json.loads(done.stdout)
    for name in ("seconds", "started", "directory"):
        document["run"].pop(name, None)
    return json.dumps(document, sort_keys=True)


def leftovers() -> list[str]:
    """Processes of ours that outlived the kill."""
    listing = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in listing if "truekernel.pool" in line or "truekernel/simt" in line or "tk-server" in line]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--problems", nargs="*", default=["softmax", "reduction"])
    parser.add_argument("--sample", type=int, default=80)
    arguments = parser.parse_args()
    options = [f"--sample={arguments.sample}", *[f"--problems={name}" for name in arguments.problems]]
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="truekernel-kill9-") as directory:
        base = Path(directory)
        begun = time.monotonic()
        first = audit(base / "undisturbed", options)
        _, errors = first.communicate()
        seconds = time.monotonic() - begun
        if first.returncode not in (0, 1):
            sys.exit(errors.decode())
        want = report(base / "undisturbed")
        identical, rows = 0, []
        for number in range(arguments.kills):
            run = base / f"killed-{number}"
            instant = rng.uniform(0, seconds)
            process = audit(run, options)
            time.sleep(instant)
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            time.sleep(1.0)
            orphans = leftovers()
            resumed = audit(run, options, resume=(run / "run.sqlite").exists())
            _, errors = resumed.communicate()
            same = resumed.returncode == first.returncode and report(run) == want
            identical += same
            rows.append(
                {
                    "instant_s": round(instant, 3),
                    "identical": same,
                    "orphans": orphans,
                    "error": "" if same else errors.decode()[-500:],
                }
            )
            print(
                f"{number + 1:3d}/{arguments.kills} killed at {instant:6.2f} s of {seconds:.2f}: {'identical' if same else 'DIFFERENT'}",
                file=sys.stderr,
            )
            shutil.rmtree(run, ignore_errors=True)
    json.dump(
        {"kills": arguments.kills, "identical": identical, "undisturbed_s": round(seconds, 2), "rows": rows},
        sys.stdout,
        indent=1,
    )
    print()


if __name__ == "__main__":
    main()
