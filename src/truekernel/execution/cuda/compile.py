"""Compile CUDA sources to machine code for the present GPU: one, or many on all cores."""

from __future__ import annotations

import atexit
import hashlib
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import lru_cache

from truekernel.execution.cuda import units
from truekernel.execution.cuda.cache import CubinCache
from truekernel.execution.cuda.compilers import Compilers
from truekernel.execution.cuda.devices import device_info
from truekernel.execution.cuda.diagnostics import failure
from truekernel.execution.cuda.headers import OWN
from truekernel.execution.cuda.library import Library
from truekernel.execution.cuda.machine_code import has_constants, variables
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
    together: int = 1,
) -> ManyResult:
    """Compile several sources on `processes` cores (None: all that this process may use), up to `together` of them in one translation unit (`units`).

    `kernels`: name expressions, for all sources or for each number. Raises as `compile_single`.
    """
    settled = _settled(options)
    each = kernels if isinstance(kernels, Mapping) else dict.fromkeys(sources, kernels)
    compilers().version()
    wanted = [(number, source, tuple(each[number])) for number, source in sources.items()]
    groups = [wanted[at : at + together] for at in range(0, len(wanted), together)]
    groups.sort(key=lambda group: -sum(len(source) for _, source, _ in group))  # long ones last would leave cores idle
    with ThreadPoolExecutor(min(processes or len(os.sched_getaffinity(0)), max(len(groups), 1))) as threads:
        results = dict(pair for pairs in threads.map(lambda group: _group(group, settled), groups) for pair in pairs)
    members = {n: r for n in sources if isinstance(r := results[n], Library)}
    failures = {n: r for n in sources if isinstance(r := results[n], CompileFailure)}
    return ManyResult(members, failures)


def _group(
    group: Sequence[tuple[int, str, tuple[str, ...]]], options: Options
) -> list[tuple[int, Library | CompileFailure]]:
    """Results of sources that may share a unit. What it does not compile with is compiled alone; so are all, where one has global variables."""
    found: list[tuple[int, Library | CompileFailure]] = []
    left = list(group)
    while len(left) > 1:
        unit = units.unit([source for _, source, _ in left])
        if unit is None:
            break
        names = [units.name(at, kernel) for at, (_, _, kernels) in enumerate(left) for kernel in kernels]
        built = _compiled(unit.text, tuple(names), options)
        if isinstance(built, Library):
            members = [_member(built, at, source, kernels) for at, (_, source, kernels) in enumerate(left)]
            if has_constants(built.cubin) or any(member.stateful for member in members):
                break
            return [*found, *((number, member) for (number, _, _), member in zip(left, members, strict=True))]
        culprit = unit.source_at(built.line) if built.line else None
        if culprit is None:
            break
        number, source, kernels = left.pop(culprit)
        found.append((number, _compiled(source, kernels, options)))
    return [*found, *((number, _compiled(source, kernels, options)) for number, source, kernels in left)]


def _member(built: Library, at: int, source: str, kernels: tuple[str, ...]) -> Library:
    """The part of source `at` of a unit."""
    symbols = {kernel: built.symbols[units.name(at, kernel)] for kernel in kernels}
    space = units.space(at)
    stateful = units.has_state(source, variables(built.cubin, space))
    return replace(built, kernels=kernels, symbols=symbols, space=space, stateful=stateful)


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
    stateful = has_constants(cubin) or units.has_state(source, variables(cubin))
    return Library(cubin, kernels, symbols, options.arch, options.checked, key, stateful=stateful)


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
