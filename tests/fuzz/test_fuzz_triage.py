"""From failure to finding: confirmed, small, named; and its script."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from library_of_controls import NAMESPACE, case, install

from truekernel.fuzz.executor import Limits
from truekernel.fuzz.libraries import load
from truekernel.fuzz.minimising import candidates
from truekernel.fuzz.records import Call, Outcome, Reference, TensorValue, TestCase
from truekernel.fuzz.replaying import replay, verdict
from truekernel.fuzz.script import file_name, issue, script
from truekernel.fuzz.showing import fails
from truekernel.fuzz.triage import Triage, frames, key_of, signature, stem

LIMITS = Limits(seconds=2.0, idle_seconds=2.0, memory=3 << 30)
LARGE = TensorValue((6, 5), layout="transposed", seed=9)


@pytest.fixture
def triage(monkeypatch):
    made = Triage(install(monkeypatch), LIMITS)
    yield made
    made.close()


def test_a_crash_becomes_a_small_finding(triage):
    found = triage.examine(case("crash", LARGE), Outcome("crash", error="SIGSEGV"))
    assert found.reproduced == 3
    assert found.kind == "crash"
    (value,) = found.case.calls[0].leaves()
    assert value.layout == "contiguous"
    assert value.shape in ((1,), (), (1, 1))


def test_a_mismatch_becomes_a_finding_of_its_oracle(triage):
    found = triage.examine(
        case("imprecise", LARGE), Outcome("mismatch", "precision", message="values of output 0: ...")
    )
    assert (found.oracle, found.severity, found.public) == ("precision", "high", True)
    assert found.key == "precision:imprecise:values"


def test_what_does_not_fail_again_is_no_finding(triage):
    assert triage.examine(case("honest"), Outcome("crash", error="SIGSEGV")) is None
    assert triage.examine(case("honest"), Outcome("mismatch", "layout", message="values of output 0")) is None


def test_what_its_script_does_not_show_is_no_finding(triage):
    outcome = Outcome("mismatch", "precision", message="values of output 0: ...")
    assert triage.examine(case("faulty_here_only"), outcome) is None
    assert triage.why == "script passes"
    assert triage.examine(case("imprecise"), outcome) is not None
    assert triage.why == ""
    assert triage.examine(case("honest"), outcome) is None
    assert triage.why == "not again"


@pytest.mark.parametrize(
    ("kind", "body", "shown"),
    [
        ("mismatch", "torch.testing.assert_close(torch.ones(2), torch.zeros(2))", True),
        ("mismatch", "torch.testing.assert_close(torch.ones(2), torch.ones(2))", False),
        ("mismatch", "torch.no_such_thing(1)", False),
        ("crash", "import os; os.abort()", True),
        ("crash", "pass", False),
        ("assert", "raise RuntimeError('INTERNAL ASSERT FAILED')", True),
        ("hang", "pass", False),
    ],
)
def test_a_script_shows_its_kind_of_failure(tmp_path, kind, body, shown):
    path = tmp_path / "finding.py"
    path.write_text(f"import torch\n{body}\n")
    assert fails(path, kind)[0] == shown


def test_calls_that_break_a_contract_are_no_valid_input(triage):
    library = load("torch")
    grid = (TensorValue((1, 1, 2, 2)), TensorValue((1, 1, 1, 2), values="unit"))
    said = [
        library.violation(TestCase("torch", (Call("torch.grid_sampler", (*grid, mode, 0, False)),))) for mode in (0, 3)
    ]
    assert [bool(one) for one in said] == [False, True]


def test_a_sequence_is_cut_to_the_call_that_fails(triage):
    calls = (*case("honest").calls, Call(f"torch.{NAMESPACE}.asserts", (Reference(0),)), *case("honest").calls)
    outcome = Outcome("assert", call=1, error="RuntimeError", location="aten/src/ATen/native/Thing.cpp:77")
    found = triage.examine(TestCase("torch", calls), outcome)
    assert found.key == "assert:aten/src/ATen/native/Thing.cpp:77"
    assert len(found.case.calls) <= 2


def test_replay_tells_what_is_mended(monkeypatch, triage):
    found = triage.examine(case("imprecise"), Outcome("mismatch", "precision", message="values of output 0: ..."))
    from truekernel.fuzz import libraries

    monkeypatch.setattr(libraries, "load", lambda name: triage.library)
    honest = replace(found, case=case("honest"))
    gone = replace(found, case=TestCase("torch", (Call("torch.no_such_thing", ()),)))
    assert [one.verdict for one in replay([found, honest, gone])] == ["fails", "mended", "mended"]
    assert verdict(found, Outcome("crash")) == "otherwise"


SUM = TestCase(
    "torch",
    (Call("torch.add", (TensorValue((2, 2), data=(1.0, 2.0)), TensorValue((2,), layout="strided", values="ones"))),),
)


def test_scripts_run_by_themselves(triage, tmp_path):
    found = triage.examine(case("imprecise"), Outcome("mismatch", "precision", message="values of output 0: ..."))
    for oracle in (
        "execution",
        "determinism",
        "layout",
        "precision",
        "metadata",
        "in_place",
        "batching",
        "neighbours",
        "gradient",
    ):
        honest = replace(found, case=SUM, oracle=oracle)
        path = tmp_path / f"{oracle}.py"
        path.write_text(script(honest, triage.library))
        done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert len(path.read_text().splitlines()) < 25


def test_an_issue_says_what_a_maintainer_needs(triage):
    found = triage.examine(
        case("asserts"), Outcome("assert", error="RuntimeError", location="aten/src/ATen/native/Thing.cpp:77")
    )
    text = issue(found, triage.library)
    for part in (torch.__version__, "```python", "Expected:", "3 of 3"):
        assert part in text
    assert "/" not in file_name(found)


def test_root_causes_have_one_name():
    assert stem("torch.ops.aten.linalg_inv_ex.default") == stem("torch.linalg.inv_ex") == "inv_ex"
    one, other = (Outcome("mismatch", "layout", message=f"values of output 0: {number} against 2") for number in (1, 7))
    assert key_of("torch.add", one) == key_of("torch.Tensor.add_", other)
    assert signature(case("honest"), one) != signature(case("crash"), one)
    stack = (
        "frame #0: c10::FatalSignalHandler::stacktraceSignalHandler(bool) + 0x8f (0x7f in /x/libc10.so)\n"
        "frame #2: <unknown function> + 0x3c050 (0x7f in /lib/libc.so.6)\n"
        "frame #3: void at::native::(anonymous namespace)::col2im_kernel<float>(at::Tensor const&) + 0x10 (0x7f in /x/libtorch_cpu.so)\n"
    )
    assert frames(stack) == "at::native::col2im_kernel"
    assert frames("nothing") == ""


def test_candidates_are_smaller_and_end():
    seen, current, steps = set(), SUM, 0
    while steps < 200:
        following = next((one for one in candidates(current) if one.key() not in seen), None)
        if following is None:
            break
        seen.add(following.key())
        current, steps = following, steps + 1
    assert steps < 200
