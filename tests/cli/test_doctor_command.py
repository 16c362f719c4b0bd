import json

from truekernel.cli import main
from truekernel.execution.simt import toolchain


def test_says_what_works_here(capsys):
    assert main(["doctor", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["able"] is True
    compiler = next(finding for finding in document["findings"] if finding["what"] == "compiler")
    assert compiler["good"] and any(name in compiler["detail"] for name in ("clang", "gcc", "zig"))
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out.endswith("This machine can run audits (no GPU is needed).\n")


def test_no_compiler(no_compilers, capsys):
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "missing  compiler: no C++ compiler found" in out and "mend: apt install clang" in out


def test_compiler_that_does_not_run(no_compilers, monkeypatch, capsys):
    monkeypatch.setenv("TRUEKERNEL_CXX", "no-such-compiler")
    assert main(["doctor"]) == 1
    assert "TRUEKERNEL_CXX='no-such-compiler' does not run" in capsys.readouterr().out


def test_compiler_that_starts_but_can_not_compile(no_compilers, capsys):
    broken = no_compilers / "g++"
    broken.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "g++ 13.0.0" && exit 0\necho "internal error" >&2\nexit 1\n'
    )
    broken.chmod(0o755)
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "missing  compiler: gcc 13.0.0" in out
    assert "Audits can't run here yet." in out


def test_broken_compiler_that_audits_would_use_although_others_work(tmp_path, monkeypatch, capsys):
    broken = tmp_path / "clang++-broken"
    broken.write_text("#!/bin/sh\n[ $1 = --version ] && echo 'clang version 99.0.0' && exit 0\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("TRUEKERNEL_CXX", str(broken))
    toolchain.default_compiler.cache_clear()
    monkeypatch.setattr("truekernel.cli.doctor._failure", lambda one: "it fails" if "broken" in one.path else "")
    assert main(["doctor"]) == 1
    toolchain.default_compiler.cache_clear()
    out = capsys.readouterr().out
    assert "missing  compiler: clang 99.0.0" in out and "ok       another compiler" in out
    assert "name one that works in TRUEKERNEL_CXX" in out


def test_missing_library_is_named_with_its_mend(monkeypatch, capsys):
    monkeypatch.setattr("truekernel.cli.doctor._LIBRARIES", ("no-such-library",))
    assert main(["doctor"]) == 1
    assert "mend: pip install no-such-library" in capsys.readouterr().out


def test_sanitised_build_that_sees_no_missing_barrier(monkeypatch, capsys):
    # The barrier is spelt so that taking it out takes nothing out: the sanitised build has nothing to see.
    from truekernel.cli import doctor

    monkeypatch.setattr(doctor, "_PROBE", doctor._PROBE.replace("__syncthreads();", "__syncthreads ();"))
    assert main(["doctor"]) == 1
    assert "its sanitised kernel ends in ok" in capsys.readouterr().out


def test_a_gpu_is_told_of_and_not_needed(monkeypatch, capsys):
    from truekernel.errors import GpuMissingError
    from truekernel.execution import cuda

    def none():
        raise GpuMissingError("no NVIDIA driver")

    monkeypatch.setattr(cuda, "device_info", none, raising=False)
    assert main(["doctor"]) == 0
    assert "missing  GPU: no NVIDIA driver (only --device cuda needs one)" in capsys.readouterr().out
    found = cuda.DeviceInfo("NVIDIA H200", "sm_90", 143 << 30, 13000)
    monkeypatch.setattr(cuda, "device_info", lambda: found, raising=False)
    assert main(["doctor"]) == 0
    assert "NVIDIA H200 (sm_90)" in capsys.readouterr().out
