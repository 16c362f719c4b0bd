"""Compiles kernels and runs them on the native runtime alone, without the server: what the runtime's own tests need."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from truekernel.execution.simt.flags import Options, kernel_flags

NATIVE = Path(__file__).parents[2] / "src/truekernel/execution/simt/native"
SCHEDULES = {"gpu": 0, "forward": 1, "reverse": 2, "random": 3, "warp_greedy": 4}
STATUS = [
    "ok",
    "out_of_bounds",
    "race",
    "uninitialised_read",
    "barrier_divergence",
    "deadlock",
    "misaligned",
    "trap",
    "timeout",
    "crash",
    "host_differs",
    "infrastructure",
]
INPUT, SCRATCH, ZEROED, MUTABLE = 1, 2, 3, 16
OWN = f".{os.getpid()}"
"""In names of files that are being made: several processes test at once, and each sees whole files only."""
COMPILERS = {"clang": "clang++-19", "gcc": "g++"}
DYNAMIC = re.compile(r"(\bextern\b[^;{}]*?)\b__shared__\b([^;{}]*?\[\s*\])\s*;")


@cache
def folder() -> Path:
    """One folder for everything built in this test session."""
    path = Path(tempfile.gettempdir()) / "truekernel-bench"
    path.mkdir(exist_ok=True)
    return path


@cache
def bench() -> Path:
    """The test program, linked with the runtime."""
    sources = [p for p in sorted(NATIVE.glob("*.cpp")) if p.name not in ("server.cpp", "statistics.cpp")]
    sources = [p for p in sources if "int main(" not in p.read_text()]
    sources.append(Path(__file__).with_suffix(".cpp"))
    digest = hashlib.sha256()
    for path in [*sources, *sorted(NATIVE.glob("*.h")), NATIVE / "include/tk_abi.h"]:
        digest.update(path.read_bytes())
    out = folder() / f"bench-{digest.hexdigest()[:16]}"
    if not out.exists():
        flags = [
            "-std=c++17",
            "-O2",
            "-march=x86-64-v3",
            "-fno-exceptions",
            "-fno-rtti",
            "-fno-strict-aliasing",
            "-rdynamic",
        ]
        link = ["-Wl,--no-as-needed", "-lm", "-ldl"]
        part = out.with_suffix(OWN)
        subprocess.run(["g++", *flags, "-I", NATIVE, *sources, "-o", part, *link], check=True)
        part.rename(out)
    return out


class CompileError(Exception):
    """The compiler refused the source."""


def compile_kernels(
    source: str, kernels: tuple[str, ...], kind: str = "clang", checked: bool = False, optimise="1"
) -> Path:
    """A library that exports kernel number i as `kernel_i`."""
    text = DYNAMIC.sub(r"\1TK_DYNAMIC_SHARED\2 TK_DYNAMIC_LABEL;", source)
    exports = "".join(f"TK_EXPORT(kernel_{i}, 0, {name})\n" for i, name in enumerate(kernels))
    text = f'#line 1 "k.cu"\n{text}\n{exports}'
    flags = kernel_flags(kind, Options(checked=checked, optimise=optimise))
    headers = b"".join(p.read_bytes() for p in sorted((NATIVE / "include").rglob("*")) if p.is_file())
    digest = hashlib.sha256(repr((text, flags, kind)).encode() + headers).hexdigest()[:16]
    library = folder() / f"{digest}.so"
    if library.exists():
        return library
    cpp, obj, part = (folder() / f"{digest}{OWN}{suffix}" for suffix in (".cpp", ".o", ".so"))
    cpp.write_text(text)
    include = NATIVE / "include"
    command = [COMPILERS[kind], *flags, "-I", include, "-include", include / "tk_shim.h", "-c", cpp, "-o", obj]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompileError(done.stderr)
    if checked:
        from truekernel.execution.simt.shared_zones import widen

        widen(obj)
    subprocess.run(["ld", "-shared", "-z", "now", obj, "-o", part], check=True)
    part.rename(library)
    return library


@dataclasses.dataclass
class Result:
    """What came back: status word, the report's fields, and the buffers' final bytes."""

    status: str
    report: dict
    buffers: list[bytes]
    library: Path

    def array(self, i, dtype):
        return np.frombuffer(self.buffers[i], dtype=dtype)

    def line(self):
        """Source line of the fault: the runtime's, or the symbol table's for its program counter."""
        if self.report["line"] or not self.report["pc"]:
            return self.report["line"] or None
        command = ["llvm-symbolizer-19", f"--obj={self.library}", hex(self.report["pc"])]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = re.search(r"k\.cu:(\d+)", text)
        return int(found[1]) if found else None


def run(
    library,
    buffers,
    launches,
    schedule="gpu",
    seed=1,
    seconds=2.0,
    repeat=1,
    variant=0,
    filtered=True,
) -> Result:
    """`buffers`: numpy arrays (inputs) or ("scratch" | "zeroed", nbytes). `launches`: (kernel number, grid, block, args, shared, cooperative);
    an argument is ("b", buffer, byte offset) or a numpy scalar.
    """
    script = [
        f"library {library}",
        f"limit {seconds} {SCHEDULES[schedule]} {seed} {repeat} {variant} {int(not filtered)}",
    ]
    sizes = []
    with tempfile.TemporaryDirectory() as work:
        for i, buffer in enumerate(buffers):
            if isinstance(buffer, tuple):
                role = {"scratch": SCRATCH, "zeroed": ZEROED}[buffer[0]]
                script.append(f"buffer {role} {buffer[1]} -")
                sizes.append(buffer[1])
            else:
                path = Path(work) / f"b{i}"
                path.write_bytes(np.ascontiguousarray(buffer).tobytes())
                script.append(f"buffer {INPUT} {buffer.nbytes} {path}")
                sizes.append(buffer.nbytes)
        for kernel, grid, block, args, *rest in launches:
            shared, cooperative = (*rest, 0, 0)[:2]
            g, b = ((*tuple(grid), 1, 1))[:3], ((*tuple(block), 1, 1))[:3]
            words = [f"b{a[1]}+{a[2]}" if isinstance(a, tuple) else "x" + np.asarray(a).tobytes().hex() for a in args]
            numbers = " ".join(map(str, (*g, *b, shared, int(cooperative), len(args))))
            script.append(f"launch kernel_{kernel} {numbers} {' '.join(words)}")
        done = subprocess.run(
            [bench()], input="\n".join(script).encode() + b"\n", capture_output=True, check=False, timeout=60
        )
    if done.returncode:
        raise RuntimeError(f"bench failed: {done.returncode} {done.stderr.decode()}")
    head, _, rest = done.stdout.partition(b"\n")
    report = json.loads(head)
    out = []
    for size in sizes:
        out.append(rest[:size])
        rest = rest[size:]
    status = STATUS[report["status"]] if report["status"] >= 0 else "gone"
    return Result(status, report, out if status == "ok" else [], Path(library))


def b(i, offset=0):
    """A pointer argument."""
    return ("b", i, offset)
