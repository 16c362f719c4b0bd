"""Does our `kernelbench` checker say what KernelBench's own evaluation says, and how much faster?

    python benchmarks/h200/kernelbench_equality.py --kernelbench PATH [--out results/h200/kernelbench_equality.json] [--mutants 40] [--honest 14] [--timed 10] [--workers 8]

1. Exports mutants and honest programs as KernelBench candidates and asks the original `eval_kernel_against_ref` (correctness only, five trials) and our judge of the same era, on the
   original's own inputs, weights, order and reference. Prints where they differ. Problems whose official size takes the original many seconds for its inputs have shorter batch axes, on both sides.
2. Times both, one after the other and alone, from source to verdict at official sizes: the original with its inputs from the CPU; ours with inputs drawn on the device.

PATH is your own checkout of KernelBench (nothing of it is kept here). Packages that its module imports for other purposes (language models, environment files) and that are not
installed are replaced by empty ones. Exit code 1 when verdicts differ without one of the known reasons.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import selectors
import subprocess
import sys
import time
import traceback
import types
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kernelbench_jobs import equality_jobs, export

ERA = "kernelbench@1e-4"
TRIALS = 5
JOB_SECONDS = 120.0
TIMED = (
    "matmul_tiled",
    "matmul_half_wmma",
    "linear_gelu_pipelined",
    "conv2d_implicit_gemm",
    "conv_transpose1d_gather",
    "depthwise_conv2d_halo",
    "batched_matmul_strips",
    "matmul_split_k",
)
TIMED_SCALED = ("softmax_online", "sum_dim", "gelu", "argmin_dim")
"""Official sizes of these take the original a minute each, for inputs from the CPU."""
STUBS = ("dotenv", "openai", "litellm", "tqdm", "requests")
KNOWN = {
    "integer inputs": "the original casts every input to floating point, so that its own reference raises",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kernelbench", required=True, type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--mutants", type=int, default=40)
    parser.add_argument("--honest", type=int, default=14)
    parser.add_argument("--timed", type=int, default=10)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return serve(options.kernelbench)
    from truekernel.trial.bindings import bound_only

    start = time.monotonic()
    found = bound_only(options.kernelbench)
    print(
        f"{len(found.bound)} problems bound in {time.monotonic() - start:.1f} s, not bound: {found.failed}", flush=True
    )
    jobs = list(equality_jobs(found, options.mutants, options.honest))
    print(f"{len(jobs)} candidates exported in {time.monotonic() - start:.1f} s", flush=True)
    with ThreadPoolExecutor(options.workers) as pool:
        pairs = list(pool.map(both, [options.kernelbench] * len(jobs), jobs))
    rows = [row(job, *pair) for job, pair in zip(jobs, pairs, strict=True)]
    print(f"asked both in {time.monotonic() - start:.1f} s", flush=True)
    timed = side_by_side(options.kernelbench, found, options.timed) if options.timed else []
    close_workers()
    document = {"machine": machine(), "era": ERA, "equality": rows, "timed": timed}
    show(rows, timed)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(document, indent=1) + "\n")
    return 1 if any(not r["equal"] and not r["explained"] for r in rows) else 0


# --- worker processes: both sides run candidates there, since a candidate may end its process ------------------------------------------------------------

_FREE: list[subprocess.Popen[str]] = []


def ask(checkout: Path, side: str, job: dict[str, Any]) -> dict[str, Any]:
    """One side's answer; a worker that dies or hangs is the candidate's doing."""
    worker = _FREE.pop() if _FREE else start_worker(checkout)
    assert worker.stdin is not None and worker.stdout is not None
    began = time.monotonic()
    try:
        worker.stdin.write(json.dumps({"side": side, **job}) + "\n")
        worker.stdin.flush()
        line = read_line(worker, JOB_SECONDS)
    except (BrokenPipeError, TimeoutError) as error:
        line = ""
        why = "no end" if isinstance(error, TimeoutError) else "process died"
    else:
        why = "process died"
    if not line:
        worker.kill()
        worker.wait()
        return {"accept": False, "why": why, "seconds": time.monotonic() - began}
    answer: dict[str, Any] = json.loads(line)
    if "failed" in answer:
        raise SystemExit(f"our side failed on {job['title']}:\n{answer['failed']}")
    if answer.pop("spoiled", False):
        worker.kill()
        worker.wait()
    else:
        _FREE.append(worker)
    return answer


def start_worker(checkout: Path) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--worker", "--kernelbench", str(checkout)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def read_line(worker: subprocess.Popen[str], seconds: float) -> str:
    assert worker.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(worker.stdout, selectors.EVENT_READ)
        if not selector.select(seconds):
            raise TimeoutError
    return worker.stdout.readline()


def close_workers() -> None:
    while _FREE:
        worker = _FREE.pop()
        worker.kill()
        worker.wait()


def both(checkout: Path, job: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return ask(checkout, "theirs", job), ask(checkout, "ours", job)


def serve(checkout: Path) -> int:
    """Answer jobs on standard input until it ends."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import torch

    evaluate = original(checkout)
    torch.empty(1, device="cuda")
    sides: dict[str, Callable[..., dict[str, Any]]] = {
        "theirs": lambda job: theirs(evaluate, job),
        "ours": ours,
        "fast": fast,
    }
    for line in sys.stdin:
        job = json.loads(line)
        began = time.monotonic()
        try:
            answer = sides[job["side"]](job)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"[:300]
            answer = {"accept": False, "why": why} if job["side"] == "theirs" else {"failed": traceback.format_exc()}
        answer.setdefault("seconds", time.monotonic() - began)
        try:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        except RuntimeError:
            answer["spoiled"] = True
        print(json.dumps(answer), file=out, flush=True)
    return 0


# --- the original's side ---------------------------------------------------------------------------------------------------------------------------------


class Stub(types.ModuleType):
    """Has every public name, and each is a function that does nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_args, **_kwargs: None


def original(checkout: Path) -> Any:
    """`eval_kernel_against_ref` of the checkout."""
    for name in STUBS:
        try:
            importlib.import_module(name)
        except ImportError:
            sys.modules[name] = Stub(name)
    sys.path.insert(0, str(checkout.resolve() / "src"))
    return importlib.import_module("kernelbench.eval").eval_kernel_against_ref


def theirs(evaluate: Any, job: dict[str, Any]) -> dict[str, Any]:
    import torch

    precision = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[job["precision"]]
    result = evaluate(
        job["reference"],
        job["candidate"],
        num_correct_trials=TRIALS,
        measure_performance=False,
        backend="cuda",
        precision=precision,
        device=torch.device("cuda:0"),
    )
    if result is None:
        return {"accept": False, "why": "no result"}
    keys = ("compilation_error", "runtime_error", "correctness_issue", "max_difference")
    why = "; ".join(f"{k}: {' '.join(str(result.metadata[k]).split())[:150]}" for k in keys if k in result.metadata)
    return {"accept": bool(result.correctness), "why": why}


# --- our side --------------------------------------------------------------------------------------------------------------------------------------------


def parts(job: dict[str, Any]) -> tuple[Any, Any]:
    """The problem bound to its file (kept between jobs), and the candidate's launcher."""
    names: dict[str, Any] = {}
    problem = bound(job)
    try:
        exec(compile(job["candidate"], "candidate.py", "exec"), names)
    except RuntimeError as error:
        return problem, Broken(str(error))
    return problem, names["_tk_run"]


class Broken:
    """The launcher of a candidate that does not compile."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __call__(self, _given: Any) -> Any:
        raise RuntimeError(self.why)


_BOUND: dict[str, Any] = {}


def bound(job: dict[str, Any]) -> Any:
    """The bound problem of a job, made from the description that the parent read."""
    if job["problem"] not in _BOUND:
        from truekernel import corpus
        from truekernel.corpus.kernelbench.adapting import adapt
        from truekernel.corpus.kernelbench.binding import bind
        from truekernel.corpus.kernelbench.checkout import ProblemFile
        from truekernel.corpus.kernelbench.description import Description

        file = ProblemFile(*job["number"], Path(job["file"]))
        adapted = adapt(file, Description.model_validate_json(job["found"]))
        _BOUND[job["problem"]] = bind(corpus.problems()[job["problem"]], adapted)
    return _BOUND[job["problem"]]


def ours(job: dict[str, Any]) -> dict[str, Any]:
    """Our judge on the original's inputs: its seeds, its order, its reference, its comparison."""
    import torch

    problem, run = parts(job)
    names: dict[str, Any] = {}
    exec(compile(job["reference"], job["file"], "exec"), names)
    precision = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[job["precision"]]
    torch.manual_seed(42)
    init = names["get_init_inputs"]()
    torch.manual_seed(42)
    weights = [w.detach() for w in names["Model"](*init).parameters()]
    torch.manual_seed(42)
    seeds = [int(torch.randint(0, 2**32 - 1, (1,)).item()) for _ in range(TRIALS)]
    for seed in seeds:
        torch.manual_seed(seed)
        given = [x for x in names["get_inputs"]() if isinstance(x, torch.Tensor)]
        tensors = dict(zip((spec.name for spec in problem.tensors), [*given, *weights], strict=True))
        judgement = judged(
            job, problem, run, {n: fitted(problem, n, t, precision, job["axes"]) for n, t in tensors.items()}
        )
        if judgement.verdict != "accept":
            return {"accept": False, "why": judgement.why}
    return {"accept": True, "why": ""}


def fitted(problem: Any, name: str, tensor: Any, precision: Any, axes: dict[str, int]) -> Any:
    """A tensor of the file as ours: its shape, integers as integers."""
    import torch

    from truekernel.model.lengths import lengths

    spec = next(s for s in problem.tensors if s.name == name)
    tensor = tensor.to(precision) if tensor.is_floating_point() else tensor.to(getattr(torch, spec.dtype))
    return tensor.cuda().reshape(lengths(spec.shape, axes)).contiguous()


def fast(job: dict[str, Any]) -> dict[str, Any]:
    """Ours from source to verdict: compile, five cases drawn on the device, the file's own reference there, one pass over each output."""
    from truekernel.cases import make_inputs
    from truekernel.checkers import checkers
    from truekernel.model import Case

    bound(job)  # read once for all candidates of a problem
    judge_of_device()
    began = time.monotonic()
    problem, run = parts(job)
    checker = checkers()[ERA]
    for official in checker.suite(problem):
        case = Case.of(problem.name, job["axes"], official.recipe, official.seed)
        judgement = judged(job, problem, run, make_inputs(problem, case, device="cuda"))
        if judgement.verdict != "accept":
            return {"accept": False, "why": judgement.why, "seconds": time.monotonic() - began}
    return {"accept": True, "why": "", "seconds": time.monotonic() - began}


def judged(job: dict[str, Any], problem: Any, run: Any, inputs: dict[str, Any]) -> Any:
    """One trial: reference first, then the candidate on the same inputs, then our judge on statistics of one pass."""
    import torch

    from truekernel.checkers import checkers
    from truekernel.model import Case, Configuration, Execution, Outcome
    from truekernel.numerics import Expected
    from truekernel.numerics.tensor_judging import device_output

    checker = checkers()[ERA]
    with torch.no_grad():
        published = problem.reference(inputs, job["axes"])
        torch.cuda.synchronize()
        case = Case.of(problem.name, job["axes"], "official", 0)
        published_way = Configuration("gpu", fill="stale")
        try:
            outputs = run([inputs[spec.name] for spec in problem.tensors])
            torch.cuda.synchronize()
        except RuntimeError as error:
            crash = Outcome("crash", message=" ".join(str(error).split())[:200])
            return checker.judge(case, [Execution(case.id, published_way, crash)])
    wanted = [
        Expected(s.name, s.dtype, s.kind, p.to(getattr(torch, s.dtype)).contiguous(), p, p)
        for s, p in zip(problem.outputs, published, strict=True)
    ]
    if [o.shape for o in outputs] != [w.published.shape for w in wanted]:
        statistics: dict[str, float] = {}
    else:
        addresses = [device_output(o, w, full=False) for o, w in zip(outputs, wanted, strict=True)]
        statistics, _ = judge_of_device().statistics(addresses, "stale", checker.tolerances)
    return checker.judge(case, [Execution(case.id, published_way, Outcome("ok"), statistics)])


_JUDGE: list[Any] = []


def judge_of_device() -> Any:
    if not _JUDGE:
        from truekernel.numerics.cuda_core import CudaCore
        from truekernel.numerics.device import DeviceJudge, source

        _JUDGE.append(DeviceJudge(CudaCore(source)))
    return _JUDGE[0]


# --- results ---------------------------------------------------------------------------------------------------------------------------------------------


def side_by_side(checkout: Path, found: Any, count: int) -> list[dict[str, Any]]:
    """Both sides alone on the machine, one candidate after another."""
    from truekernel import corpus
    from truekernel.export import Subject

    rows = []
    names = [(n, False) for n in TIMED] + [(n, True) for n in TIMED_SCALED]
    for name, scaled in names[:count]:
        program = corpus.programs()[name]
        job = export(found, Subject.of(program), "honest", scaled=scaled)
        assert job is not None
        ask(checkout, "fast", job)  # the problem's file is read, PyTorch's kernels are loaded
        one, other = ask(checkout, "theirs", job), ask(checkout, "fast", job)
        rows.append(
            {
                "program": name,
                "problem": job["level"],
                "scaled": job["scaled"],
                "axes": job["axes"],
                "theirs_s": round(one["seconds"], 3),
                "ours_s": round(other["seconds"], 4),
                "ratio": round(one["seconds"] / other["seconds"], 1),
                "theirs": one["accept"],
                "ours": other["accept"],
                "why": one["why"] or other["why"],
            }
        )
        print(rows[-1], flush=True)
    return rows


def row(job: dict[str, Any], one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    equal = one["accept"] == other["accept"]
    explained = KNOWN["integer inputs"] if not equal and job["integers"] else ""
    return {
        "id": job["id"],
        "title": job["title"],
        "kind": job["kind"],
        "problem": job["level"],
        "scaled": job["scaled"],
        "theirs": one["accept"],
        "ours": other["accept"],
        "equal": equal,
        "explained": explained,
        "why_theirs": one["why"],
        "why_ours": other["why"],
        "seconds_theirs": round(one["seconds"], 2),
        "seconds_ours": round(other["seconds"], 2),
    }


def show(rows: list[dict[str, Any]], timed: list[dict[str, Any]]) -> None:
    equal = sum(r["equal"] for r in rows)
    mutants = [r for r in rows if r["kind"] != "honest"]
    print(
        f"\n{equal} of {len(rows)} verdicts equal ({len(mutants)} mutants, of which the original accepts {sum(r['theirs'] for r in mutants)})"
    )
    for r in rows:
        if not r["equal"]:
            print(
                f"  {r['problem']} {r['title']}: theirs {r['theirs']} ({r['why_theirs'][:120]}), ours {r['ours']} ({r['why_ours'][:120]}): {r['explained'] or 'NOT EXPLAINED'}"
            )
    for r in timed:
        size = "scaled" if r["scaled"] else "official"
        print(
            f"  {r['problem']:>10} {size:>8}: theirs {r['theirs_s']:8.2f} s, ours {r['ours_s']:7.3f} s, {r['ratio']:.0f} times"
        )


def machine() -> dict[str, str]:
    import torch

    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return {"gpu": name, "torch": torch.__version__, "python": platform.python_version(), "cores": str(os.cpu_count())}


if __name__ == "__main__":
    sys.exit(main())
