"""Verdicts on small candidates: right ones, wrong ones, and ones that break rules."""

import pytest
from judge_files import PLAIN_REFERENCE, REFERENCE, SOLVE, ZERO_REFERENCE, model

from truekernel import corpus
from truekernel.errors import BadInputError
from truekernel.judge.candidates import Candidate, load_candidate
from truekernel.judge.check import check, prepare
from truekernel.judge.posing import pose
from truekernel.judge.steps import new_secret, steps


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    path = tmp_path_factory.mktemp("linear") / "ref.py"
    path.write_text(REFERENCE)
    posed = pose(str(path))
    return posed, prepare(posed, new_secret())


@pytest.fixture(scope="module")
def elu():
    posed = pose("elu")
    return posed, prepare(posed, new_secret())


def judged(posed_suite, text, form="model", attribute="ModelNew", **more):
    posed, suite = posed_suite
    return check(Candidate("c", form, text, attribute=attribute), posed, suite=suite, **more)


def test_a_right_model(linear):
    verdict = judged(linear, model())
    assert (verdict.word, verdict.exit_code) == ("right", 0), verdict.why
    assert verdict.deterministic is True
    assert verdict.precision.found == "float32"
    assert all(case.verdict == "accept" and case.output_sha256 for case in verdict.cases)
    assert any(case.follows and not case.near for case in verdict.cases) and any(case.near for case in verdict.cases)
    assert all(wall.up for wall in verdict.walls if wall.name != "control groups")
    assert verdict.state == ()
    assert any("GPU" in text for text in verdict.not_covered)


def test_weights_are_placed_in_order_where_names_differ(linear):
    text = model("torch.tanh(self.lin(x))").replace("self.linear =", "self.lin =")
    assert judged(linear, text).word == "right"
    lacking = model("x").replace("self.linear = torch.nn.Linear(wide, narrow)", "pass")
    with pytest.raises(BadInputError, match="have no place in ModelNew"):
        judged(linear, lacking)


def test_weights_are_drawn_anew(linear):
    # Right with the weights that a new model has, were they known.
    text = model("torch.tanh(x @ self.kept.t() + self.linear.bias)").replace(
        "(wide, narrow)\n\n    def forward",
        "(wide, narrow)\n        self.kept = self.linear.weight.detach().clone()\n\n    def forward",
    )
    assert judged(linear, text).word == "wrong"


def test_weights_may_be_prepared_once(linear):
    text = model("torch.tanh(x @ self.turned() + self.linear.bias)") + (
        "\n    def turned(self):\n        if not hasattr(self, 'kept'):\n"
        "            self.kept = self.linear.weight.t().contiguous()\n        return self.kept\n"
    )
    assert judged(linear, text).word == "right"


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("torch.tanh(self.linear(x)) * 1.00001", "what honest arithmetic may show"),
        ("torch.tanh(self.linear(x)).double()", "float64, float32 is wanted"),
        ("torch.tanh(self.linear(x))[:, :1].contiguous()", "has the shape"),
        ("torch.tanh(self.linear(x)).t().contiguous().t()", "other strides"),
        ("[torch.tanh(self.linear(x))] * 2", "2 outputs, 1 are wanted"),
        ("torch.tanh(self.linear(x)).tolist()", "outputs, 1 are wanted"),
        ("None", "NoneType, not exactly a torch.Tensor"),
        ("1 / 0", "raises ZeroDivisionError"),
        ("torch.tanh(self.linear(x.mul_(1.5)))", "writes to its input 'x'"),
        ("__import__('os')._exit(0)", "its process ended with exit status 0"),
        ("__import__('os').kill(__import__('os').getpid(), 11)", "ended with signal 11"),
        ("bytearray(6 << 30)", "memory"),
    ],
)
def test_wrong_models(linear, result, said):
    verdict = judged(linear, model(result))
    assert (verdict.word, verdict.exit_code) == ("wrong", 1)
    assert said.lower() in verdict.why.lower()


def test_a_model_that_hangs(linear):
    verdict = judged(linear, model("__import__('time').sleep(60)"), call_seconds=1.0)
    assert verdict.word == "wrong" and "within 1 seconds" in verdict.why


def test_state_that_is_changed_is_told(linear):
    text = "import torch\ntorch.backends.cudnn.benchmark = True\ntorch.allclose = lambda *a, **k: True\n" + model(
        "self.run(x)"
    )
    text += (
        "\n    def run(self, x):\n        import os\n        os.environ['NVIDIA_TF32_OVERRIDE'] = '1'\n"
        "        torch.set_flush_denormal(True)\n        return torch.tanh(self.linear(x))\n"
    )
    found = {(change.stage, change.name) for change in judged(linear, text).state}
    assert found == {
        ("import", "numeric.cudnn_benchmark"),
        ("import", "callables.torch.allclose"),
        ("calls", "environment.NVIDIA_TF32_OVERRIDE"),
        ("calls", "numeric.flush_denormal"),
    }


def test_a_forged_state_is_no_crash(linear):
    text = "import sys\nfor m in list(sys.modules.values()):\n    if hasattr(m, 'snapshot') and hasattr(m, 'FP32'):\n        m.snapshot = lambda: [1, {}]\n"
    verdict = judged(linear, text + model())
    assert (verdict.word, verdict.state) == ("right", ())


def test_garbage_on_the_pipe(linear):
    text = model("self.shout()") + (
        "\n    def shout(self):\n        import os\n        for k in range(3, 64):\n            try:\n"
        "                os.write(k, os.urandom(4096))\n            except OSError:\n                pass\n        return None\n"
    )
    verdict = judged(linear, text)
    assert verdict.word == "wrong" and "bytes that are no answer" in verdict.why


def test_a_process_that_does_not_start_is_no_fault_of_the_candidate(linear, monkeypatch):
    from truekernel.errors import MachineError
    from truekernel.judge import session

    script, policy = session._python_policy()
    monkeypatch.setattr(session, "_python_policy", lambda: (f"{script}.gone", policy))
    with pytest.raises(MachineError, match="does not start"):
        judged(linear, model())


def test_a_file_that_can_not_be_imported(linear):
    with pytest.raises(BadInputError, match="candidate c: its file can't be imported: ModuleNotFoundError"):
        judged(linear, "import no_such_module\n" + model())


def test_results_that_vary_are_told(linear):
    text = model("torch.tanh(self.mixed(x, torch.randperm(x.shape[1])))") + (
        "\n    def mixed(self, x, order):\n"
        "        return sum(x[:, k, None] * self.linear.weight[:, k] for k in order.tolist()) + self.linear.bias\n"
    )
    verdict = judged(linear, text)
    assert verdict.deterministic is False and verdict.word == "right", verdict.why


def test_precision_must_be_declared(linear):
    posed, _ = linear
    text = model(
        "torch.tanh(torch.nn.functional.linear(x.bfloat16().float(), self.linear.weight.bfloat16().float(), self.linear.bias))"
    )
    verdict = judged(linear, text)
    assert verdict.word == "wrong"
    assert verdict.precision.found == "bfloat16", verdict.precision
    declared = check(Candidate("c", "model", text, attribute="ModelNew"), posed, declared="bfloat16")
    assert declared.word == "right", declared.why
    assert declared.precision.declared == declared.precision.found == "bfloat16"
    with pytest.raises(BadInputError, match="--precision float9"):
        prepare(posed, new_secret(), "float9")


def test_plain_functions(tmp_path):
    path = tmp_path / "plain.py"
    path.write_text(PLAIN_REFERENCE)
    posed = pose(str(path))
    suite = prepare(posed, new_secret())
    good = "import torch\ndef go(x, y):\n    return y + torch.exp(-(x ** 2))\n"
    assert judged((posed, suite), good, "function", "go").word == "right"
    verdict = judged((posed, suite), good.replace("y + ", "x + "), "function", "go")
    assert verdict.word == "wrong"


def test_a_problem_that_tells_nothing(tmp_path):
    path = tmp_path / "zero.py"
    path.write_text(ZERO_REFERENCE)
    posed = pose(str(path))
    verdict = check(Candidate("c", "function", "def go(x):\n    return x * 0\n", attribute="go"), posed)
    assert (verdict.word, verdict.exit_code) == ("vacuous", 1)
    assert "zeros" in verdict.trivial


def test_cuda_with_host_code(elu, tmp_path):
    posed, suite = elu
    path = tmp_path / "s.cu"
    path.write_text(SOLVE)
    verdict = check(load_candidate(str(path), posed.problem), posed, suite=suite)
    assert verdict.word == "right", verdict.why
    assert "clang" in verdict.versions["compiler"] or "g" in verdict.versions["compiler"]
    path.write_text(SOLVE.replace("expm1f(x[i])", "1.00001f * expm1f(x[i])"))
    verdict = check(load_candidate(str(path), posed.problem), posed, suite=suite)
    assert verdict.word == "wrong"
    path.write_text(SOLVE.replace("i < n", "i < n - 1"))
    verdict = check(load_candidate(str(path), posed.problem), posed, suite=suite)
    assert verdict.word == "wrong"


def test_cuda_that_does_not_compile(elu, tmp_path):
    posed, suite = elu
    path = tmp_path / "s.cu"
    path.write_text(SOLVE.replace("expm1f", "no_such_function"))
    verdict = check(load_candidate(str(path), posed.problem), posed, suite=suite)
    assert verdict.word == "wrong" and "no_such_function" in verdict.why


def test_a_launch_plan_that_fails_on_some_lengths(elu):
    posed, suite = elu
    program = corpus.programs()["elu"]
    plan = program.plan_source.replace("rows, cols =", "assert axes['B'] != 3, 'three rows'\n    rows, cols =")
    verdict = check(Candidate("c", "plan", program.source, program.source, plan), posed, suite=suite)
    assert verdict.word == "wrong" and "launch plan fails" in verdict.why


def test_seeds_are_secret_and_repeatable():
    posed = pose("row_variance")
    from truekernel.checkers import checkers

    checker = checkers()["truekernel"]
    first, _ = steps(posed.problem, checker, "a" * 32)
    again, _ = steps(posed.problem, checker, "a" * 32)
    other, _ = steps(posed.problem, checker, "b" * 32)
    assert [step.case for step in first] == [step.case for step in again]
    public = {case.seed for case in checker.suite(posed.problem)}
    assert not public & {step.case.seed for step in first}
    assert not {step.case.seed for step in other} & {step.case.seed for step in first}
    near = next(number for number, step in enumerate(first) if step.near)
    changed = first[near].inputs["x"] != first[near - 1].inputs["x"]
    assert int(changed.sum()) == 1
    assert len(new_secret()) == 32 and new_secret() != new_secret()
