"""`truekernel bench` as it is typed: what it refuses, and what it prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from truekernel.cli.application import main
from truekernel.cli.bench import duration, print_result
from truekernel.cli.output import console
from truekernel.judge.bench.bench import Result, Row
from truekernel.judge.bench.comparing import compare

CORPUS = Path(__file__).parents[2] / "src/truekernel/corpus"
SOFTMAX = str(CORPUS / "softmax/softmax_online.cu")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([SOFTMAX, "--problem", "softmax", "--pairs", "1"], "2 or more"),
        ([SOFTMAX, "--problem", "softmax", "--pairs", "many"], "many"),
        ([SOFTMAX, "--problem", "softmax", "--baseline", "eagr"], "did you mean eager"),
        ([SOFTMAX, SOFTMAX, "--problem", "softmax", "--baseline", "eager"], "not both"),
        ([SOFTMAX, "--problem", "softmx"], "did you mean softmax"),
        (["nothing.cu", "--problem", "softmax"], "no such file"),
        ([SOFTMAX], "problem"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *arguments]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert said in lines[0]


def test_a_candidate_in_python_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "fast.py"
    file.write_text("import torch\n\n\ndef kernel(x):\n    return torch.softmax(x, dim=1)\n")
    assert main(["bench", f"{file}:kernel", "--problem", "softmax"]) == 2
    assert "beside the clock" in capsys.readouterr().err


def test_without_a_gpu_the_machine_is_at_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from truekernel.errors import GpuMissingError
    from truekernel.execution import cuda

    def missing(device: int = 0) -> None:
        raise GpuMissingError(f"no NVIDIA GPU number {device}: use the CPU")

    monkeypatch.setattr(cuda, "device_info", missing)
    assert main(["bench", SOFTMAX, "--problem", "softmax"]) == 3
    assert "no NVIDIA GPU" in capsys.readouterr().err


def test_a_result_says_what_it_rests_on(capsys: pytest.CaptureFixture[str]) -> None:
    found = compare([0.7, 0.71, 0.69, 0.7])
    row = Row("compile", found, 1e-4, 2e-4, precise=True, agree=True, rejected=0, state={}, blocks=())
    loose = Row("max-autotune-fast", found, 1e-4, 5e-5, precise=False, agree=False, rejected=1, state={}, blocks=())
    result = Result(
        "FASTER",
        "against compile",
        "compile",
        {"rows": 4},
        "a GPU",
        (row, loose),
        4e12,
        5e-5,
        9e-5,
        ("smaller than the official case",),
    )
    print_result(result, console())
    said = capsys.readouterr().out
    for wanted in (
        "FASTER",
        "a GPU, rows 4",
        "100 us",
        "200 us",
        "lower",
        "smaller than the official case",
        "4.00 TB/s",
    ):
        assert wanted in said, wanted


@pytest.mark.parametrize(("seconds", "text"), [(2.0, "2 s"), (1.5e-3, "1.5 ms"), (6.4e-6, "6.4 us"), (3e-9, "3 ns")])
def test_times_have_the_unit_that_suits_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text
