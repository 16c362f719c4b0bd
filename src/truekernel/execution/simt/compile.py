"""Compile CUDA sources to libraries for the CPU: alone, or several in one translation unit."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from truekernel.errors import MachineError
from truekernel.execution.simt.diagnostics import errors, first_error
from truekernel.execution.simt.dynamic_labels import PRELUDE, label_dynamic_shared
from truekernel.execution.simt.flags import Options
from truekernel.execution.simt.kit import MEND, Kit, kit, rebuild
from truekernel.execution.simt.library import CompileFailure, Library
from truekernel.execution.simt.preparation import EXPORTS, MAIN_FILE, member_file, members_unit, unit
from truekernel.execution.simt.shared_zones import widen
from truekernel.execution.simt.toolchain import Compiler, default_compiler
from truekernel.execution.simt.work import work_path

BATCH = 16
"""Members of one translation unit: more gains little and makes a failure dearer."""


LEAST_FREE = 1 << 20
"""Bytes: with less room than this, a failure of compiler or linker says nothing of the source."""
_FULL = ("No space left on device", "Disk quota exceeded", "file truncated", "final close failed")


@dataclass(frozen=True, slots=True)
class BatchResult:
    """Libraries with the members that compiled, by number, and why the others did not."""

    libraries: tuple[Library, ...]
    members: Mapping[int, Library]
    failures: Mapping[int, CompileFailure]

    @property
    def library(self) -> Library | None:
        """The only library, when there is one."""
        return self.libraries[0] if len(self.libraries) == 1 else None


@dataclass(frozen=True, slots=True)
class Built:
    """What came of one translation unit: a library, or diagnostics."""

    library: Library | None
    log: str = ""


def compile_single(
    source: str, kernels: Sequence[str], options: Options | None = None, *, compiler: Compiler | None = None
) -> Library | CompileFailure:
    """Compile one source. `kernels`: name expressions of the kernels to call ("softmax", "reduce<256, float>").

    Raises CompilerMissingError without a compiler, MachineError when compiler or disk fail.
    """
    built = build_unit(unit(source, kernels), tuple(kernels), _kit(compiler, options))
    return built.library or failure(built.log, MAIN_FILE)


def compile_batch(
    sources: Mapping[int, str],
    kernels: Sequence[str],
    options: Options | None = None,
    *,
    compiler: Compiler | None = None,
) -> BatchResult:
    """Compile several sources (by number, 1 or more) that have the same kernels, up to `BATCH` in one translation unit.

    Members that the compiler complains about are left out and compiled alone, so that each failure is the member's own.
    """
    tools = _kit(compiler, options)
    names = tuple(kernels)
    libraries: list[Library] = []
    members: dict[int, Library] = {}
    failures: dict[int, CompileFailure] = {}
    alone: dict[int, str] = {}
    for group in _groups(sources):
        library, refused = _build_group(group, names, tools)
        if library is not None:
            libraries.append(library)
            members.update(dict.fromkeys(library.members, library))
        alone.update(refused)
    for number, source in alone.items():
        built = build_unit(members_unit([(number, source)], names), names, tools, members=(number,))
        if built.library is None:
            built = _single_as(number, source, names, tools)
        if built.library is not None:
            libraries.append(built.library)
            members[number] = built.library
        else:
            failures[number] = failure(built.log, MAIN_FILE)
    return BatchResult(tuple(libraries), members, failures)


def build_unit(
    text: str,
    kernels: tuple[str, ...],
    tools: Kit,
    *,
    members: tuple[int, ...] = (0,),
    variants: tuple[int, ...] = (),
) -> Built:
    """Compile and link one translation unit."""
    source, output, library = work_path(".cpp"), work_path(".o"), work_path(".so")
    gcc = tools.compiler.kind == "gcc"
    try:
        source.write_text(PRELUDE + text if gcc else text)
        status, log = tools.compile(source, output)
        if status and "precompiled header" in log:
            rebuild(tools)
            status, log = kit(tools.compiler, tools.options).compile(source, output)
        source.unlink()
    except OSError as error:
        check_space(str(error))
        raise MachineError(f"can't write {source}: {error.strerror}") from None
    if status:
        output.unlink(missing_ok=True)
        check_space(log)
        return Built(None, log or f"error: the compiler ended with status {status}")
    _written(output, tools.compiler.command[0])
    if gcc:
        label_dynamic_shared(output)
    if tools.options.checked:
        widen(output)
    status, log = tools.link(output, library)
    if status:
        output.unlink(missing_ok=True)
        library.unlink(missing_ok=True)
        check_space(log)
        said = (log.strip().splitlines() or [f"it ended with status {status}"])[0]
        raise MachineError(f"{tools.linker[0]} failed: {said}")
    _written(library, tools.linker[0])
    return Built(Library(library, output, kernels, tools.options.checked, members, variants))


def _written(path: Path, tool: str) -> None:
    if not path.is_file():
        raise MachineError(f"{tool} writes no file and reports no error ({MEND})")


def check_space(log: str) -> None:
    """Raise MachineError when a tool failed because there is no room for its files: that is never a fault of what it compiles."""
    folder = work_path("").parent
    if shutil.disk_usage(folder).free < LEAST_FREE or any(text in log for text in _FULL):
        raise MachineError(
            f"no space left in TMPDIR ({folder.parent.parent}): free some, or set TMPDIR to another folder"
        )


def failure(log: str, file: str) -> CompileFailure:
    """The first error of a compiler's log as a user should see it; `file`: what the source is called in it."""
    found = first_error(log, prefer=file)
    if found is None:
        return CompileFailure((log.strip().splitlines() or ["the compiler failed without a word"])[0])
    if found.file == EXPORTS:
        return CompileFailure(f"a launched kernel can't be used: {found.message}")
    return (
        CompileFailure(found.message, found.line, found.column) if found.file == file else CompileFailure(found.message)
    )


def _kit(compiler: Compiler | None, options: Options | None) -> Kit:
    return kit(compiler or default_compiler(), options or Options())


def _groups(sources: Mapping[int, str]) -> Iterator[list[tuple[int, str]]]:
    numbered = list(sources.items())
    count = -(-len(numbered) // BATCH)
    for k in range(count):
        yield numbered[k::count]


def _build_group(
    group: list[tuple[int, str]], kernels: tuple[str, ...], tools: Kit
) -> tuple[Library | None, dict[int, str]]:
    """A library of those that compile together, and the sources that the compiler complained about."""
    refused: dict[int, str] = {}
    for _ in range(3):
        if len(group) < 2:
            break
        text = members_unit(group, kernels)
        built = build_unit(text, kernels, tools, members=tuple(number for number, _ in group))
        if built.library is not None:
            return built.library, refused
        blamed = _blamed("\n".join(f"{d.file}:" for d in errors(built.log)), group) or _blamed(built.log, group)
        if not blamed:
            break
        refused.update((number, source) for number, source in group if number in blamed)
        group = [(number, source) for number, source in group if number not in blamed]
    refused.update(group)
    return None, refused


def _blamed(log: str, group: list[tuple[int, str]]) -> set[int]:
    """Members whose file a log names."""
    return {number for number, _ in group if f"{member_file(number)}:" in log}


def _single_as(number: int, source: str, kernels: tuple[str, ...], tools: Kit) -> Built:
    """Compile a source outside of any namespace, under the symbols of member `number`."""
    text = unit(source, kernels).replace("TK_EXPORT(tk_entry_0_", f"TK_EXPORT(tk_entry_{number}_")
    return build_unit(text, kernels, tools, members=(number,))
