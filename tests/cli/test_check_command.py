import json

import pytest

from truekernel.cli import main

REFERENCE = "import torch\n\nrows = 4\n\n\ndef reference(x):\n    return torch.sin(x) * 2\n\n\ndef get_inputs():\n    return [torch.randn(rows, 32)]\n"
GOOD = "import torch\n\n\ndef go(x):\n    return 2 * torch.sin(x)\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "ref.py").write_text(REFERENCE)
    (tmp_path / "mine.py").write_text(GOOD)
    return tmp_path


def test_right_with_evidence_that_replays(files, capsys):
    bundle = files / "evidence.zip"
    problem = str(files / "ref.py")
    assert main(["check", f"{files / 'mine.py'}:go", "--problem", problem, "--bundle", str(bundle), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["word"] == "right" and len(document["cases"]) > 5
    assert main(["replay", str(bundle)]) == 0
    assert "reproduced: right" in capsys.readouterr().out


def test_wrong(files, capsys):
    (files / "mine.py").write_text(GOOD.replace("2 * torch.sin(x)", "2 * x"))
    assert main(["check", f"{files / 'mine.py'}:go", "--problem", str(files / "ref.py")]) == 1
    out = capsys.readouterr().out
    assert out.startswith("WRONG") and "not covered" in out and "walls" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{}/gone.py", "--problem", "softmax"], "no such file"),
        (["{}/mine.py", "--problem", "softmax"], "no class ModelNew"),
        (["{}/mine.py:stay", "--problem", "softmax"], "defines no 'stay'"),
        (["{}/mine.py:go", "--problem", "softmx"], "did you mean"),
        (["{}/mine.py:go", "--problem", "{}/gone.py"], "no such file"),
        (["{}/mine.py:go", "--problem", "{}/mine.py"], "a problem needs"),
        (["{}/mine.py:go", "--problem", "softmax", "--bundle", "{}/mine.py"], "already exists"),
        (["{}/mine.py:go", "--problem", "softmax", "--call-seconds", "0"], "give a time above 0"),
        (["{}/mine.py:go"], "problem"),
    ],
)
def test_wrong_calls(files, capsys, words, said):
    assert main(["check", *(word.format(files) for word in words)]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_changed_bundle_is_refused(files, capsys):
    bundle = files / "b"
    bundle.mkdir()
    (bundle / "verdict.json").write_text("{}")
    assert main(["replay", str(bundle)]) == 2
    assert "not a bundle" in capsys.readouterr().err


def test_an_unknown_attack(capsys):
    assert main(["gauntlet", "--attack", "zeroes"]) == 2
    assert "did you mean zeros" in capsys.readouterr().err
