"""Compilers are found and named; single and batched compilation, their failures and the hash of machine code."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import pytest
from simt_cases import BLOCK_SUM, VADD, compiled, edited

from truekernel.errors import BadInputError, CompilerMissingError, MachineError
from truekernel.execution import simt
from truekernel.execution.simt import cache, toolchain
from truekernel.execution.simt import compile as compile_module
from truekernel.execution.simt.machine_code import code_hash
from truekernel.execution.simt.preparation import prepared
from truekernel.model import BufferArg, BufferSpec, Configuration, Launch, LaunchPlan


@pytest.fixture
def fresh_choice():
    toolchain.default_compiler.cache_clear()
    yield
    toolchain.default_compiler.cache_clear()


def test_finds_compilers_best_first():
    found = simt.find_compilers()
    assert found and found[0] == simt.default_compiler()
    kinds = [compiler.kind for compiler in found]
    assert kinds == sorted(kinds, key=["clang", "gcc", "zig"].index)
    assert all(Path(compiler.path).exists() and compiler.version for compiler in found)


def test_the_environment_names_the_compiler(monkeypatch, fresh_choice):
    monkeypatch.setenv(toolchain.VARIABLE, "g++")
    assert simt.default_compiler().kind == "gcc"
    assert simt.find_compilers()[0].kind == "gcc"
    toolchain.default_compiler.cache_clear()
    monkeypatch.setenv(toolchain.VARIABLE, "no-such-compiler")
    with pytest.raises(CompilerMissingError, match="TRUEKERNEL_CXX='no-such-compiler'"):
        simt.default_compiler()


def test_no_compiler_says_how_to_get_one(monkeypatch, fresh_choice):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv(toolchain.VARIABLE, raising=False)
    monkeypatch.setattr(toolchain, "_zig", lambda: None)
    assert simt.find_compilers() == []
    with pytest.raises(CompilerMissingError, match="apt install clang-19"):
        simt.default_compiler()


def test_named_compiler_that_does_not_run():
    assert simt.compiler_named("g++").kind == "gcc"
    with pytest.raises(BadInputError, match="false"):
        simt.compiler_named("false")


def test_failure_has_the_place_in_the_source():
    failure = simt.compile_single(edited(VADD, {"i < n": "i < m"}), ("vadd",))
    assert isinstance(failure, simt.CompileFailure)
    assert (failure.line, failure.column) == (4, 11) and "'m'" in failure.message
    missing = simt.compile_single(VADD, ("vsub",))
    assert isinstance(missing, simt.CompileFailure) and "launched kernel" in missing.message


@pytest.mark.parametrize("checked", [False, True])
def test_every_compiler_compiles(checked):
    for compiler in simt.find_compilers():
        library = simt.compile_single(BLOCK_SUM, ("vadd<3>",), simt.Options(checked=checked), compiler=compiler)
        assert isinstance(library, simt.Library), f"{compiler.label}: {library}"
        library.close()
        assert not library.path.exists()


@pytest.mark.parametrize(("size", "compiles"), [("0", False), ("128 % 32", False), ("1", True), ("128 / 32", True)])
def test_an_array_without_elements_is_refused_as_nvcc_refuses_it(size, compiles):
    source = edited(VADD, {"if (i < n)": f"__shared__ float part[{size}]; part[0] = 0.0f; if (i < n)"})
    for compiler in simt.find_compilers():
        if compiler.kind == "gcc":  # its only warning of this is of a dozen extensions
            continue
        library = simt.compile_single(source, ("vadd",), compiler=compiler)
        assert isinstance(library, simt.Library) == compiles, f"{compiler.label}: {library}"


def test_batch_names_each_failure_and_builds_the_rest():
    sources = {
        1: VADD,
        2: edited(VADD, {"a[i] + b[i]": "a[i] - b[i]"}),
        3: edited(VADD, {"i < n": "i < m"}),
        4: edited(VADD, {"int i": "int i", "a[i] + b[i]": "a[i] + q"}),
        5: edited(VADD, {"a[i] + b[i]": "::fabsf(a[i])"}),
    }
    result = simt.compile_batch(sources, ("vadd",))
    assert sorted(result.members) == [1, 2, 5]
    assert sorted(result.failures) == [3, 4]
    assert (result.failures[3].line, result.failures[4].line) == (4, 4) and "'q'" in result.failures[4].message


def test_batch_keeps_macros_and_globals_of_its_members_apart():
    first = "#define SIZE 4\n#ifndef WIDE\n#define WIDE 1\n#endif\n" + VADD
    second = "#define SIZE 8\n#ifndef WIDE\n#define WIDE 2\n#endif\n" + edited(
        VADD, {"a[i] + b[i]": "a[i] + SIZE * WIDE"}
    )
    alone = compiled(second)
    result = simt.compile_batch({1: first, 2: second}, ("vadd",))
    assert result.library is not None
    assert result.library.code_hash(member=2) == alone.code_hash()
    assert result.library.code_hash(member=1) == compiled(first).code_hash()


def test_hash_ignores_names_and_lines_and_sees_constants_and_instructions():
    plain = compiled(BLOCK_SUM, "vadd<3>").code_hash()
    assert plain == compiled(BLOCK_SUM, "vadd<3>").code_hash()
    renamed = BLOCK_SUM.replace("parts", "pieces").replace("twice", "doubled")
    assert compiled(renamed, "vadd<3>").code_hash() == plain
    equivalent = edited(BLOCK_SUM, {"float sum = 0.0f;": "float sum = 0.0f; /* nothing */"})
    assert compiled(equivalent, "vadd<3>").code_hash() == plain
    changes = [
        {"2.0f * x": "2.5f * x"},
        {"2.0f * x": "3.0f + x"},
        {"last[THREADS]": "last[2 * THREADS]"},
        {"step >>= 1": "step >>= 2"},
    ]
    hashes = [compiled(edited(BLOCK_SUM, change), "vadd<3>").code_hash() for change in changes]
    assert len({plain, *hashes}) == len(changes) + 1
    assert compiled(BLOCK_SUM, "vadd<3>", fma=False).code_hash() != plain


def test_hash_sees_launch_bounds():
    # No machine code of a CPU depends on them, but a GPU refuses launches of more threads.
    bounded = VADD.replace("__global__ void vadd", "__global__ void __launch_bounds__(256) vadd")
    assert bounded != VADD
    hashes = [compiled(text, "vadd").code_hash() for text in (VADD, bounded, bounded.replace("256", "256 / 2"))]
    assert len(set(hashes)) == 3
    assert compiled(bounded.replace("256", "128 * 2"), "vadd").code_hash() == hashes[1]


def test_hash_of_one_kernel_does_not_see_another():
    other = VADD + "__global__ void other(float* c) { c[0] = 1.0f; }\n"
    changed = other.replace("1.0f", "2.0f")
    first, second = (simt.compile_single(source, ("vadd", "other")) for source in (other, changed))
    assert isinstance(first, simt.Library) and isinstance(second, simt.Library)
    assert first.code_hash(["vadd"]) == second.code_hash(["vadd"])
    assert first.code_hash(["other"]) != second.code_hash(["other"])
    assert first.code_hash() != second.code_hash()
    with pytest.raises(BadInputError, match="no symbol"):
        code_hash(first.object_path.read_bytes(), ["nothing"])
    with pytest.raises(BadInputError, match="ELF"):
        code_hash(b"x" * 100, ["nothing"])


@pytest.mark.parametrize(
    "declaration",
    [
        "extern __shared__ float s[];",
        "extern __shared__ __align__(16) unsigned char s[];",
        "extern __align__(16) __shared__ float s[];",
        "__shared__ extern float s[];",
        "extern __shared__\n  float4 s[];",
        "extern __shared__ int s[][4];",
    ],
)
def test_dynamic_shared_memory_is_prepared_in_all_spellings(declaration):
    text = prepared(f"__global__ void k() {{ {declaration} s[0] = {{}}; }}")
    assert "TK_DYNAMIC_SHARED" in text and "TK_DYNAMIC_LABEL;" in text
    assert text.count("\n") == declaration.count("\n")
    source = f"{declaration}\n__global__ void k(int* out) {{ out[0] = (int)sizeof(s[0]); }}"
    assert isinstance(simt.compile_single(source, ("k",)), simt.Library)


def test_c_linkage_does_not_stop_a_batch():
    source = VADD.replace("__global__", 'extern "C" __global__')
    block = 'extern "C" {\n' + VADD.replace("#include <cuda_runtime.h>\n", "") + "}\n"
    result = simt.compile_batch({1: source, 2: block, 3: source}, ("vadd",))
    assert sorted(result.members) == [1, 2, 3] and result.library is not None


def test_a_busy_compile_server_makes_the_same_code_as_a_fresh_one():
    """After some requests its code moves to huge pages (`native/compile_server.c`)."""
    libraries = [simt.compile_single(VADD, ["vadd"]) for _ in range(12)]
    assert all(isinstance(library, simt.Library) for library in libraries)
    assert len({library.code_hash() for library in libraries if isinstance(library, simt.Library)}) == 1
    assert isinstance(
        simt.compile_single("__global__ void vadd(float* x) { x[0] = y; }", ["vadd"]), simt.CompileFailure
    )


def test_endless_compilation_is_ended(monkeypatch):
    from truekernel.execution.simt import processes

    status, text = processes.run_tool(["sleep", "30"], seconds=0.2)
    assert status == -1 and "more than" in text


def _build(root: str) -> str:
    os.environ["XDG_CACHE_HOME"] = root
    cache.cache_root.cache_clear()
    return str(cache.built_once("thing", lambda folder: (folder / "file").write_text("whole")))


def test_racing_processes_share_one_whole_cache_entry(tmp_path):
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        paths = pool.map(_build, [str(tmp_path)] * 8)
    assert set(paths) == {str(tmp_path / "truekernel" / "thing")}
    assert (tmp_path / "truekernel" / "thing" / "file").read_text() == "whole"
    assert [p.name for p in (tmp_path / "truekernel").iterdir()] == ["thing"]


def test_a_failed_build_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache.cache_root.cache_clear()
    try:
        with pytest.raises(ZeroDivisionError):
            cache.built_once("broken", lambda folder: 1 // 0)
        assert list((tmp_path / "truekernel").iterdir()) == []
    finally:
        cache.cache_root.cache_clear()


def test_entries_that_nobody_uses_are_dropped(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache.cache_root.cache_clear()
    try:
        old = cache.built_once("old", lambda folder: None)
        used = cache.built_once("used", lambda folder: None)
        long_ago = time.time() - 86400 * (cache.KEPT_DAYS + 1)
        for folder in (old, used):
            os.utime(folder, (long_ago, long_ago))
        cache.built_once("used", lambda folder: None)
        cache.built_once("new", lambda folder: None)
        assert sorted(p.name for p in (tmp_path / "truekernel").iterdir()) == ["new", "used"]
    finally:
        cache.cache_root.cache_clear()


@pytest.mark.parametrize("header", ["stdio.h", "cstdio"])
@pytest.mark.parametrize("call", ["printf", "std::printf"])
def test_printf_in_a_kernel_does_no_harm(header, call):
    source = f'#include <{header}>\n__global__ void one(float* x) {{ {call}("%d\\n", 5); x[threadIdx.x] = 1.0f; }}\n'
    buffers = (BufferSpec("x", (4,), "float32", "empty"),)
    plan = LaunchPlan(buffers, (Launch("one", (1, 1, 1), (4, 1, 1), (BufferArg(0),)),), (0,))
    library = simt.compile_single(source, ["one"])
    assert not isinstance(library, simt.CompileFailure), library
    with simt.Server(simt.default_compiler()) as server:
        server.define("one", plan, {})
        done = server.run(library, 0, [("one", Configuration())], keep_outputs=True)
    assert done.executions[0].outcome.status == "ok", done.executions[0].outcome
    assert done.outputs[0][0].tolist() == [1.0] * 4


def test_a_full_disk_is_the_machines_fault(monkeypatch):
    with pytest.raises(MachineError, match="no space left in TMPDIR"):
        compile_module.check_space(
            "fatal error: error in backend: IO failure on output stream: No space left on device"
        )
    compile_module.check_space("error: unknown type name 'flot'")
    monkeypatch.setattr(compile_module, "LEAST_FREE", 1 << 62)
    with pytest.raises(MachineError, match="no space left in TMPDIR"):
        simt.compile_single("__global__ void f( {", ["f"])


def test_a_compiler_that_no_shell_can_read(monkeypatch, fresh_choice):
    monkeypatch.setenv("TRUEKERNEL_CXX", "clang++ 'x")
    with pytest.raises(CompilerMissingError, match="does not run"):
        simt.default_compiler()
    assert simt.find_compilers()
    with pytest.raises(BadInputError, match="does not run"):
        toolchain.compiler_named("clang++ 'x")
