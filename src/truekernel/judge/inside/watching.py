"""Watches a Python program and its Python children from inside: which switches it writes and where, what it times and calls, in which state.

Imported as `sitecustomize`, before the program. Each process appends events, one JSON object a line, to a file of its own under `TRUEKERNEL_WATCH`. With `TRUEKERNEL_HOLD`, a JSON list of
writes `[name, arguments]`, these are made when torch is loaded, and every later one is ignored: all that runs then runs in one state.

Event kinds (`event`): start, child, exec, environment, switch, drift (a switch changed and no setter was seen), subject (a module called from outside of any other, when another one was called
before, and the state in which), calls (how often and how long each subject was called), clock, state.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = "TRUEKERNEL_WATCH"
HOLD = "TRUEKERNEL_HOLD"
ITSELF = __file__
MOST_CALLS = 20_000
"""Times of calls that are kept for each subject."""
MOST_CLOCKS = 2_000
"""Readings of a clock at one place that are counted."""
MOST_WRITES = 50
"""Equal writes at one place that are told; further ones are made without a look at the state, which takes a tenth of a millisecond."""
SETTERS = (
    "_set_fp32_precision_setter",
    "_set_float32_matmul_precision",
    "_set_sdp_",
    "_set_math_sdp_",
    "_set_cublas_",
    "_set_cublaslt_",
    "_set_cudnn_",
    "_cuda_set_cudnn_",
    "_set_mkldnn_",
    "_set_onednn_",
    "_set_nnpack_",
    "_set_deterministic_",
    "_set_default_dtype",
    "_set_linalg_",
    "_set_blas_",
    "_set_sm_carveout",
    "_set_cpu_allow_",
    "_set_miopen_",
    "set_num_threads",
    "set_num_interop_threads",
    "set_flush_denormal",
)
"""Beginnings of the functions of `torch._C` that write switches."""
CLOCKS = ("time", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time", "time_ns")


def _load(name: str) -> Any:
    path = Path(ITSELF).parent / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"_truekernel_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Watcher:
    """What one process tells."""

    def __init__(self, folder: str) -> None:
        self.state = _load("state")
        self._folder = folder
        self._file: Any = None
        self._pid = 0
        self._ours = tuple(
            os.path.realpath(path) + os.sep
            for path in {*sysconfig.get_paths().values(), str(Path(ITSELF).parent), str(Path(json.__file__).parents[1])}
        )
        self._inside = False
        self._held = json.loads(os.environ[HOLD]) if os.environ.get(HOLD) else None
        self._last: dict[str, str] = {}
        self._subject: tuple[str, str] | None = None
        self._depth = self._number = 0
        self._calls: dict[tuple[str, str], list[int]] = {}
        self._writes: dict[tuple[str, str, str], int] = {}
        self._unseen = False
        self._clocks: dict[tuple[str, str], int] = {}
        self._clock = time.perf_counter_ns

    # ---------------------------------------------------------------- events

    def tell(self, event: str, **fields: Any) -> None:
        """Append an event; after a fork, to a file of the new process."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            path = Path(self._folder, f"{self._pid}-{time.time_ns()}.jsonl")
            self._file = path.open("a", encoding="utf-8", buffering=1)
        self._file.write(json.dumps({"event": event, **fields}) + "\n")

    def where(self) -> str:
        """File and line of the innermost frame that belongs to the program."""
        frame = sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            if not name.startswith("<frozen") and name != ITSELF and not self._library(name):
                return f"{name}:{frame.f_lineno}"
            frame = frame.f_back  # type: ignore[assignment]
        return ""

    def _caller(self, depth: int) -> str:
        """File and line of one frame; "" where the stack is not so deep."""
        try:
            frame = sys._getframe(depth)
        except ValueError:
            return ""
        return f"{frame.f_code.co_filename}:{frame.f_lineno}"

    def _beyond_os(self) -> str:
        """File and line of the first frame that is not of `os`: who wrote to the environment."""
        frame: Any = sys._getframe(2)
        while frame is not None and frame.f_globals.get("__name__") in ("os", "_collections_abc"):
            frame = frame.f_back
        return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"

    def _library(self, name: str) -> bool:
        return os.path.realpath(name).startswith(self._ours) if not name.startswith("<") else False

    # ---------------------------------------------------------------- start

    def start(self) -> None:
        """Hook in."""
        import atexit

        self.tell(
            "start", pid=os.getpid(), parent=os.getppid(), argv=getattr(sys, "orig_argv", sys.argv), time=time.time()
        )
        sys.addaudithook(self._audited)
        for name in CLOCKS:
            setattr(time, name, self._clocked(name, getattr(time, name)))
        sys.meta_path.insert(0, _AfterTorch(self))
        atexit.register(self.end)

    def end(self) -> None:
        """The last events."""
        if self._inside:
            return
        self._inside = True
        self._told_calls()
        for (name, where), count in self._clocks.items():
            self.tell("clock", name=name, where=where, count=count)
        if self._last:
            self.tell("state", when="end", state=self.state.snapshot())

    def _audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("os.putenv", "os.unsetenv", "subprocess.Popen", "os.fork", "os.posix_spawn", "exec"):
            return
        if self._inside:
            return
        self._inside = True
        try:
            where = self.where()
            if event == "exec":
                if where and where == self._caller(2):
                    self.tell("exec", where=where)
            elif event in ("os.putenv", "os.unsetenv"):
                if where and where == self._beyond_os():
                    value = _words(arguments[1]) if len(arguments) > 1 else ""
                    self.tell("environment", name=_words(arguments[0]), value=value, where=where)
            else:
                argv = [_words(word) for word in (arguments[1] if len(arguments) > 1 and arguments[1] else ())]
                self.tell("child", how=event, argv=argv[:20], where=where)
        finally:
            self._inside = False

    def _clocked(self, name: str, clock: Callable[[], Any]) -> Callable[[], Any]:
        counts, library = self._clocks, self._library
        seen: dict[str, bool] = {}

        def read() -> Any:
            caller = sys._getframe(1)
            file = caller.f_code.co_filename
            if file not in seen:
                seen[file] = not file.startswith("<") and not library(file)
            if seen[file]:
                place = (name, f"{file}:{caller.f_lineno}")
                count = counts.get(place, 0)
                if count < MOST_CLOCKS:
                    counts[place] = count + 1
            return clock()

        read.__name__ = read.__qualname__ = name
        read.__module__ = "time"
        return read

    # ---------------------------------------------------------------- torch

    def torch_loaded(self, torch: Any) -> None:
        """Wrap the setters and the call of modules; from here on the state is known."""
        core = torch._C
        for name in dir(core):
            if name.startswith(SETTERS) and callable(getattr(core, name)):
                original = getattr(core, name)
                wrapped = self._writing(name, original)
                setattr(core, name, wrapped)
                if getattr(torch, name, None) is original:
                    setattr(torch, name, wrapped)
        from torch.backends import ContextProp

        ContextProp.__set__ = self._writing("property", ContextProp.__set__)  # type: ignore[method-assign]
        if self._held is not None:
            held, self._held = self._held, None
            for name, arguments in held:
                try:
                    (ContextProp.__set__ if name == "property" else getattr(core, name))(*self._objects(arguments))
                except Exception as error:
                    self.tell("unheld", name=name, why=f"{type(error).__name__}: {error}"[:200])
            self._held = []
        torch.nn.Module.__call__ = self._called(torch.nn.Module.__call__)
        self._last = self.state.numeric()
        self.tell("state", when="torch loaded", state=self.state.snapshot())

    def _writing(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def write(*arguments: Any) -> Any:
            if self._inside:
                return original(*arguments)
            if self._held is not None and self._last:
                return None
            where, told = self.where(), self._data(name, arguments)
            place = (name, str(told), where)
            self._writes[place] = self._writes.get(place, 0) + 1
            if self._writes[place] > MOST_WRITES:
                self._unseen = True
                return original(*arguments)
            self._inside = True
            try:
                before = self.state.numeric()
                result = original(*arguments)
                after = self.state.numeric()
                changed = {
                    key: [before.get(key, ""), after.get(key, "")] for key in after if before.get(key) != after[key]
                }
                self._last = after
                if self._held is None:
                    subject = self._subject[0] if self._depth and self._subject else ""
                    self.tell(
                        "switch",
                        name=name,
                        arguments=told,
                        changed=changed,
                        where=where,
                        subject=subject,
                        call=self._number,
                    )
                return result
            finally:
                self._inside = False

        return write

    def _data(self, name: str, arguments: tuple[Any, ...]) -> list[Any] | None:
        """Arguments of a setter as JSON; a property is known by module and attribute. None where they can't be told."""
        found: list[Any] = []
        for place, value in enumerate(arguments):
            if value is None or isinstance(value, bool | int | float | str):
                found.append(value)
            elif isinstance(value, list | tuple) and all(isinstance(one, bool | int | str) for one in value):
                found.append(list(value))
            elif name == "property" and place == 0:
                holder = arguments[1]
                attribute = next((k for k, v in vars(type(holder)).items() if v is value), None)
                found.append({"property": [holder.__name__, attribute]})
            elif name == "property" and place == 1:
                found.append({"module": value.__name__})
            elif type(value).__name__ == "dtype":
                found.append({"dtype": str(value).removeprefix("torch.")})
            else:
                return None
        return found

    def _objects(self, arguments: list[Any]) -> list[Any]:
        found: list[Any] = []
        for value in arguments:
            if isinstance(value, dict) and "property" in value:
                module, attribute = value["property"]
                found.append(vars(type(sys.modules[module]))[attribute])
            elif isinstance(value, dict) and "module" in value:
                found.append(sys.modules[value["module"]])
            elif isinstance(value, dict) and "dtype" in value:
                found.append(getattr(sys.modules["torch"], value["dtype"]))
            else:
                found.append(value)
        return found

    def _called(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(module: Any, *arguments: Any, **more: Any) -> Any:
            if self._depth or self._inside:
                return original(module, *arguments, **more)
            inner, suffix = module, ""
            if type(module).__name__ == "OptimizedModule":
                inner, suffix = module._orig_mod, " compiled"
            kind = type(inner)
            subject = (kind.__qualname__ + suffix, kind.__module__)
            if subject != self._subject:
                self._changed(subject, inner)
            self._depth += 1
            self._number += 1
            begun = self._clock()
            try:
                return original(module, *arguments, **more)
            finally:
                taken = self._clock() - begun
                self._depth -= 1
                times = self._calls.setdefault(subject, [])
                if len(times) < MOST_CALLS:
                    times.append(taken)

        return call

    def _changed(self, subject: tuple[str, str], module: Any) -> None:
        self._inside = True
        try:
            self._told_calls()
            self._subject = subject
            state = self.state.numeric()
            drift = {k: [self._last.get(k, ""), v] for k, v in state.items() if self._last.get(k) != v}
            if drift and not self._unseen:
                self.tell("drift", changed=drift, where=self.where())
            self._last, self._unseen = state, False
            code = getattr(type(module).forward, "__code__", None)
            file = code.co_filename if code is not None else ""
            told = {"file": file, "line": code.co_firstlineno if code is not None else 0}
            self.tell("subject", name=subject[0], **told, library=self._library(file), state=state, where=self.where())
        finally:
            self._inside = False

    def _told_calls(self) -> None:
        torch: Any = sys.modules.get("torch")
        cuda = getattr(torch, "cuda", None)
        waits = not (cuda is not None and cuda.is_initialized())
        for (name, _), times in self._calls.items():
            if times:
                self.tell("calls", name=name, nanoseconds=times, waits=waits)
        self._calls.clear()


def _words(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


class _AfterTorch:
    """Finds torch as everybody else does, and tells the watcher when it is loaded."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002
        """See `importlib.abc.MetaPathFinder`."""
        if name != "torch" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            loader, watcher, execute = spec.loader, self._watcher, spec.loader.exec_module

            def exec_module(module: Any) -> None:
                del loader.exec_module
                execute(module)
                watcher.torch_loaded(module)

            loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _next_sitecustomize() -> None:
    """Run the sitecustomize that this one hides."""
    here = os.path.realpath(Path(ITSELF).parent)
    for folder in sys.path:
        path = Path(folder or ".") / "sitecustomize.py"
        if os.path.realpath(path.parent) != here and path.is_file():
            spec = importlib.util.spec_from_file_location("sitecustomize", path)
            if spec is not None and spec.loader is not None:
                spec.loader.exec_module(importlib.util.module_from_spec(spec))
            return


if __name__ == "sitecustomize" and os.environ.get(FOLDER):
    Watcher(os.environ[FOLDER]).start()
    _next_sitecustomize()
