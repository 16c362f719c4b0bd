"""The process that compute-sanitizer watches: runs launch plans with allocations of the exact size and no red zones. Standard library only.

    compute-sanitizer --tool memcheck python -m truekernel.execution.cuda.sanitiser_runner JOBS

JOBS holds frames of `wire`: {"ask": "content"} with its bytes, then {"ask": "job"} with a cubin. What belongs to which job is told by lines on standard
output, among which compute-sanitizer writes its findings: "@@ job N", "@@ buffer N number address bytes", "@@ end N status".
"""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path
from typing import Any

from truekernel.execution.cuda.driver import Driver, DriverError, parameters
from truekernel.execution.cuda.running import REFUSED
from truekernel.execution.cuda.wire import Channel, ClosedError


def main(path: str, first: int, initialise: bool) -> None:
    """Run the jobs from number `first` on. `initialise`: empty buffers start as poison instead of unwritten."""
    driver = Driver()
    driver.open(0)
    contents: dict[str, bytearray] = {}
    with Path(path).open("rb") as file:
        channel = Channel(file.fileno(), -1)
        try:
            while True:
                message, payload = channel.receive()
                if message["ask"] == "content":
                    contents[message["name"]] = payload
                elif message["number"] >= first:
                    _run(driver, message, bytes(payload), contents, initialise)
        except ClosedError:
            _say("@@ done")


def _run(driver: Driver, job: dict[str, Any], cubin: bytes, contents: dict[str, bytearray], initialise: bool) -> None:
    number, case = job["number"], job["case"]
    _say(f"@@ job {number}")
    addresses = [_buffer(driver, buffer, contents, initialise) for buffer in case["buffers"]]
    for k, (buffer, address) in enumerate(zip(case["buffers"], addresses, strict=True)):
        _say(f"@@ buffer {number} {k} {address:#x} {buffer['nbytes']}")
    status = "ok"
    try:
        module = driver.load(cubin)
        functions = {kernel: driver.function(module, symbol) for kernel, symbol in job["symbols"].items()}
        for launch in case["launches"]:
            status = _launch(driver, functions[launch["kernel"]], launch, addresses)
            if status != "ok":
                break
        driver.call("cuCtxSynchronize")
        driver.unload(module)
        for address in addresses:
            if address:
                driver.free(address)
    except DriverError as error:
        _say(f"@@ end {number} {error.name}")
        if error.code not in REFUSED:
            _say(f"@@ broken {number}")
            os._exit(0)
    else:
        _say(f"@@ end {number} {status}")


def _buffer(driver: Driver, buffer: dict[str, Any], contents: dict[str, bytearray], initialise: bool) -> int:
    if not buffer["nbytes"]:
        return 0
    address = driver.allocate(buffer["nbytes"])
    if buffer["role"] in ("input", "mutable"):
        driver.upload(address, contents[buffer["content"]])
    elif buffer["role"] == "zeros":
        driver.call("cuMemsetD8Async", address, 0, buffer["nbytes"], None)
    elif initialise:
        driver.call("cuMemsetD8Async", address, 0xFF, buffer["nbytes"], None)
    return address


def _launch(driver: Driver, function: Any, launch: dict[str, Any], addresses: list[int]) -> str:
    values = [
        struct.pack("<Q", (addresses[a[1]] + a[2]) & (2**64 - 1)) if a[0] == "buffer" else bytes.fromhex(a[1])
        for a in launch["args"]
    ]
    array, _alive = parameters(values)
    try:
        if launch["shared"]:
            driver.allow_shared(function, launch["shared"])
        driver.launch(
            function, launch["grid"], launch["block"], array, shared=launch["shared"], cooperative=launch["cooperative"]
        )
    except DriverError as error:
        if error.code in REFUSED:
            return error.name
        raise
    return "ok"


def _say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3] == "poison")
