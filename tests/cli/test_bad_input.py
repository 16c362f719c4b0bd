"""Calls that can't be right end with one line and exit code 2, and nothing is lost."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from truekernel.cli import main
from truekernel.store import Store


def refused(argv, capsys):
    """The one line that a wrong call ends with."""
    assert main(argv) == 2
    err = capsys.readouterr().err.splitlines()
    assert len([line for line in err if line.startswith("truekernel: ")]) == 1 and "Traceback" not in "".join(err)
    return err[-1]


@pytest.mark.parametrize(
    ("argv", "near"),
    [
        (["--checker", "kernelbnech"], "did you mean kernelbench"),
        (["--checker", "no_such_module:fn"], "no_such_module"),
        (["--problems", "sofmax"], "did you mean softmax"),
        (["--rules", "drop-gaurd"], "did you mean drop-guard"),
        (["--problems", "softmax", "--rules", "zzz*"], "unknown rule 'zzz*'"),
        (["--program", "absent.cu"], "can't read absent.cu"),
        (["--program", "."], "a directory: name a .cu file"),
        (["--program", ""], "a directory: name a .cu file"),
        (["--program", __file__], "not a .cu file"),
        (["--solves", "elu"], "give the file that solves it with --program"),
    ],
)
def test_unknown_names_are_answered_with_near_ones(argv, near, capsys):
    assert near in refused(["audit", "--run", "here", *argv], capsys)
    assert not Path("here").exists()


def test_no_compiler(no_compilers, capsys):
    assert "no C++ compiler found: apt install clang" in refused(["audit", "--run", "here"], capsys)
    assert not Path("here").exists()


def test_compiler_that_does_not_run(no_compilers, monkeypatch, capsys):
    monkeypatch.setenv("TRUEKERNEL_CXX", "no-such-compiler")
    assert "TRUEKERNEL_CXX='no-such-compiler' does not run" in refused(["audit"], capsys)


@pytest.mark.parametrize(("ends", "said"), [(0, "writes no file and reports no error"), (1, "can't")])
def test_compiler_that_starts_and_does_nothing(tmp_path, ends, said):
    compiler = tmp_path / "clang++"
    compiler.write_text(
        f'#!/bin/sh\nif [ "$1" = --version ]; then echo "clang version 99.0"; exit 0; fi\nexit {ends}\n'
    )
    compiler.chmod(0o755)
    environment = os.environ | {"TRUEKERNEL_CXX": str(compiler), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    words = [sys.executable, "-m", "truekernel"]
    doctor = subprocess.run([*words, "doctor"], env=environment, capture_output=True, text=True, check=False)
    assert doctor.returncode == 1 and f"missing  compiler: clang 99.0 ({compiler}): " in doctor.stdout
    audit = [*words, "audit", "--problems", "elu", "--sample", "1", "--run", str(tmp_path / "run")]
    done = subprocess.run(audit, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 3 and "Traceback" not in done.stderr
    assert said in done.stderr and "truekernel doctor" in done.stderr and str(compiler) in done.stderr


@pytest.mark.parametrize("columns", ["0", "1", "2"])
def test_terminals_of_few_columns(columns):
    environment = os.environ | {"COLUMNS": columns}
    words = [sys.executable, "-m", "truekernel", "audit", "--help"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and "Exit codes" in done.stdout and not done.stderr


def test_a_reader_that_has_seen_enough_is_no_failure():
    words = f"{sys.executable} -m truekernel rules | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_export_to_a_directory(tmp_path, capsys):
    assert "a directory: name a file" in refused(["export", "elu", "--output", str(tmp_path)], capsys)


@pytest.mark.parametrize(("given", "said"), [("", "an empty id"), ("a" * 5000, f"unknown mutant '{'a' * 40}...'")])
def test_ids_that_are_none(tmp_path, capsys, given, said):
    from importlib.metadata import version

    Store.create(tmp_path / "run", {"tool_version": version("truekernel")}).close()
    line = refused(["replay", given, "--run", str(tmp_path / "run")], capsys)
    assert said in line and len(line) < 200


def test_run_directory_that_holds_no_run(capsys):
    assert "holds no run" in refused(["report", "nowhere"], capsys)
    assert "holds no run" in refused(["replay", "abc", "--run", "nowhere"], capsys)


def test_run_directory_below_a_file(capsys):
    Path("file").write_text("")
    assert "choose another --run directory" in refused(["audit", "--problems", "softmax", "--run", "file/run"], capsys)


def test_run_directory_in_use(capsys):
    store = Store.create(Path("old"), {})
    store.put_many("mutant", {"a": {}})
    store.close()
    assert "already holds a run: give --resume" in refused(["audit", "--problems", "softmax", "--run", "old"], capsys)


def test_run_directory_of_another_version(capsys):
    Store.create(Path("old"), {}).close()
    with sqlite3.connect("old/run.sqlite") as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    before = Path("old/run.sqlite").read_bytes()
    assert "made by another version (format 99" in refused(["report", "old"], capsys)
    assert "made by another version (format 99" in refused(
        ["audit", "--problems", "softmax", "--run", "old", "--resume"], capsys
    )
    assert Path("old/run.sqlite").read_bytes() == before


def test_run_directory_whose_file_is_damaged(capsys):
    Path("old").mkdir()
    Path("old/run.sqlite").write_bytes(b"this is no database" * 100)
    assert "run directory old is damaged" in refused(["report", "old"], capsys)
    assert "run directory old is damaged" in refused(["audit", "--run", "old", "--resume"], capsys)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_full_disk_is_a_failure_of_the_machine(capsys, monkeypatch):
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stdout", full)
        assert main(["rules"]) == 3
        monkeypatch.undo()
    assert "No space left on device" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["--rules", "benign"], "keeps the meaning of a kernel"),
        (["--rules", ",,"], "',,' names nothing"),
        (["--problems", ","], "',' names nothing"),
        (["--checker", ""], "'' names nothing"),
        (["--sample", "1.5"], "--sample 1.5: give a whole number"),
        (["--workers", "two"], "--workers two: give a whole number"),
        (["--run", "r" * 300], "File name too long"),
        (["--checker", "k" * 500], "unknown checker '" + "k" * 77 + "...'"),
    ],
)
def test_options_that_name_nothing_usable(argv, why, capsys):
    run = [] if "--run" in argv else ["--run", "here"]
    said = refused(["audit", "--problems", "softmax", *run, *argv], capsys)
    assert why in said
    assert len(said) < 600
    assert not Path("here").exists()


def test_mutants_of_what_is_no_fit_file(capsys):
    os.mkfifo("fifo")
    assert "not a file" in refused(["mutants", "fifo"], capsys)
    assert "no such file" in refused(["mutants", "absent.cu"], capsys)
    Path("nul.cu").write_bytes(b"__global__ void f(float* x) {}\n\0\n")
    assert "nul.cu:2:1: holds a NUL byte" in refused(["mutants", "nul.cu"], capsys)
    Path("large.cu").write_text("//" + "x" * (1 << 20))
    assert "larger than 1 MiB" in refused(["mutants", "large.cu"], capsys)
    Path("many.cu").write_text("".join(f"__global__ void f{k}(float* x) {{ x[0] = {k}; }}\n" for k in range(301)))
    assert "holds 301 device functions" in refused(["mutants", "many.cu"], capsys)


def test_mutants_of_standard_input():
    source = "__global__ void f(float* x) { x[0] = x[1] + 1.0f; }\n"
    command = [sys.executable, "-m", "truekernel", "mutants", "/dev/stdin"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=True)
    assert "mutants: " in done.stdout


def test_closed_and_narrow_outputs():
    Path("a.cu").write_text("__global__ void f(float* x) { /* é */ x[0] = x[1] + 1.0f; }\n", encoding="utf-8")
    command = f"{sys.executable} -m truekernel mutants a.cu --diff"
    closed = subprocess.run(["sh", "-c", f"{command} >&-"], capture_output=True, text=True, check=False)
    assert (closed.returncode, closed.stderr) == (0, "")
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    narrow = subprocess.run(["sh", "-c", command], env=ascii_only, capture_output=True, text=True, check=True)
    assert "\\xe9" in narrow.stdout
