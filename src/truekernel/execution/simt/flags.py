"""Compile options, and what they mean for each kind of compiler."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Literal

Kind = Literal["clang", "gcc", "zig"]


@dataclass(frozen=True, slots=True)
class Options:
    """How device code is compiled.

    `fma`: contract a*b + c within an expression, as nvcc does by default (g++: across expressions too). `checked`: hook every
    memory access (bounds, uninitialised shared reads, races) at 3 to 6 times the run time. `optimise`: level of the compiler, "0" to "3".
    """

    fma: bool = True
    checked: bool = False
    optimise: str = "1"


# Local variables that a kernel reads before it writes them hold a pattern (floats: NaN), so that such a kernel gives the same
# bits each time, as the original of a schema and compiled alone.
_COMMON = shlex.split(
    "-std=c++17 -fPIC -fvisibility=hidden -fno-exceptions -fno-rtti -fno-math-errno -fno-trapping-math -fwrapv "
    "-fno-strict-aliasing -fno-delete-null-pointer-checks -fno-finite-loops -fno-stack-protector -fdata-sections "
    "-ffunction-sections -ftrivial-auto-var-init=pattern -fno-asynchronous-unwind-tables -fno-ident"
)
_NUMBERS = "integer-divide-by-zero,shift-exponent,float-cast-overflow"
_HOST_DIFFERS = f"{_NUMBERS},alignment"
_BOUNDS = "bounds"


def kernel_flags(kind: Kind, options: Options) -> list[str]:
    """Flags for compiling device code, precompiled header included; without input, output and include paths."""
    flags = [*_COMMON, f"-O{options.optimise}"]
    if kind == "gcc":
        return flags + _gcc(options)
    flags += [
        "-Wno-everything",
        "-Werror=zero-length-array",  # as nvcc
        "-gline-tables-only",
        "-ferror-limit=200",
        f"-ffp-contract={'on' if options.fma else 'off'}",
        # A quarter of the time of a kernel with unrolled loops, for code that runs once or twice.
        "-mllvm",
        "-enable-misched=false",
        "-mllvm",
        "-pre-RA-sched=source",
    ]
    flags += ["-mcpu=x86_64_v3", "-fno-sanitize=undefined"] if kind == "zig" else ["-march=x86-64-v3"]
    # Traps are small; but they are merged, which loses the line of the one that fired, and tell no address.
    trapped = _NUMBERS if options.checked else _HOST_DIFFERS
    flags += [f"-fsanitize={trapped}", f"-fsanitize-trap={trapped}"]
    if options.checked:
        flags += [f"-fsanitize={_BOUNDS},alignment", f"-fno-sanitize-recover={_BOUNDS},alignment"]
        flags += ["-DTK_CHECKED=1", "-fsanitize=thread"]
        flags += ["-mllvm", "-tsan-instrument-func-entry-exit=0", "-mllvm", "-tsan-distinguish-volatile=1"]
        flags += ["-mllvm", "-tsan-instrument-read-before-write=1"]
    return flags


def _gcc(options: Options) -> list[str]:
    # g++ contracts in a pass that -O1 leaves out unless it is named, and knows no contraction within expressions only.
    contract = ["-ffp-contract=fast", "-fexpensive-optimizations"] if options.fma else ["-ffp-contract=off"]
    flags = ["-march=x86-64-v3", "-w", "-Wno-narrowing", "-g1", *contract, f"-fsanitize={_HOST_DIFFERS}"]
    if options.checked:
        flags += ["-DTK_CHECKED=1", "-fsanitize=thread", f"-fsanitize={_BOUNDS}", "-fno-aggressive-loop-optimizations"]
        flags += ["--param=tsan-instrument-func-entry-exit=0", "--param=tsan-distinguish-volatile=1"]
    return flags


def server_flags(kind: Kind) -> list[str]:
    """Flags for building the native server."""
    processor = "-mcpu=x86_64_v3" if kind == "zig" else "-march=x86-64-v3"
    extra = ["-fno-sanitize=undefined"] if kind == "zig" else []
    return [
        *shlex.split(
            "-std=c++17 -O2 -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-strict-aliasing -ffp-contract=off -rdynamic -w"
        ),
        processor,
        *extra,
    ]
