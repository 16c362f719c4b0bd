import errno
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from truekernel.cli import main

KERNEL = """#include <cstdio>
__global__ void scale(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;  // i < n
    if (i < n) y[i] = x[i] * 2.0f + 1.0f;
}
int main() { scale<<<1, 32>>>(nullptr, nullptr, 0); return 0; }
"""


@pytest.fixture
def kernel(tmp_path):
    path = tmp_path / "scale.cu"
    path.write_text(KERNEL)
    return str(path)


def test_lists_mutants_of_a_strangers_file(kernel, capsys):
    assert main(["mutants", kernel]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith(f"{len(lines) - 1} mutants: ")
    assert any("boundary" in line for line in lines) and any("arithmetic" in line for line in lines)


def test_diff_shows_old_and_new_line(kernel, capsys):
    assert main(["mutants", kernel, "--rule", "drop-guard", "--diff"]) == 0
    out = capsys.readouterr().out
    assert "-    if (i < n) y[i]" in out and "+" in out
    assert "\x1b" not in out


def test_json_says_where_and_what(kernel, capsys):
    assert main(["mutants", kernel, "--rule", "boundary", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found
    for mutant in found:
        first = mutant["made_by"][0]
        assert first["class"] == "boundary" and 2 <= first["line"] <= 5
        assert mutant["diff"].startswith("--- a/scale.cu")


def test_rules_may_be_repeated(kernel, capsys):
    def count(*names):
        assert main(["mutants", kernel, "--json", *(word for name in names for word in ("--rule", name))]) == 0
        return len(json.loads(capsys.readouterr().out))

    assert count("boundary", "arithmetic") == count("boundary") + count("arithmetic")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("broken.cu", "__global__ void k(float* x {\n  x[0] = = 1;;)\n  for if ) {\n", "broken.cu:1:"),
        ("plain.cu", "int main() { return 0; }\n", "no __global__ or __device__ function"),
        ("letter.cu", "Dear all, this is not CUDA.\n", "letter.cu"),
    ],
)
def test_file_that_is_not_cuda(name, text, said, tmp_path, capsys):
    (tmp_path / name).write_text(text)
    assert main(["mutants", name]) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


def test_file_that_is_not_text(tmp_path, capsys):
    (tmp_path / "binary.cu").write_bytes(b"\x7fELF\xff\xfe\x00")
    assert main(["mutants", "binary.cu"]) == 2
    assert "not UTF-8" in capsys.readouterr().err


def test_places_that_do_not_parse_are_named(tmp_path, capsys):
    (tmp_path / "odd.cu").write_text(KERNEL.replace("* 2.0f", "* ;;) 2.0f"))
    assert main(["mutants", "odd.cu"]) == 0
    assert capsys.readouterr().err.startswith("odd.cu:4:")


@pytest.mark.parametrize("names", [["--rule", "boundary,arithmetic"], ["--rules", "boundary", "--rules", "arithmetic"]])
def test_rules_may_be_a_list_by_either_name(names, kernel, capsys):
    assert main(["mutants", kernel, "--json", "--rule", "boundary", "--rule", "arithmetic"]) == 0
    expected = capsys.readouterr().out
    assert main(["mutants", kernel, "--json", *names]) == 0
    assert capsys.readouterr().out == expected


def patched(kernel, diff, tmp_path):
    """The file after `patch -p1` with this text."""
    place = tmp_path / "patched"
    place.mkdir(exist_ok=True)
    (place / "scale.cu").write_text(Path(kernel).read_text())
    done = subprocess.run(["patch", "-p1"], input=diff, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "fuzz" not in done.stdout, done.stdout + done.stderr
    return (place / "scale.cu").read_text()


needs_patch = pytest.mark.skipif(shutil.which("patch") is None, reason="no patch")


@needs_patch
@pytest.mark.parametrize("end", ["", "\n", "  // end", "\n\n"])
def test_patch_takes_every_diff_and_gives_the_file_that_write_gives(end, kernel, tmp_path, capsys):
    start = KERNEL[: KERNEL.index("int main")].rstrip()
    Path(kernel).write_text(start + end)
    assert main(["mutants", kernel, "--json", "--write", "out"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found
    for mutant in found:
        text = Path("out", f"{mutant['id']}.cu").read_text()
        assert text != start + end and patched(kernel, mutant["diff"], tmp_path) == text


@needs_patch
def test_patch_takes_the_shown_diff(kernel, tmp_path, capsys):
    assert main(["mutants", kernel, "--rule", "drop-guard", "--diff"]) == 0
    shown = capsys.readouterr().out.splitlines()
    changed = patched(kernel, "\n".join(shown[1:-1]) + "\n", tmp_path)
    assert changed == KERNEL.replace("if (i < n)", "if (true)")


def test_written_mutants_are_indexed(kernel, capsys):
    assert main(["mutants", kernel, "--rule", "boundary", "--write", "deep/out"]) == 0
    assert "deep/out" in capsys.readouterr().err
    index = json.loads(Path("deep/out/index.json").read_text())
    assert {entry["file"] for entry in index} == {path.name for path in Path("deep/out").glob("*.cu")}
    assert all(entry["class"] == "boundary" and entry["line"] == 4 and entry["rule"] for entry in index)
    assert main(["mutants", kernel, "--rule", "boundary", "--write", "deep/out"]) == 0


@pytest.mark.parametrize(
    ("place", "said"), [("used", "holds other files (mine.cu)"), ("taken/below", "choose another")]
)
def test_folders_that_can_not_hold_mutants(place, said, kernel, capsys):
    Path("used").mkdir()
    Path("used/mine.cu").write_text("")
    Path("taken").write_text("")
    assert main(["mutants", kernel, "--write", place]) == 2
    assert said in capsys.readouterr().err
    assert not list(Path("used").glob("*.json"))


def test_a_disk_that_fills_up_leaves_no_part_of_the_mutants(kernel, monkeypatch, capsys):
    real, written = Path.write_bytes, []

    def write(path, data):
        written.append(path)
        if len(written) == 3:
            real(path, data[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(path, data)

    monkeypatch.setattr(Path, "write_bytes", write)
    assert main(["mutants", kernel, "--rule", "boundary", "--write", "out"]) == 2
    assert capsys.readouterr().err == "truekernel: --write out: No space left on device: choose another directory\n"
    assert not list(Path("out").iterdir())
