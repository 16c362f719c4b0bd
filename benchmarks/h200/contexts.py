"""What contexts cost on this GPU: making them, waiting in turn with others, and addresses that a small piece of memory stands behind.

    PYTHONPATH=src python benchmarks/h200/contexts.py > results/h200/contexts.json

Each measurement runs in processes of its own, since a context belongs to its process.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SOURCE = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] = threadIdx.x * 2.0f; }\n'
LAUNCHES = 8
"""Launches of an execution, about what an audit's has: fill, kernel, check, hash, judge."""
SECONDS = 1.0


def child(mode: str, cubin: Path, *arguments: str) -> dict[str, Any]:
    """One measurement in this process."""
    from truekernel.execution.cuda.driver import Driver, parameters

    begun = time.perf_counter()
    driver = Driver()
    ready = time.perf_counter()
    driver.open(0)
    opened = time.perf_counter()
    if mode == "open":
        return {"init": ready - begun, "context": opened - ready}
    module = driver.load(cubin.read_bytes())
    kernel = driver.function(module, "twice")
    if mode == "sink":
        return sink(driver, *map(int, arguments))
    array, _alive = parameters([struct.pack("<Q", driver.allocate(1 << 20))])
    batch, start = int(arguments[0]), float(arguments[1])
    while time.time() < start:
        time.sleep(0.001)
    done = 0
    while time.time() < start + SECONDS:
        for _ in range(batch * LAUNCHES):
            driver.launch(kernel, (64, 1, 1), (128, 1, 1), array)
        driver.call("cuCtxSynchronize")
        done += batch
    return {"rate": done / SECONDS}


def sink(driver: Any, piece: int, addresses: int) -> dict[str, Any]:
    """Seconds to put one piece of memory behind many addresses, and to take it away."""
    handle, base = driver.create(piece, 0), driver.reserve(addresses)
    begun = time.perf_counter()
    driver.map(base, [handle] * (addresses // piece), piece, 0)
    mapped = time.perf_counter()
    driver.unmap(base, addresses)
    return {"map": mapped - begun, "unmap": time.perf_counter() - mapped}


def together(count: int, cubin: Path, *arguments: str, connections: int = 8) -> tuple[float, list[dict[str, Any]]]:
    """Wall seconds and answers of `count` children at once."""
    environment = os.environ | {"CUDA_DEVICE_MAX_CONNECTIONS": str(connections)}
    command = [sys.executable, __file__, "--child", arguments[0], str(cubin), *arguments[1:]]
    begun = time.perf_counter()
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) for _ in range(count)]
    answers = [json.loads(process.communicate()[0]) for process in children]
    return time.perf_counter() - begun, answers


def rates(cubin: Path, batches: Sequence[int], counts: Sequence[int]) -> list[dict[str, Any]]:
    """Executions a second over all processes, for each number of executions between waits."""
    rows = []
    for batch in batches:
        for count in counts:
            _, answers = together(count, cubin, "rate", str(batch), str(time.time() + 3), connections=1)
            rows.append({"between_waits": batch, "processes": count, "rate": round(sum(a["rate"] for a in answers))})
    return rows


def main() -> None:
    """Measure everything, or one thing for a parent."""
    if sys.argv[1:2] == ["--child"]:
        mode, file, *arguments = sys.argv[2:]
        print(json.dumps(child(mode, Path(file), *arguments)), flush=True)
        os._exit(0)
    from truekernel.execution import cuda

    library = cuda.compile_single(SOURCE, ["twice"])
    if isinstance(library, cuda.CompileFailure):
        raise SystemExit(str(library))
    with tempfile.TemporaryDirectory(prefix="truekernel-") as folder:
        cubin = Path(folder) / "twice.cubin"
        cubin.write_bytes(library.cubin)
        found: dict[str, Any] = {"gpu": cuda.device_info().name, "parallel": []}
        for connections in (8, 1):
            for count in (1, 8, 16):
                seconds, answers = together(count, cubin, "open", connections=connections)
                row = {"processes": count, "connections": connections, "seconds": round(seconds, 3)}
                row["slowest_context"] = round(max(a["context"] for a in answers), 3)
                found["parallel"].append(row)
        found["sink"] = [
            {"piece_mib": piece >> 20, "addresses_mib": total >> 20}
            | together(1, cubin, "sink", str(piece), str(total))[1][0]
            for piece, total in ((2 << 20, 256 << 20), (16 << 20, 128 << 20), (64 << 20, 16 << 30))
        ]
        found["executions_of_8_launches_per_s"] = rates(cubin, (1, 20), (1, 4, 16))
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
