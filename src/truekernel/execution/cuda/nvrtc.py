"""Compile CUDA C++ with NVRTC through `cuda.core`, in this process.

Works with cuda-core 1.x and with the older releases that keep the same names in `cuda.core.experimental`.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truekernel.execution.cuda.headers import PRELUDE, include_paths
from truekernel.execution.cuda.options import STANDARD, Options

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)', re.MULTILINE)
_HEAVY = ("cooperative_groups", "cuda_", "mma.h", "cuda/", "cub/", "thrust/")
FILE = "kernel.cu"
"""What the source is called in diagnostics and line tables."""


class NvrtcMissing(Exception):  # noqa: N818 -- a condition of the machine, turned into an error for people by the parent
    """`cuda.core`, `cuda.bindings` or NVRTC is not there."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """Machine code, or none and why. `symbols`: mangled name of each kernel's name expression."""

    cubin: bytes
    symbols: dict[str, str]
    log: str


class Nvrtc:
    """The compiler of this process."""

    def __init__(self) -> None:
        self._core, self.version = _load()
        self._precompiled: str | None = None
        self._include = include_paths(self.version)

    def compile(self, source: str, kernels: tuple[str, ...], options: Options) -> Compiled:
        """Compile for `options.arch`; whatever the compiler refuses leaves `cubin` empty and is in the log."""
        assert options.arch is not None
        settings = self._core.ProgramOptions(
            name=FILE,
            arch=options.arch,
            std=STANDARD,
            fma=options.fma,
            debug=options.debug or None,
            lineinfo=(options.has_lines and not options.debug) or None,
            include_path=self._include,
            pre_include=PRELUDE,
            **self._header_options(source),
        )
        try:
            program = self._core.Program(source, "c++", settings)
            code = program.compile("cubin", name_expressions=kernels)
        except Exception as error:
            return Compiled(b"", {}, str(error))
        mapping = getattr(code, "symbol_mapping", None) or getattr(code, "_sym_map", None) or {}
        symbols = {name: s.decode() if isinstance(s, bytes) else str(s) for name, s in mapping.items()}
        return Compiled(bytes(code.code), symbols, "")

    def _header_options(self, source: str) -> dict[str, Any]:
        """Headers are parsed once a process and then taken from a precompiled form, where this cuda.core can: cooperative_groups.h alone costs most
        of a second."""
        fields = getattr(self._core.ProgramOptions, "__dataclass_fields__", {})
        headers = _INCLUDE.findall(source)
        if "pch" not in fields or not any(header.startswith(_HEAVY) for header in headers):
            return {}
        if self._precompiled is None:
            self._precompiled = tempfile.mkdtemp(prefix="truekernel-")
            atexit.register(shutil.rmtree, self._precompiled, ignore_errors=True)
        # A folder for each list of headers: NVRTC tries all forms that a folder holds.
        folder = Path(self._precompiled) / hashlib.sha256("\0".join(headers).encode()).hexdigest()[:16]
        folder.mkdir(exist_ok=True)
        return {"pch": True, "pch_dir": str(folder)}


def _load() -> tuple[Any, tuple[int, int]]:
    try:
        nvrtc = importlib.import_module("cuda.bindings.nvrtc")
        status, major, minor = nvrtc.nvrtcVersion()
    except Exception as error:  # an import, a library that is not found, or one that does not load
        raise NvrtcMissing(f"{type(error).__name__}: {error}") from None
    if int(status):
        raise NvrtcMissing(f"nvrtcVersion: {status}")
    for name in ("cuda.core", "cuda.core.experimental"):
        try:
            core = importlib.import_module(name)
        except ImportError as error:
            raise NvrtcMissing(f"{type(error).__name__}: {error}") from None
        if hasattr(core, "ProgramOptions"):
            return core, (int(major), int(minor))
    raise NvrtcMissing("cuda.core has no ProgramOptions")
