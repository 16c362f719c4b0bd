"""Judging on the device: is it right, and how fast is it? Prints tables; writes one JSON document.

python benchmarks/h200/judging.py --json results/h200/judging.json        # about two minutes on one H200
python benchmarks/h200/judging.py --gigabytes 0.5 --quick                 # on a card with little memory

1. Statistics and digest of the device against those of the CPU: all dtypes, output kinds, adversarial values, several sizes.
2. Bits of inputs drawn on the device against the CPU's: all recipes and problems.
3. Bandwidth of a judge (bytes of output and references over time, median of ten) against a device copy (bytes read and written) and torch.allclose, with the memory that
   each takes beside its arguments. Styles: an output within a few units in the last place; one that is wrong everywhere.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import platform
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from truekernel.cases import make_inputs, recipes, shapes
from truekernel.corpus import problems
from truekernel.model import ITEM_BYTES, Case
from truekernel.numerics import RHO_LADDER, Expected
from truekernel.numerics import statistics as cpu_statistics
from truekernel.numerics.cuda_core import CudaCore
from truekernel.numerics.device import DeviceJudge, source
from truekernel.numerics.digest import digest
from truekernel.numerics.formats import TORCH_DTYPES, to_bytes
from truekernel.numerics.tensor_judging import device_output, judge_tensors

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "numerics"))
from device_examples import DTYPES, INCOMPARABLE, STYLES, TOLERANCES, example, index_example

REPEATS = 10


def on_device(want: Expected) -> Expected:
    tensors = {key: getattr(want, key) for key in ("published", "truth", "scale", "spread", "ties")}
    return dataclasses.replace(want, **{key: tensor.cuda() for key, tensor in tensors.items() if tensor is not None})


def differing(found: dict[str, float], wanted: dict[str, float], elements: int) -> list[str]:
    """Names of statistics that do not agree; sums may differ in their order."""
    within = 1e-9 * math.sqrt(max(elements, 1))
    close = {"rms": {"rel_tol": 1e-12}, "bias": {"rel_tol": 1e-9, "abs_tol": within}}
    names = [n for n, value in wanted.items() if n not in close and found.get(n) != value]
    return names + [n for n, how in close.items() if not math.isclose(found[n], wanted[n], **how)]


def check_statistics(judge: DeviceJudge, counts: tuple[int, ...]) -> dict[str, Any]:
    compared, wrong = 0, []
    examples = [
        (f"{dtype}/{style}/{count}/{spread}", *example(count + number, dtype, count, style, spread=spread))
        for dtype in DTYPES
        for number, style in enumerate(STYLES)
        for count in counts
        for spread in (True, False)
    ]
    examples += [(f"index/{dtype}", *index_example(3, 5000, 17, dtype)) for dtype in ("int64", "int32")]
    for name, output, want in examples:
        for tolerances in (TOLERANCES, INCOMPARABLE):
            for fill in ("poison", "stale"):
                wanted = cpu_statistics([output], [want], fill, tolerances)
                there, here = on_device(want), output.cuda()
                found, code = judge_tensors(judge, [here], [there], fill, tolerances)
                again = judge_tensors(judge, [here], [there], fill, tolerances)
                published, _ = judge.statistics([device_output(here, there, full=False)], fill, tolerances)
                bad = differing(found, wanted, want.elements)
                bad += ["digest"] if code != digest([output]) else []
                bad += ["another run"] if again != (found, code) else []
                bad += ["published alone"] if any(found[n] != value for n, value in published.items()) else []
                compared += 1
                if bad:
                    wrong.append({"case": f"{name}/{fill}", "statistics": bad})
    return {"compared": compared, "wrong": wrong}


def check_inputs(forms: list[str]) -> dict[str, Any]:
    tensors, wrong = 0, []
    for name, problem in problems().items():
        legal = shapes(problem)
        for number, form in enumerate(forms):
            case = Case.of(name, legal[number % len(legal)], form, number)
            here, there = make_inputs(problem, case), make_inputs(problem, case, "cuda")
            for key, tensor in here.items():
                tensors += 1
                if to_bytes(tensor) != to_bytes(there[key].cpu()):
                    wrong.append(f"{name}/{key}/{form}")
    return {"problems": len(problems()), "tensors": tensors, "wrong": wrong}


def timed(function: Callable[[], object]) -> float:
    """Median seconds by device events, after two calls that do not count."""
    seconds = []
    for repeat in range(REPEATS + 2):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        function()
        end.record()
        end.synchronize()
        if repeat >= 2:
            seconds.append(start.elapsed_time(end) / 1e3)
    return statistics.median(seconds)


def extra_memory(function: Callable[[], object]) -> int:
    """Bytes of device memory that a call takes at its peak, torch's and all other."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    held, free = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]
    function()
    torch.cuda.synchronize()
    # What torch took has been seen by its own counter; what others took, by the driver's.
    torchs = torch.cuda.max_memory_allocated() - held
    torch.cuda.empty_cache()
    return torchs + max(0, free - torch.cuda.mem_get_info()[0])


def large(dtype: str, count: int, style: str) -> tuple[torch.Tensor, torch.Tensor]:
    """An output and its published value on the device, made in pieces."""
    published = torch.empty(count, dtype=TORCH_DTYPES[dtype], device="cuda")
    output = torch.empty_like(published)
    generator = torch.Generator("cuda").manual_seed(1)
    for start in range(0, count, 1 << 26):
        part = published[start : start + (1 << 26)]
        part.copy_(torch.randn(part.numel(), generator=generator, device="cuda"))
        noise = torch.randint(-2, 3, (part.numel(),), generator=generator, device="cuda")
        step = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
        wide = part.float()
        output[start : start + (1 << 26)].copy_(wide * (1 + noise * step) if style == "close" else wide * 1.5 + 0.25)
    return output, published


def rate(nbytes: float, seconds: float) -> float:
    return nbytes / seconds / 1e12


def measure(judge: DeviceJudge, gigabytes: list[float], formats: list[str]) -> list[dict[str, Any]]:
    rows = []
    for dtype in formats:
        for size in gigabytes if dtype == "float32" else gigabytes[1:2] or gigabytes:
            count = int(size * 1e9) // ITEM_BYTES[dtype] // 16 * 16
            for style in ("close", "wrong"):
                rows.append(measure_one(judge, dtype, count, style))
                print_row(rows[-1])
    return rows


def measure_one(judge: DeviceJudge, dtype: str, count: int, style: str) -> dict[str, Any]:
    output, published = large(dtype, count, style)
    nbytes = output.numel() * output.element_size()
    copy_rate = rate(2 * nbytes, timed(partial(torch.empty_like(output).copy_, output)))
    nothing = torch.empty(0, dtype=torch.float64, device="cuda")
    want = Expected("y", dtype, "value", published, nothing, nothing)
    alone = [device_output(output, want, full=False)]
    row: dict[str, Any] = {"dtype": dtype, "style": style, "gigabytes": nbytes / 1e9, "copy_tb_s": copy_rate}
    row["published_extra_bytes"] = extra_memory(lambda: judge.values(alone, "poison", TOLERANCES, RHO_LADDER))
    seconds = timed(lambda: judge.values(alone, "poison", TOLERANCES, RHO_LADDER))
    row |= {"published_ms": seconds * 1e3, "published_share": rate(2 * nbytes, seconds) / copy_rate}
    row |= {"allclose_ms": timed(lambda: torch.allclose(published, output, atol=1e-4, rtol=1e-4)) * 1e3}
    row["allclose_extra_bytes"] = extra_memory(lambda: torch.allclose(published, output, atol=1e-4, rtol=1e-4))
    row["allclose_share"] = rate(2 * nbytes, row["allclose_ms"] / 1e3) / copy_rate
    ranges = [(output.data_ptr(), nbytes)]
    row["digest_share"] = rate(nbytes, timed(lambda: judge.digest(ranges))) / copy_rate
    if torch.cuda.mem_get_info()[0] > 4 * 8 * count:
        truth = published.double()
        scale = torch.rand(count, dtype=torch.float64, device="cuda").mul_(1e-7).add_(1e-9)
        for name, spread in (("full", None), ("full_spread", scale)):
            full = dataclasses.replace(want, truth=truth, scale=scale, spread=spread)
            part = [device_output(output, full)]
            seconds = timed(lambda part=part: judge.values(part, "poison", TOLERANCES, RHO_LADDER))
            moved = 2 * nbytes + 8 * count * (3 if spread is not None else 2)
            row |= {f"{name}_ms": seconds * 1e3, f"{name}_share": rate(moved, seconds) / copy_rate}
    return row


def print_row(row: dict[str, Any]) -> None:
    shares = " ".join(
        f"{name} {100 * row[name + '_share']:5.1f}%"
        for name in ("published", "full", "full_spread", "digest", "allclose")
        if name + "_share" in row
    )
    print(
        f"{row['dtype']:9} {row['style']:6} {row['gigabytes']:5.2f} GB  copy {row['copy_tb_s']:.2f} TB/s  {shares}  published "
        f"{row['published_ms']:.2f} ms +{row['published_extra_bytes'] / 1e9:.2f} GB, allclose {row['allclose_ms']:.1f} ms +{row['allclose_extra_bytes'] / 1e9:.1f} GB",
        flush=True,
    )


def measure_inputs(gigabytes: float) -> dict[str, float]:
    """Seconds to draw one tensor of each of some recipes, in float32."""
    rows = max(1, int(gigabytes * 1e9) // 4 // 393216)
    found = {}
    for form in ("uniform", "normal", "heavy"):
        case = Case.of("softmax", {"rows": rows, "features": 393216}, form, 1)
        make_inputs(problems()["softmax"], case, "cuda")
        torch.cuda.synchronize()
        start = time.perf_counter()
        make_inputs(problems()["softmax"], case, "cuda")
        torch.cuda.synchronize()
        found[form] = time.perf_counter() - start
    return found


def small_judgement(judge: DeviceJudge) -> float:
    """Seconds of one judgement of a small output, from Python to Python."""
    output, want = example(1, "float32", 4096, "close")
    here, there = output.cuda(), on_device(want)
    judge_tensors(judge, [here], [there], "poison", TOLERANCES)
    start = time.perf_counter()
    for _ in range(1000):
        judge_tensors(judge, [here], [there], "poison", TOLERANCES)
    return (time.perf_counter() - start) / 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, nargs="+", default=[1.0, 2.0, 6.4])
    parser.add_argument("--formats", nargs="+", default=["float32", "float16", "bfloat16"])
    parser.add_argument("--quick", action="store_true", help="fewer comparisons")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA device", file=sys.stderr)
        return 2
    judge = DeviceJudge(CudaCore(source))
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "command": " ".join(sys.argv),
    }

    def save() -> None:
        if options.json:
            options.json.parent.mkdir(parents=True, exist_ok=True)
            options.json.write_text(json.dumps(report, indent=1) + "\n")

    clock = time.perf_counter()
    report["speed"] = measure(judge, options.gigabytes, options.formats)
    report["inputs_seconds"] = measure_inputs(max(options.gigabytes))
    report["small_judgement_seconds"] = small_judgement(judge)
    print(f"inputs of {max(options.gigabytes)} GB: {report['inputs_seconds']}", flush=True)
    print(
        f"one small judgement: {1e6 * report['small_judgement_seconds']:.0f} us, measured in {time.perf_counter() - clock:.0f} s"
    )
    save()
    clock = time.perf_counter()
    counts = (1, 5000) if options.quick else (1, 17, 5000, 100_003)
    report["statistics"] = check_statistics(judge, counts)
    print(
        f"statistics: {report['statistics']['compared']} compared, wrong: {report['statistics']['wrong'][:5]}",
        flush=True,
    )
    save()
    forms = [*recipes(), "official", "official*3+1", "normal*300&parameters", "normal*-0.003", "special+2"]
    report["inputs"] = check_inputs(forms[::4] if options.quick else forms)
    print(f"inputs: {report['inputs']['tensors']} tensors compared, wrong: {report['inputs']['wrong'][:5]}")
    print(f"checked in {time.perf_counter() - clock:.0f} s")
    save()
    return 1 if report["statistics"]["wrong"] or report["inputs"]["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
