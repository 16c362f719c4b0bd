"""What one compiler with one set of options needs: native server, precompiled shim, and the commands that compile and link."""

from __future__ import annotations

import atexit
import shlex
import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from truekernel.errors import MachineError
from truekernel.execution.simt.cache import built_once, digest, forget
from truekernel.execution.simt.flags import Options, kernel_flags, server_flags
from truekernel.execution.simt.processes import CompileServer, run_tool
from truekernel.execution.simt.toolchain import VARIABLE, Compiler
from truekernel.execution.simt.work import work_path

_HERE = Path(__file__).parent
_STATISTICS = _HERE.parents[1] / "numerics" / "native"
_SHIM = "tk_shim.h"
_INPUT, _OUTPUT = "TK_INPUT.cpp", "TK_OUTPUT.o"
MEND = f"`truekernel doctor` tries every compiler; name one that works in {VARIABLE}"


@dataclass(frozen=True, slots=True)
class Kit:
    """`command`: compiles device code, with placeholders for input and output; `linker`: makes a shared object of one object."""

    compiler: Compiler
    options: Options
    shim: Path
    command: tuple[str, ...]
    linker: tuple[str, ...]
    server: CompileServer | None
    link_server: CompileServer | None

    def compile(self, source: Path, output: Path) -> tuple[int, str]:
        """Exit status and diagnostics of compiling `source` into the object file `output`."""
        replaced = {_INPUT: str(source), _OUTPUT: str(output)}
        command = [replaced.get(word, word) for word in self.command]
        return self.server.run(command) if self.server else run_tool(command)

    def link(self, source: Path, output: Path) -> tuple[int, str]:
        """Exit status and messages of linking the object `source` into the library `output`."""
        command = [*self.linker, str(source), "-o", str(output)]
        return self.link_server.run(command) if self.link_server else run_tool(command)


@lru_cache(maxsize=16)
def kit(compiler: Compiler, options: Options) -> Kit:
    """The kit, its parts built once and kept in the user's cache. Raises MachineError when the compiler can't build them."""
    flags = [*kernel_flags(compiler.kind, options), "-I", str(native_sources() / "include")]
    shim = _precompiled(compiler, flags)
    if compiler.kind == "gcc":
        command = [*compiler.command, *flags, "-include", str(shim / _SHIM), "-x", "c++", "-c", _INPUT, "-o", _OUTPUT]
    else:
        include = ["-include-pch", str(shim / f"{_SHIM}.pch")]
        command = [*compiler.command, *flags, *include, "-x", "c++", "-c", _INPUT, "-o", _OUTPUT]
    linker = _linker(compiler)
    server = link_server = None
    if compiler.kind == "clang":
        command = _without_driver(command)
        server, link_server = _compile_server(command[0], compiler), _compile_server(linker[0], compiler)
    return Kit(compiler, options, shim, tuple(command), linker, server, link_server)


@lru_cache(maxsize=8)
def server_program(compiler: Compiler) -> Path:
    """The native server, built once. Raises MachineError when the compiler can't build it."""
    sources = native_sources()

    def build(folder: Path) -> None:
        files = sorted(str(path) for path in sources.glob("*.cpp"))
        command = [*compiler.command, *server_flags(compiler.kind), "-I", str(sources), *files]
        command += ["-o", str(folder / "server"), "-Wl,--no-as-needed", "-lm", "-ldl"]
        _must(command, "build the native server")

    name = digest(sources.name, compiler.path, compiler.version, *server_flags(compiler.kind))
    return built_once(f"server-{name}", build) / "server"


@lru_cache(maxsize=1)
def native_sources() -> Path:
    """A copy of the native sources whose files never change, which precompiled headers insist on."""
    files = [p for p in sorted(_HERE.glob("native/**/*")) if p.is_file()] + sorted(_STATISTICS.glob("*.h"))
    content = digest(*(f"{p.parent.name}/{p.name}\n{p.read_text()}" for p in files))

    def build(folder: Path) -> None:
        shutil.copytree(_HERE / "native", folder, dirs_exist_ok=True)
        for path in _STATISTICS.glob("*.h"):
            shutil.copy(path, folder)

    return built_once(f"native-{content}", build)


def rebuild(broken: Kit) -> None:
    """Throw the precompiled shim away: the system headers under it have changed."""
    forget(broken.shim)
    kit.cache_clear()


def _precompiled(compiler: Compiler, flags: list[str]) -> Path:
    header = native_sources() / "include" / _SHIM

    def build(folder: Path) -> None:
        if compiler.kind == "gcc":
            wrapper = folder / _SHIM
            wrapper.write_text(f'#include "{header}"\n')
            _must(
                [*compiler.command, "-x", "c++-header", *flags, str(wrapper), "-o", f"{wrapper}.gch"],
                "precompile the shim",
            )
        else:
            output = str(folder / f"{_SHIM}.pch")
            extra = ["-fpch-instantiate-templates"] if compiler.kind == "clang" else []
            _must(
                [*compiler.command, "-x", "c++-header", *flags, *extra, str(header), "-o", output],
                "precompile the shim",
            )

    return built_once(f"shim-{digest(compiler.path, compiler.version, *flags)}", build)


def _without_driver(command: list[str]) -> list[str]:
    """The compiler proper's command line, without the driver that would work it out each time anew."""
    source = work_path(".cpp")
    source.touch()  # the driver names its steps only for an input that is there
    status, text = run_tool([str(source) if word == _INPUT else word for word in command] + ["-###"])
    source.unlink()
    text = text.replace(str(source), _INPUT)
    lines = [line for line in text.splitlines() if '"-cc1"' in line]
    if status or len(lines) != 1:
        return command
    return shlex.split(lines[0])


@lru_cache(maxsize=4)
def _compile_server(program: str, compiler: Compiler) -> CompileServer | None:
    def build(folder: Path) -> None:
        source = str(native_sources() / "compile_server.c")
        command = [
            *compiler.command,
            "-x",
            "c",
            "-O1",
            "-shared",
            "-fPIC",
            source,
            "-o",
            str(folder / "preload.so"),
            "-ldl",
        ]
        _must(command, "build the compile server")

    try:
        folder = built_once(f"preload-{digest(native_sources().name, compiler.path, compiler.version)}", build)
    except MachineError:  # works without, only slower
        return None
    server = CompileServer(program, folder / "preload.so")
    atexit.register(server.close)
    return server


def _linker(compiler: Compiler) -> tuple[str, ...]:
    flags = ("-shared", "-z", "now")
    for name in ("ld.bfd", "ld.gold", "ld"):  # ld.lld takes five times as long
        path = shutil.which(name)
        if path:
            return path, *flags
    if compiler.kind == "zig":
        return compiler.command[0], "ld.lld", *flags
    return *compiler.command, "-nostdlib", "-shared", "-Wl,-z,now"


def _must(command: list[str], purpose: str) -> None:
    """Run a command whose output is named after its `-o`."""
    status, text = run_tool(command, seconds=600)
    if status:
        lines = [line for line in text.splitlines() if "error" in line.lower()] or text.splitlines()
        why = lines[0].strip() if lines else f"it ends with status {status} and says nothing"
        raise MachineError(f"{command[0]} can't {purpose}: {why} ({MEND})")
    if not Path(command[command.index("-o") + 1]).is_file():
        raise MachineError(f"{command[0]} can't {purpose}: it writes no file and reports no error ({MEND})")
