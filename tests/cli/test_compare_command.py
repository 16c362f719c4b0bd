"""`truekernel compare` as it is typed: what it refuses, and what it prints."""

import json
from pathlib import Path

import pytest

from truekernel.cli import main

REFERENCE = "import torch\n\nrows = 4\n\n\ndef reference(x):\n    return torch.sin(x) * 2\n\n\ndef get_inputs():\n    return [torch.randn(rows, 32)]\n"
MINE = "import torch\n\n\ndef go(x):\n    return 2 * torch.sin(x)\n\n\ndef stay(x):\n    return 2 * x\n"
SOFTMAX = Path(__file__).parents[2] / "src/truekernel/corpus/softmax"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "ref.py").write_text(REFERENCE)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "copy.py").write_text(MINE)
    (tmp_path / "broken.py").write_text("def go(:\n")
    (tmp_path / "failing.py").write_text("import no_such_module\n\n\ndef go(x):\n    return x\n")
    (tmp_path / "triton.py").write_text("import triton\n\n\ndef go(x):\n    return x\n")
    (tmp_path / "binary.cu").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "alone.cu").write_text("__global__ void k(float* y) { y[0] = 0; }\n")
    return tmp_path


def test_a_right_one_a_copy_and_a_wrong_one(files, capsys):
    words = [f"{files}/{name}" for name in ("mine.py:go", "copy.py:go", "mine.py:stay")]
    assert main(["compare", *words, "--problem", f"{files}/ref.py", "--no-times"]) == 0
    out = capsys.readouterr().out
    for wanted in (
        "A  mine.py:go",
        "RIGHT",
        "WRONG",
        "host code of its own",
        "torch.sin",
        "declared float32, found float32",
        "A and B: the same bits on",
        "A and C: other bits on",
        "times are not measured: --no-times",
        "joules a call are not measured",
        "ADVICE  Take A",
        "C is wrong",
    ):
        assert wanted in " ".join(out.split()) or wanted in out, wanted


def test_json_and_exit_code_1(files, capsys):
    words = [f"{files}/mine.py:stay", f"{files}/copy.py:stay", "--problem", f"{files}/ref.py", "--no-times", "--json"]
    assert main(["compare", *words]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["take"] == "" and document["format"] == 1
    assert [entry["label"] for entry in document["candidates"]] == ["A", "B"]
    assert document["candidates"][0]["verdict"]["word"] == "wrong"
    assert document["pairs"][0]["same_bits"] is True and document["pairs"][0]["largest"] == 0.0


def test_the_problem_is_that_of_the_plans(capsys):
    words = [str(SOFTMAX / name) for name in ("softmax_two_kernels.cu", "softmax_online.cu")]
    assert main(["compare", *words, "--no-times"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("for softmax\n") and "launched by us as its plan says" in " ".join(out.split())
    assert "ADVICE  Take B: against A, it has fewer kernels (1)" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "0 candidate"),
        (["{}/mine.py:go"], "give two or more"),
        (["{}/mine.py:go", "{}/../{name}/mine.py:go", "--problem", "softmax"], "given twice"),
        (["{}/mine.py:go", "{}/mine.py:stay"], "give --problem"),
        ([".", "{}/mine.py:stay"], "give --problem"),
        (["{}/mine.py:go", "long" * 100 + ".cu"], "give --problem"),
        (["{}/mine.py:go", "long" * 100 + ".cu", "--problem", "{}/ref.py"], "File name too long"),
        ([".", "{}/mine.py:stay", "--problem", "{}/ref.py"], "give a .cu file"),
        (["{}/mine.py:go", "{}/mine.py:stay", "--problem", "softmx"], "did you mean"),
        (["{}/mine.py:go", "{}/mine.py:stay", "--problem", "{}/gone.py"], "no such file"),
        (["{}/mine.py:go", "{}/gone.py:go", "--problem", "{}/ref.py"], "no such file"),
        (["{}/mine.py:go", "{}/binary.cu", "--problem", "{}/ref.py"], "not UTF-8"),
        (["{}/mine.py:go", "{}/broken.py:go", "--problem", "{}/ref.py"], "broken.py:1"),
        (["{}/mine.py:go", "{}/failing.py:go", "--problem", "{}/ref.py"], "can't be imported"),
        (["{}/mine.py:go", "{}/triton.py:go", "--problem", "{}/ref.py"], "without a GPU"),
        (["{}/mine.py:go", "{}/alone.cu", "--problem", "{}/ref.py"], "solve"),
        (["{}/mine.py:go", "{}", "--problem", "{}/ref.py"], "give a .cu file"),
        (["{}/mine.py:go", "{}/mine.py:stay", "--problem", "{}/ref.py", "--precision", "C=tf32"], "LABEL=PRECISION"),
        (["{}/mine.py:go", "{}/mine.py:stay", "--problem", "{}/ref.py", "--precision", "B=float9"], "float9"),
        (["{}/mine.py:go", "{}/mine.py:stay", "--problem", "{}/ref.py", "--pairs", "1"], "2 or more"),
        (["{}/mine.py:go", "{}/mine.py:stay", "--problem", "{}/ref.py", "--baseline", "eagr"], "did you mean eager"),
        (["{}/mine.py:go", "{}/mine.py:stay", "--problem", "{}/ref.py", "--call-seconds", "0"], "give a time above 0"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(files, capsys, words, said):
    assert main(["compare", *(word.format(files, name=files.name) for word in words)]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_times_are_shown_with_their_intervals(capsys):
    from truekernel.cli.compare import _print_times
    from truekernel.cli.output import console
    from truekernel.judge.compare.records import Compared, Pair, TimeRow

    time = TimeRow(
        name="B", word="FASTER", ratio=1.5, low=1.4, high=1.6, pairs=8,
        candidate_seconds=1e-4, seconds=1.5e-4, precise=False, agree=False,
    )  # fmt: skip
    pair = Pair(first="A", second="B", cases=3, same_bits=True, largest=0.0, where="", nonfinite=0, others=0, time=time)
    found = Compared(problem="p", candidates=(), pairs=(pair,), take="", advice="", not_measured=())
    _print_times(found, console())
    out = capsys.readouterr().out
    for wanted in ("1.500", "1.400 to 1.600", "100 us", "150 us", "FASTER, of lower precision, clocks disagree"):
        assert wanted in out, wanted
