"""Evaluation scripts, run and watched: a level one is clean, and each way to tilt one shows."""

import json
import subprocess
import sys

import pytest

from truekernel.errors import BadInputError
from truekernel.judge.scripts.auditing import audit_script

LEVEL = """
import time
import torch

{before}
class Model(torch.nn.Module):
    def forward(self, x):
        return x @ x


class ModelNew(torch.nn.Module):
    def forward(self, x):
        {enter}
        y = x @ x
        {leave}
        return y


def timed(model):
    x = torch.rand(64, 64)
    begun = time.perf_counter()
    for _ in range(5):
        model(x)
    return time.perf_counter() - begun


new = timed(ModelNew())
{between}
old = timed(Model())
{after}
print(f"speedup: {{old / new:.3f}}x")
"""


def audited(tmp_path, enter="", leave="", between="", before="", after="", **more):
    path = tmp_path / "evaluate.py"
    path.write_text(
        LEVEL.format(enter=enter or "pass", leave=leave or "pass", between=between, before=before, after=after)
    )
    return audit_script(path, **more)


def kinds(found):
    return {finding.kind for finding in found.findings}


def test_a_level_script_is_clean(tmp_path):
    found = audited(tmp_path)
    assert found.exit_code == 0, found
    assert not found.findings and not found.places and not found.notes
    assert [subject.name for subject in found.subjects] == ["ModelNew", "Model"]
    assert all(subject.calls == 5 and subject.milliseconds > 0 for subject in found.subjects)
    assert found.together and len(found.runs) == 1 and len(found.runs[0].metrics) == 1
    assert sum(found.clocks.values()) == 4 and all("evaluate.py" in place for place in found.clocks)


def test_a_candidate_that_turns_a_switch_on_for_itself(tmp_path):
    on, off = (f"torch.backends.cuda.matmul.fp32_precision = {value!r}" for value in ("tf32", "ieee"))
    found = audited(tmp_path, enter=on, leave=off)
    assert found.exit_code == 1
    assert {"conditions differ", "left changed"} <= kinds(found)
    differ = next(f for f in found.findings if f.kind == "conditions differ" and "fp32_precision" in f.text)
    assert "ModelNew tf32, Model ieee" in differ.text and "evaluate.py:" in differ.where
    assert [run.held for run in found.runs] == ["", "ModelNew", "Model"]
    assert all(run.exit_code == 0 and len(run.metrics) == 1 and not run.unheld for run in found.runs)


def test_held_runs_are_in_one_state(tmp_path):
    found = audited(
        tmp_path,
        enter="torch.set_num_threads(2)",
        leave="torch.set_num_threads(1)",
        after="print('threads', torch.get_num_threads())",
        metric=r"threads (\d+)",
    )
    assert [(run.held, run.metrics) for run in found.runs] == [("", (1.0,)), ("ModelNew", (2.0,)), ("Model", (1.0,))]


def test_a_property_is_held_too(tmp_path):
    found = audited(
        tmp_path,
        between="torch.backends.cudnn.benchmark = True",
        after="print('benchmark', int(torch.backends.cudnn.benchmark))",
        metric=r"benchmark (\d)",
    )
    assert [(run.held, run.metrics) for run in found.runs] == [("", (1.0,)), ("ModelNew", (0.0,)), ("Model", (1.0,))]


def test_what_is_set_for_all_is_level(tmp_path):
    found = audited(tmp_path, before="torch.backends.cuda.matmul.allow_tf32 = True")
    assert "conditions differ" not in kinds(found) and "left changed" in kinds(found)
    assert len(found.runs) == 1


def test_what_is_put_back_is_told(tmp_path):
    found = audited(tmp_path, before="torch.set_flush_denormal(True)", after="torch.set_flush_denormal(False)")
    assert kinds(found) == {"changed and put back"} and found.exit_code == 0


def test_replaced_clocks_and_comparisons(tmp_path):
    found = audited(tmp_path, between="torch.allclose = lambda *a, **k: True\ntime.perf_counter = lambda: 1.0")
    texts = [f.text for f in found.findings if f.kind == "replaced"]
    assert len(texts) == 2 and any("torch.allclose" in t for t in texts) and any("perf_counter" in t for t in texts)
    assert found.exit_code == 1


def test_environment_and_executed_text(tmp_path):
    found = audited(tmp_path, before="import os\nos.environ['NVIDIA_TF32_OVERRIDE'] = '1'\nexec('z = ' + str(3), {})")
    assert {"environment", "executed here"} <= kinds(found)
    assert {place.rule for place in found.places} == {"switch written", "shared process"}


def test_processes_of_their_own(tmp_path):
    one = "import torch\ntorch.set_num_threads({n})\nclass {name}(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n"
    for name, n in (("Old", 1), ("New", 2)):
        (tmp_path / f"{name}.py").write_text(one.format(name=name, n=n) + f"{name}()(torch.ones(3))\n")
    script = tmp_path / "both.py"
    script.write_text(
        "import subprocess, sys, pathlib\nhere = pathlib.Path(__file__).parent\n"
        "for name in ('Old', 'New'):\n    subprocess.run([sys.executable, str(here / (name + '.py'))], check=True)\n"
        "print('speedup 1.0')\n"
    )
    found = audit_script(script, level=False)
    assert found.processes == 3 and not found.together
    assert any(f.kind == "conditions differ" and "Old 1, New 2" in f.text for f in found.findings)


def test_a_python_that_can_not_be_watched_is_told(tmp_path):
    script = tmp_path / "blind.py"
    script.write_text("import subprocess, sys\nsubprocess.run([sys.executable, '-I', '-c', 'pass'], check=True)\n")
    assert any("not watched" in note for note in audit_script(script).notes)


def test_a_script_that_fails_or_hangs(tmp_path):
    script = tmp_path / "fails.py"
    script.write_text("raise SystemExit('no kernel')\n")
    found = audit_script(script)
    assert found.exit_code == 1 and any("ended with 1: no kernel" in note for note in found.notes)
    script.write_text("import time\ntime.sleep(60)\n")
    found = audit_script(script, timeout=1.0)
    assert found.runs[0].exit_code is None and any("ran past its time" in note for note in found.notes)


@pytest.mark.parametrize(("metric", "why"), [("(", "no regular expression"), ("speed", "one group")])
def test_bad_patterns(tmp_path, metric, why):
    script = tmp_path / "s.py"
    script.write_text("pass\n")
    with pytest.raises(BadInputError, match=why):
        audit_script(script, metric=metric)


def test_command_line(tmp_path):
    script = tmp_path / "s.py"
    script.write_text("import sys\nprint('speedup', len(sys.argv))\n")
    words = [sys.executable, "-m", "truekernel", "audit-script", str(script), "--json", "--", "--level", "3"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"][0]["metrics"] == [3.0]
    missing = subprocess.run([*words[:4], str(tmp_path / "none.py")], capture_output=True, text=True, check=False)
    assert missing.returncode == 2 and len(missing.stderr.strip().splitlines()) == 1
