"""Compile CUDA sources to machine code for the present GPU: one, or many on all cores."""

from __future__ import annotations

import atexit
import hashlib
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import lru_cache

from truekernel.execution.cuda.cache import CubinCache
from truekernel.execution.cuda.compilers import Compilers
from truekernel.execution.cuda.devices import device_info
from truekernel.execution.cuda.diagnostics import failure
from truekernel.execution.cuda.headers import OWN
from truekernel.execution.cuda.library import Library
from truekernel.execution.cuda.options import STANDARD, Options
from truekernel.execution.simt.library import CompileFailure


@dataclass(frozen=True, slots=True)
class ManyResult:
    """Outcome of compiling several sources: a library, or why not, for each number."""

    members: Mapping[int, Library]
    failures: Mapping[int, CompileFailure]

    @property
    def libraries(self) -> tuple[Library, ...]:
        """All libraries, in the order of their numbers."""
        return tuple(self.members.values())


def compile_single(source: str, kernels: Sequence[str], options: Options | None = None) -> Library | CompileFailure:
    """Compile one source. `kernels`: name expressions of the kernels that will be launched.

    Raises NvrtcMissingError without a compiler, GpuMissingError when `options.arch` is None and there is no GPU to ask.
    """
    return _compiled(source, tuple(kernels), _settled(options))


def compile_many(
    sources: Mapping[int, str],
    kernels: Sequence[str] | Mapping[int, Sequence[str]],
    options: Options | None = None,
    *,
    processes: int | None = None,
) -> ManyResult:
    """Compile several sources, each alone, on `processes` cores (None: all that this process may use).

    `kernels`: name expressions, for all sources or for each number. Raises as `compile_single`.
    """
    settled = _settled(options)
    each = kernels if isinstance(kernels, Mapping) else dict.fromkeys(sources, kernels)
    compilers().version()
    wanted = min(processes or len(os.sched_getaffinity(0)), max(len(sources), 1))
    with ThreadPoolExecutor(wanted) as threads:
        results = list(threads.map(lambda n: _compiled(sources[n], tuple(each[n]), settled), sources))
    members = {n: r for n, r in zip(sources, results, strict=True) if isinstance(r, Library)}
    failures = {n: r for n, r in zip(sources, results, strict=True) if isinstance(r, CompileFailure)}
    return ManyResult(members, failures)


def _compiled(source: str, kernels: tuple[str, ...], options: Options) -> Library | CompileFailure:
    assert options.arch is not None
    key = _key(source, kernels, options)
    found = cubins().get(key)
    if found is None:
        compiled = compilers().compile(source, kernels, options)
        if not compiled.cubin:
            return failure(compiled.log)
        found = compiled.symbols, compiled.cubin
        cubins().put(key, *found)
    symbols, cubin = found
    return Library(cubin, kernels, symbols, options.arch, options.checked)


def _settled(options: Options | None) -> Options:
    """Options with an architecture."""
    options = options or Options()
    return options if options.arch else replace(options, arch=device_info().arch)


def _key(source: str, kernels: tuple[str, ...], options: Options) -> str:
    parts = [source, *kernels, repr(sorted(asdict(options).items())), STANDARD, compilers().version(), _own_headers()]
    return hashlib.sha256("\0".join(str(part) for part in parts).encode()).hexdigest()[:40]


@lru_cache(maxsize=1)
def _own_headers() -> str:
    digest = hashlib.sha256()
    for path in sorted(OWN.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@lru_cache(maxsize=1)
def compilers() -> Compilers:
    """The compile processes of this process."""
    processes = Compilers()
    atexit.register(processes.close)
    return processes


@lru_cache(maxsize=1)
def cubins() -> CubinCache:
    """The cache of this user and machine."""
    return CubinCache()
