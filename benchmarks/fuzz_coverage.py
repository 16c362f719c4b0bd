"""What watching coverage costs, kind by kind. Prints a table on stderr and one JSON document on stdout.

python benchmarks/fuzz_coverage.py > results/fuzz_coverage.json          # about three minutes

Two processes, one watched and one not, take turns at the same block of work, in alternating order, and count their own processor time. `overhead`: median over
the pairs of blocks of watched / plain - 1, after both have done the work before (the steady state); with the 95 % interval of a bootstrap over pairs. `first`:
milliseconds of the very first block, watched and plain, where each function entered costs a trap. `make_ms`: preparing the source in the parent, with cached
tables; `start_ms`: in the executing process. `private_mib`, `shared_mib`: memory that the watched process has more of.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from truekernel.fuzz.coverage.lines import PythonLines
from truekernel.fuzz.coverage.native import NativeFunctions
from truekernel.fuzz.coverage.overloads import Overloads

Work = Callable[[], None]


def small_operators() -> Work:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(4, 8, 8, generator=generator)
    image, kernel = torch.randn(2, 3, 8, 8, generator=generator), torch.randn(4, 3, 3, 3, generator=generator)
    square = torch.randn(4, 4, generator=generator)
    functional = torch.nn.functional
    calls = [
        lambda: x + x,
        lambda: x.transpose(0, 1) * 2,
        lambda: x @ x,
        lambda: x.softmax(1),
        lambda: x.sum((0, 2)),
        lambda: x.sort(1),
        lambda: x.cumsum(0),
        lambda: x.to(torch.bfloat16).exp(),
        lambda: functional.conv2d(image, kernel),
        lambda: functional.max_pool2d(image, 2),
        lambda: functional.layer_norm(x, (8,)),
        lambda: functional.interpolate(image, scale_factor=2),
        lambda: functional.pad(image, (1, 1, 1, 1), mode="reflect"),
        lambda: torch.fft.fft(square),
        lambda: torch.linalg.svd(square),
        lambda: x[:, 2:5].clone().view(-1),
        lambda: torch.where(x > 0, x, -x),
        lambda: torch.cat([x, x], 1).unique(),
    ]

    def block() -> None:
        for _ in range(4):
            for call in calls:
                call()

    return block


def gradients() -> Work:
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4)
    )
    x = torch.ones(8, 16)

    def block() -> None:
        for _ in range(10):
            model(x).logsumexp(1).sum().backward()
            model.zero_grad()

    return block


def refusals() -> Work:
    x = torch.ones(3, 4)

    def block() -> None:
        for _ in range(20):
            for call in (lambda: x @ x, lambda: x.reshape(5, 5), lambda: torch.nn.functional.conv2d(x, x)):
                try:
                    call()
                except RuntimeError:
                    continue
                raise AssertionError("not refused")

    return block


def compiler() -> Work:
    import torch._dynamo

    x = torch.linspace(-1, 1, 12).reshape(3, 4)

    def function(y: torch.Tensor) -> torch.Tensor:
        return torch.relu(y).softmax(0) * 2

    def block() -> None:
        torch._dynamo.reset()
        torch.compile(function, backend="aot_eager")(x)

    return block


MEASUREMENTS: tuple[tuple[str, type[Any], Callable[[], Work]], ...] = (
    ("functions: small operators", NativeFunctions, small_operators),
    ("functions: gradients", NativeFunctions, gradients),
    ("functions: refused calls", NativeFunctions, refusals),
    ("overloads: small operators", Overloads, small_operators),
    ("lines: small operators", PythonLines, small_operators),
    ("lines: torch.compile (aot_eager)", PythonLines, compiler),
)


class Player:
    """A forked process that does the work once for each byte it is sent, and answers with its processor time."""

    def __init__(self, make: Callable[[], Work], source: Any) -> None:
        ask, self._ask = os.pipe()
        self._told, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._ask)
            torch.set_num_threads(1)
            started = time.perf_counter()
            if source is not None:
                source.start()
            os.write(tell, struct.pack("<d", time.perf_counter() - started))
            work = make()
            while os.read(ask, 1) == b"x":
                begun = time.process_time()
                if source is not None:
                    source.begin()
                work()
                if source is not None:
                    source.end()
                os.write(tell, struct.pack("<d", time.process_time() - begun))
            os._exit(0)
        os.close(ask)
        self.start_seconds = self._seconds()

    def play(self) -> float:
        os.write(self._ask, b"x")
        return self._seconds()

    def memory(self) -> dict[str, float]:
        text = Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        kib = {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines()[1:]}
        return {
            "private": (kib["Private_Clean"] + kib["Private_Dirty"]) / 1024,
            "shared": (kib["Shared_Clean"] + kib["Shared_Dirty"]) / 1024,
        }

    def close(self) -> None:
        os.write(self._ask, b"q")  # a later player has this end too: closing it would not be seen
        os.waitpid(self.pid, 0)

    def _seconds(self) -> float:
        return struct.unpack("<d", os.read(self._told, 8))[0]


def measured(source_type: type[Any], make: Callable[[], Work], pairs: int) -> dict[str, Any]:
    started = time.perf_counter()
    source = source_type()
    make_seconds = time.perf_counter() - started
    plain, watched = Player(make, None), Player(make, source)
    first = {"plain": 1e3 * plain.play(), "watched": 1e3 * watched.play()}
    for _ in range(5):
        plain.play()
        watched.play()
    ratios = []
    times = []
    for number in range(pairs):
        order = (plain, watched) if number % 2 else (watched, plain)
        seconds = {player: player.play() for player in order}
        ratios.append(seconds[watched] / seconds[plain] - 1)
        times.append(seconds[plain])
    memory = {"plain": plain.memory(), "watched": watched.memory()}
    plain.close()
    watched.close()
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(ratios, k=len(ratios))) for _ in range(2000))
    return {
        "overhead": statistics.median(ratios),
        "interval": [medians[50], medians[1949]],
        "pairs": pairs,
        "block_ms": 1e3 * statistics.median(times),
        "first_ms": first,
        "make_ms": 1e3 * make_seconds,
        "start_ms": 1e3 * watched.start_seconds,
        "private_mib": memory["watched"]["private"] - memory["plain"]["private"],
        "shared_mib": memory["watched"]["shared"] - memory["plain"]["shared"],
        "total": source.total(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--only", default="", help="measurements whose name contains this")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results = {}
    for name, source_type, make in MEASUREMENTS:
        if arguments.only not in name:
            continue
        figures = results[name] = measured(source_type, make, arguments.pairs)
        low, high = figures["interval"]
        print(
            f"{name:36} {100 * figures['overhead']:+6.1f} % [{100 * low:+.1f}, {100 * high:+.1f}]  block {figures['block_ms']:.1f} ms  "
            f"first {figures['first_ms']['plain']:.0f} -> {figures['first_ms']['watched']:.0f} ms  make {figures['make_ms']:.0f} ms",
            file=sys.stderr,
        )
    machine = {"python": platform.python_version(), "torch": torch.__version__, "cores": os.cpu_count()}
    print(json.dumps({"machine": machine, "measurements": results}, indent=1))


if __name__ == "__main__":
    main()
