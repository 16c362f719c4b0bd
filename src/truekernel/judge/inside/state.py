"""Process-global state by name: what a candidate or an evaluation script can change for all that runs after it.

Standard library alone, and torch only where it is loaded already, so that the file works in any process. Values are short texts; two snapshots of a process in which nothing was changed are equal. They are
taken in a process that may lie, so they detect and do not protect.

Names are `group.name`; the groups: `numeric` (what changes results or speed of torch), `config` (of torch's compiler), `random`, `environment`, `callables` (what clocks, comparisons and
prints are), `interpreter`, `process`.
"""

from __future__ import annotations

import enum
import gc
import hashlib
import os
import random
import resource
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

LONGEST = 200
FP32 = (
    ("generic", "all"),
    ("cuda", "all"),
    ("cuda", "matmul"),
    ("cuda", "conv"),
    ("cuda", "rnn"),
    ("mkldnn", "all"),
    ("mkldnn", "matmul"),
    ("mkldnn", "conv"),
    ("mkldnn", "rnn"),
)
"""Backends and operators with a float32 precision of their own (torch 2.9 and later)."""
NO_SWITCHES = (
    "_get_all_",
    "_get_caught_",
    "_get_cpu_capability",
    "_get_custom_",
    "_get_dtensor_sharding",
    "_get_dtensor_",
    "_get_max_operator",
    "_get_operator_",
    "_get_privateuse1",
    "_get_thread_name",
    "_get_tracing",
    "_get_upgrader",
    "_get_version",
    "_is_ck_",
    "_is_default_mobile",
    "_is_flash_attention",
    "_is_tracing",
    "_is_xnnpack",
    "get_autocast_cpu",
    "get_autocast_gpu",
    "get_autocast_ipu",
    "get_autocast_xla",
    "is_autocast_cpu",
    "is_autocast_ipu",
    "is_autocast_xla",
    "is_grad_enabled",
    "is_inference_mode",
)
"""Beginnings of getters of `torch._C` that tell no switch, or need a warning to be read, or change with every `no_grad`."""
DEVICES = ("cpu", "cuda")
CONFIGS = ("torch._inductor.config", "torch._dynamo.config", "torch._functorch.config")
CALLABLES = (
    "time.time",
    "time.perf_counter",
    "time.perf_counter_ns",
    "time.monotonic",
    "time.process_time",
    "time.sleep",
    "builtins.print",
    "builtins.open",
    "builtins.len",
    "builtins.isinstance",
    "builtins.sum",
    "builtins.min",
    "builtins.max",
    "builtins.abs",
    "builtins.all",
    "builtins.any",
    "builtins.sorted",
    "builtins.exec",
    "json.dumps",
    "json.dump",
    "os.write",
    "os._exit",
    "statistics.mean",
    "statistics.median",
    "math.isclose",
    "torch.allclose",
    "torch.isclose",
    "torch.equal",
    "torch.empty",
    "torch.empty_like",
    "torch.rand",
    "torch.randn",
    "torch.manual_seed",
    "torch.testing.assert_close",
    "torch.Tensor.__eq__",
    "torch.Tensor.abs",
    "torch.Tensor.all",
    "torch.Tensor.allclose",
    "torch.Tensor.clone",
    "torch.Tensor.equal",
    "torch.Tensor.item",
    "torch.Tensor.max",
    "torch.Tensor.mean",
    "torch.Tensor.sub",
    "torch.nn.Module.__call__",
    "torch.nn.functional.linear",
    "torch.nn.functional.softmax",
    "torch.matmul",
    "torch.cuda.synchronize",
    "torch.cuda.current_stream",
    "torch.cuda.Event.record",
    "torch.cuda.Event.elapsed_time",
    "torch.cuda.Event.synchronize",
    "torch.cuda.Stream.wait_stream",
    "torch.utils.benchmark.Timer.timeit",
    "torch.utils.benchmark.Timer.blocked_autorange",
    "triton.testing.do_bench",
    "numpy.allclose",
    "numpy.testing.assert_allclose",
)
"""Names that clocks, checks and reports are made of, where their module is loaded."""


def snapshot() -> dict[str, str]:
    """All state, by name."""
    found: dict[str, str] = {}
    for group, read in GROUPS.items():
        found |= {f"{group}.{name}": value for name, value in read().items()}
    return found


def numeric() -> dict[str, str]:
    """Switches of torch that change results or speed; {} where torch is not loaded. About a millisecond."""
    torch = sys.modules.get("torch")
    core = getattr(torch, "_C", None)
    if torch is None or core is None or not hasattr(torch, "nn"):
        return {}
    found = {name: _read(getter) for name, getter in _getters(core)}
    if hasattr(core, "_get_fp32_precision_getter"):
        for backend, operator in FP32:
            found[f"fp32_precision.{backend}.{operator}"] = _read(core._get_fp32_precision_getter, backend, operator)
    for device in DEVICES:
        found[f"autocast.{device}"] = _read(torch.is_autocast_enabled, device)
        found[f"autocast.{device}.dtype"] = _read(torch.get_autocast_dtype, device)
    found["flush_denormal"] = _read(lambda: bool((torch.full((1,), 1e-40, dtype=torch.float32) * 1.0 == 0).item()))
    found["default_device"] = _read(lambda: str(torch.get_default_device()))
    return found


_GETTERS: list[tuple[str, Callable[[], Any]]] = []


def _getters(core: Any) -> list[tuple[str, Callable[[], Any]]]:
    """Getters of `torch._C` without arguments that tell a plain value, found once: a new version's switches are among them without a list of ours."""
    if not _GETTERS:
        for name in sorted(dir(core)):
            if not name.lstrip("_").startswith(("get_", "is_")) or name.lower().startswith(NO_SWITCHES):
                continue
            getter = getattr(core, name)
            if not callable(getter) or isinstance(getter, type):
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    value = getter()
            except Exception:
                continue
            if _plain(value):
                _GETTERS.append((name.lstrip("_").removeprefix("get_").removeprefix("is_"), getter))
    return _GETTERS


def _plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_plain(one) for one in value)
    name = type(value).__name__
    return (
        value is None
        or isinstance(value, bool | int | float | str | enum.Enum)
        or name in ("dtype", "device")
        or (type(value).__module__.startswith("torch") and hasattr(value, "name") and hasattr(value, "value"))
    )


def _read(getter: Callable[..., Any], *arguments: Any) -> str:
    """What a getter tells; an exception is an answer too: some switches can't be read once old and new interfaces were mixed."""
    try:
        return _text(getter(*arguments))
    except Exception as error:
        return _text(f"unreadable: {type(error).__name__}")


def _text(value: Any) -> str:
    return str(value)[:LONGEST]


def _config() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in CONFIGS:
        module: Any = sys.modules.get(name)
        if module is None or not hasattr(module, "shallow_copy_dict"):
            continue
        short = name.split(".")[1].lstrip("_")
        try:
            values = module.shallow_copy_dict()
        except Exception as error:
            values = {"all": f"unreadable: {type(error).__name__}"}
        found |= {f"{short}.{key}": _text(value) for key, value in values.items() if _plain(value)}
    return found


def _random() -> dict[str, str]:
    found = {"python": _hash(repr(random.getstate()).encode())}
    torch: Any = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "get_rng_state"):
        found["torch"] = _read(lambda: _hash(bytes(torch.get_rng_state().tolist())))
        found["torch seed"] = _read(torch.initial_seed)
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        found["numpy"] = _read(lambda: _hash(repr(numpy.random.get_state()).encode()))
    return found


def _environment() -> dict[str, str]:
    return {name: _text(value) for name, value in sorted(os.environ.items())}


def _callables() -> dict[str, str]:
    found = {}
    for name in CALLABLES:
        parts = name.split(".")
        for depth in range(len(parts) - 1, 0, -1):
            holder: Any = sys.modules.get(".".join(parts[:depth]))
            if holder is None:
                continue
            try:
                for part in parts[depth:]:
                    holder = getattr(holder, part)
            except AttributeError:
                break
            found[name] = described(holder)
            break
    return found


def described(function: Any) -> str:
    """What a callable is: its kind, where it is defined, and a hash of its code, so that other code under the same name shows."""
    kind = type(function).__name__
    where = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
    code = getattr(function, "__code__", None)
    if code is None:
        return f"{kind} {where}"
    parts = (code.co_code, repr(code.co_consts[:8]).encode(), repr(getattr(function, "__defaults__", None)).encode())
    return f"{kind} {where} {Path(code.co_filename).name}:{code.co_firstlineno} {_hash(parts[0] + parts[2])}"


def _interpreter() -> dict[str, str]:
    found = {
        "trace": _hook(sys.gettrace()),
        "profile": _hook(sys.getprofile()),
        "excepthook": described(sys.excepthook),
        "displayhook": described(sys.displayhook),
        "meta_path": _text([getattr(finder, "__name__", type(finder).__name__) for finder in sys.meta_path]),
        "path_hooks": _text(len(sys.path_hooks)),
        "recursion limit": _text(sys.getrecursionlimit()),
        "switch interval": _text(sys.getswitchinterval()),
        "collector": f"{gc.isenabled()} {gc.get_threshold()} {len(gc.callbacks)}",
        "python threads": _text(sorted(thread.name for thread in threading.enumerate())),
        "stdout": type(sys.stdout).__name__,
        "stderr": type(sys.stderr).__name__,
    }
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "geterr"):
        found["numpy errors"] = _read(numpy.geterr)
    for name in ("torch", "numpy", "time", "json", "math", "statistics", "random", "os"):
        module = sys.modules.get(name)
        if module is not None:
            found[f"module {name}"] = _text(getattr(module, "__file__", None) or "built in")
    return found


def _hook(value: Any) -> str:
    return "none" if value is None else described(value)


def _process() -> dict[str, str]:
    found = {
        "folder": _read(os.getcwd),
        "affinity": _read(lambda: sorted(os.sched_getaffinity(0))),
        "niceness": _read(lambda: os.getpriority(os.PRIO_PROCESS, 0)),
        "children": _read(_children),
        "umask": _umask(),
    }
    for number in (signal.SIGALRM, signal.SIGINT, signal.SIGTERM, signal.SIGPROF, signal.SIGUSR1, signal.SIGVTALRM):
        handler = signal.getsignal(number)
        found[f"handler {number.name}"] = described(handler) if callable(handler) else _text(handler)
    for name in ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF"):
        found[name.lower()] = "set" if signal.getitimer(getattr(signal, name))[0] else "none"
    for name in ("AS", "CPU", "DATA", "FSIZE", "NOFILE", "NPROC", "STACK"):
        found[f"limit {name}"] = _text(resource.getrlimit(getattr(resource, f"RLIMIT_{name}")))
    return found


def _children() -> int:
    return len(Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split())


def _umask() -> str:
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.split()[1] for line in lines if line.startswith("Umask:")), "")


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=6).hexdigest()


GROUPS: dict[str, Callable[[], dict[str, str]]] = {
    "numeric": numeric,
    "config": _config,
    "random": _random,
    "environment": _environment,
    "callables": _callables,
    "interpreter": _interpreter,
    "process": _process,
}
