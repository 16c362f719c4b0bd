"""Find C++ compilers for the CPU backend, and say what each can do."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from truekernel.errors import BadInputError, CompilerMissingError
from truekernel.execution.simt.flags import Kind

VARIABLE = "TRUEKERNEL_CXX"
INSTALL_HINT = "apt install clang-19 (or: pip install ziglang)"
_NEWEST, _OLDEST_CLANG, _OLDEST_GCC = 24, 14, 10


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler. `command`: how it is called ("clang++-19"; "zig c++"); `path`: of the program; `version`: one line of its own."""

    kind: Kind
    command: tuple[str, ...]
    path: str
    version: str

    @property
    def label(self) -> str:
        """Short name for people: "clang 19.1.7"."""
        number = re.search(r"\d+(?:\.\d+)+", self.version)
        return f"{self.kind} {number[0] if number else self.version}"


def find_compilers() -> list[Compiler]:
    """All usable compilers, best first: TRUEKERNEL_CXX when it is set, then clang from new to old, g++, zig.

    Those that start and give a version are listed; `doctor.probe` finds out whether they really work.
    """
    found: dict[str, Compiler] = {}
    for command in _candidates():
        compiler = _identify(command)
        if compiler is not None:
            found.setdefault(str(Path(compiler.path).resolve()) + " ".join(command[1:]), compiler)
    return list(found.values())


@lru_cache(maxsize=1)
def default_compiler() -> Compiler:
    """The compiler that is used when none is named. Raises CompilerMissingError when there is none."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        compiler = _identify(_words(chosen))
        if compiler is None:
            raise CompilerMissingError(
                f"{VARIABLE}='{chosen}' does not run: name a clang++, g++ or 'zig c++', or unset it"
            )
        return compiler
    for command in _candidates():
        compiler = _identify(command)
        if compiler is not None:
            return compiler
    raise CompilerMissingError(f"no C++ compiler found: {INSTALL_HINT}")


def compiler_named(command: str) -> Compiler:
    """The compiler that `command` calls. Raises BadInputError when it does not run."""
    compiler = _identify(_words(command))
    if compiler is None:
        raise BadInputError(f"compiler '{command}' does not run: name a clang++, g++ or 'zig c++'")
    return compiler


def _words(command: str) -> tuple[str, ...]:
    """Words of a command as a shell reads it; none where it can't be read so."""
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return ()


def _candidates() -> list[tuple[str, ...]]:
    chosen = os.environ.get(VARIABLE)
    names = [f"clang++-{n}" for n in range(_NEWEST, _OLDEST_CLANG - 1, -1)]
    names.insert(_NEWEST - 19 + 1, "clang++")
    names += ["g++", *(f"g++-{n}" for n in range(_NEWEST, _OLDEST_GCC - 1, -1))]
    commands: list[tuple[str, ...]] = [_words(chosen)] if chosen else []
    commands += [(name,) for name in names]
    zig = _zig()
    return [*commands, (zig, "c++")] if zig else commands


def _zig() -> str | None:
    from importlib.util import find_spec

    wheel = find_spec("ziglang")
    if wheel is not None and wheel.origin:
        inside = Path(wheel.origin).parent / "zig"
        if inside.exists():
            return str(inside)
    return shutil.which("zig")


def _identify(command: tuple[str, ...]) -> Compiler | None:
    path = shutil.which(command[0]) if command else None
    return _identified(path, command[1:]) if path else None


@lru_cache(maxsize=64)
def _identified(path: str, arguments: tuple[str, ...]) -> Compiler | None:
    try:
        command = [path, *arguments, "--version"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if result.returncode or not result.stdout.strip():
        return None
    version = result.stdout.splitlines()[0].strip()
    kind: Kind = "gcc"
    if arguments and "zig" in Path(path).name:
        kind = "zig"
    elif "clang" in version:
        kind = "clang"
    return Compiler(kind, (path, *arguments), path, version)
