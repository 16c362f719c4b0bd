import json

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
