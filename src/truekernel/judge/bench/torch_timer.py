"""A process that times the reference as torch runs it: one baseline, with every switch that changes float32 arithmetic set to a known value first.

Requests and answers are those of `serving`; `python -m truekernel.judge.bench.torch_timer FOLDER` reads FOLDER/job.json (see `jobs.torch_job`).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from truekernel.judge.bench.serving import POISON, copies, serve
from truekernel.judge.inside.state import snapshot
from truekernel.judge.posing import pose
from truekernel.numerics.formats import TORCH_DTYPES

Call = Callable[[dict[str, torch.Tensor]], tuple[torch.Tensor, ...]]
WARM_UP = 3
_RECORDED = ("numeric.",)


def set_switches(precision: str) -> None:
    """`precision`: ieee = no shortcut anywhere; fast = TF32 and reduced sums wherever torch has them; "" = as torch starts."""
    if not precision:
        return
    fast = precision == "fast"
    torch.set_float32_matmul_precision("high" if fast else "highest")
    torch.backends.cuda.matmul.allow_tf32 = fast
    torch.backends.cudnn.allow_tf32 = fast
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = fast
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = fast
    torch.backends.cudnn.benchmark = fast
    torch.backends.cudnn.deterministic = False


class TorchTimer:
    """One baseline."""

    def __init__(self, folder: Path) -> None:
        job = json.loads((folder / "job.json").read_text())
        set_switches(job["precision"])
        self._folder, self._job = folder, job
        self._sets = [{name: self._read(*about) for name, about in contents.items()} for contents in job["sets"]]
        each = sum(t.numel() * t.element_size() for t in self._sets[0].values()) + job["output_bytes"]
        free, _ = torch.cuda.mem_get_info()
        l2 = torch.cuda.get_device_properties(0).L2_cache_size
        count = copies(each, len(self._sets), l2, free)
        self._copies = [
            {name: tensor.clone() for name, tensor in self._sets[number % len(self._sets)].items()}
            for number in range(count)
        ]
        self._results: list[tuple[torch.Tensor, ...] | None] = [None] * count
        self._call = self._made(job["how"])
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        self._graphs: dict[tuple[int, bool], torch.cuda.CUDAGraph] = {}
        with torch.no_grad():
            for _ in range(WARM_UP):
                for number in range(min(count, 2)):
                    self._results[number] = self._call(self._copies[number])
        torch.cuda.synchronize()

    @property
    def hello(self) -> dict[str, Any]:
        """What the parent hears first: the switches as they are now."""
        state = {name: value for name, value in snapshot().items() if name.startswith(_RECORDED)}
        return {"copies": len(self._copies), "device": torch.cuda.get_device_name(0), "state": state}

    def _read(self, file: str, dtype: str, shape: list[int]) -> torch.Tensor:
        data = bytearray(Path(file).read_bytes())
        kind = TORCH_DTYPES[dtype]
        flat = torch.frombuffer(data, dtype=kind) if data else torch.empty(0, dtype=kind)
        return flat.reshape(shape).cuda()

    def _made(self, how: str) -> Call:
        problem, axes = pose(self._job["problem"]).problem, self._job["axes"]

        def call(inputs: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
            return problem.reference(inputs, axes)

        if how == "compile":
            return torch.compile(call)
        if how == "max-autotune":
            # Its own graphs would copy each call's inputs; here all calls are recorded together (see `time`).
            return torch.compile(call, mode="max-autotune-no-cudagraphs")
        return call

    def _calls(self, count: int, rotating: bool) -> None:
        for number in range(count):
            copy = number % len(self._copies) if rotating else 0
            self._results[copy] = self._call(self._copies[copy])

    def _graph(self, calls: int, rotating: bool) -> torch.cuda.CUDAGraph:
        if (calls, rotating) not in self._graphs:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._calls(calls, rotating)
            self._graphs[calls, rotating] = graph
            graph.replay()
        return self._graphs[calls, rotating]

    @torch.no_grad()
    def elapsed(self, calls: int, rotating: bool) -> tuple[float, float]:
        """Seconds of so many calls in a row, by the device and by this process."""
        graph = self._graph(calls, rotating) if self._job["graphed"] else None
        torch.cuda.synchronize()
        begun = time.perf_counter()
        self._events[0].record()
        if graph is not None:
            graph.replay()
        else:
            self._calls(calls, rotating)
        self._events[1].record()
        torch.cuda.synchronize()
        return self._events[0].elapsed_time(self._events[1]) / 1e3, time.perf_counter() - begun

    def poison(self) -> None:
        """Overwrite the results of all copies."""
        for result in self._results:
            for tensor in result or ():
                tensor.view(torch.uint8).fill_(POISON) if tensor.is_contiguous() else tensor.fill_(float("nan"))
        torch.cuda.synchronize()

    def outputs(self, copy: int) -> list[str]:
        """Files with the bytes of a copy's outputs."""
        with torch.no_grad():
            found = self._results[copy]
            if found is None:
                found = self._call(self._copies[copy])
        names = []
        for at, (tensor, dtype) in enumerate(zip(found, self._job["output_dtypes"], strict=True)):
            name = f"output-{copy}-{at}.bin"
            flat = tensor.detach().to(TORCH_DTYPES[dtype]).contiguous().cpu().view(-1)
            (self._folder / name).write_bytes(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
            names.append(name)
        return names


def main() -> None:
    """As the module's docstring says."""
    try:
        timer = TorchTimer(Path(sys.argv[1]))
    except Exception as error:
        print(json.dumps({"error": " ".join(f"{type(error).__name__}: {error}".split())[:400]}), flush=True)
        return
    serve(timer)


if __name__ == "__main__":
    main()
