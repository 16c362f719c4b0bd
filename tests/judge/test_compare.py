"""Candidates side by side: right and wrong ones, ones that round otherwise, equal ones; and what is advised."""

import pytest
from judge_files import PLAIN_REFERENCE, SOLVE

from truekernel import corpus
from truekernel.errors import BadInputError, GpuMissingError, SourceError
from truekernel.execution import cuda
from truekernel.judge.bench.bench import Result, Row
from truekernel.judge.bench.comparing import compare as interval
from truekernel.judge.compare import timing
from truekernel.judge.compare.advice import advise
from truekernel.judge.compare.compare import compare
from truekernel.judge.compare.equivalence import equivalence
from truekernel.judge.compare.handed_in import check_words, hand_in, stated_problem
from truekernel.judge.compare.reading import auditability, deciding, library_calls
from truekernel.judge.compare.records import Compared
from truekernel.judge.posing import pose
from truekernel.judge.steps import new_secret

FUNCTIONS = """
import torch
from torch import exp as power

def plain(x, y):
    return torch.exp(-x * x) + y

def again(x, y):
    return torch.add(y, torch.exp(-(x * x)))

def other(x, y):
    return y + power(x * 0.5 * (-2.0 * x) * (1 / 3.0) * 3.0)

def wrong(x, y):
    return torch.exp(-x * x) + 1.001 * y

def half(x, y):
    x = x.bfloat16().float()
    return torch.exp(-x * x) + y.bfloat16().float()

def switching(x, y):
    torch.backends.cudnn.benchmark = True
    return torch.exp(-x * x) + y

def kept(x, y):
    return torch.exp(-x * x) + y.flip(0)
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    (folder / "ref.py").write_text(PLAIN_REFERENCE)
    (folder / "f.py").write_text(FUNCTIONS)
    return pose(str(folder / "ref.py")), folder


def compared(plain, *names, precisions=(), timed=False):
    posed, folder = plain
    handed_in = hand_in([f"{folder / 'f.py'}:{name}" for name in names], posed.problem, precisions)
    return compare(handed_in, posed, str(folder / "ref.py"), secret=new_secret(), timed=timed)


def test_a_wrong_candidate_is_never_advised(plain):
    found = compared(plain, "wrong", "plain")
    assert [entry.verdict.word for entry in found.candidates] == ["wrong", "right"]
    assert (found.take, found.exit_code) == ("B", 0)
    assert "A is wrong" in found.advice and "only one" in found.advice
    (pair,) = found.pairs
    assert pair.same_bits is False and pair.largest > 10 and pair.where
    assert found.candidates[0].untimed == "--no-times"


def test_none_is_advised_where_none_is_right(plain):
    found = compared(plain, "wrong", "kept")
    assert (found.take, found.exit_code) == ("", 1)
    assert found.advice.startswith("None can be advised: A is wrong") and "B is wrong" in found.advice


def test_equal_ones_and_ones_that_round_otherwise(plain):
    found = compared(plain, "plain", "again", "other")
    assert {entry.verdict.word for entry in found.candidates} == {"right"}
    pairs = {(pair.first, pair.second): pair for pair in found.pairs}
    equal, rounded = pairs["A", "B"], pairs["A", "C"]
    assert (equal.same_bits, equal.largest, equal.where) == (True, 0.0, "")
    assert rounded.same_bits is False and 0.0 < rounded.largest < 10
    assert rounded.cases == len(found.candidates[0].verdict.cases) > 5
    assert "B gave the same bits as A" in found.advice and "those of C lie up to" in found.advice
    # All facts but the bits are the same.
    assert found.take == "A" and "nothing found tells B and C from it" in found.advice


def test_all_see_the_same_inputs(plain):
    found = compared(plain, "plain", "half", precisions=("B=bfloat16",))
    cases = [[(case.case_id, case.seed) for case in entry.verdict.cases] for entry in found.candidates]
    assert cases[0] == cases[1]
    first, second = (entry.verdict.precision for entry in found.candidates)
    assert (first.declared, first.found, second.declared, second.found) == (
        "float32",
        "float32",
        "bfloat16",
        "bfloat16",
    )
    assert found.candidates[1].verdict.word == "right", found.candidates[1].verdict.why
    # The unit is the error scale of the problem's own precision, whatever was declared.
    assert found.pairs[0].largest > 1000
    assert found.take == "A" and "computes in float32, not in less" in found.advice


def test_precision_that_is_not_declared_is_wrong(plain):
    found = compared(plain, "half", "plain")
    assert found.take == "B" and "A is wrong" in found.advice
    assert found.candidates[0].verdict.precision.found == "bfloat16"


def test_changed_state_counts_against_and_is_said(plain):
    found = compared(plain, "switching", "plain")
    assert [change.name for change in found.candidates[0].verdict.state] == ["numeric.cudnn_benchmark"]
    assert found.take == "B" and "changes less state" in found.advice
    alone = compared(plain, "switching", "wrong")
    assert alone.take == "A" and "It changes numeric.cudnn_benchmark" in alone.advice


def test_the_document_reads_back(plain):
    found = compared(plain, "plain", "wrong")
    assert Compared.model_validate_json(found.model_dump_json()) == found
    assert any("joules" in text for text in found.not_measured)


def test_device_code_beside_a_library(tmp_path):
    posed = pose("elu")
    (tmp_path / "solve.cu").write_text(SOLVE)
    (tmp_path / "racing.cu").write_text(SOLVE.replace("if (i < n)", "if (i < n - 1)"))
    (tmp_path / "lib.py").write_text("import torch.nn.functional as F\n\n\ndef go(x):\n    return F.elu(x)\n")
    words = [str(tmp_path / name) for name in ("lib.py:go", "solve.cu", "racing.cu")]
    found = compare(hand_in(words, posed.problem), posed, "elu", secret=new_secret(), timed=False)
    library, own, wrong = found.candidates
    assert [entry.verdict.word for entry in found.candidates] == ["right", "right", "wrong"]
    assert (library.deciding.kernels, library.deciding.calls) == ("library", ("torch.nn.functional.elu",))
    assert (own.deciding.kernels, own.deciding.launches) == ("candidate", "translated host code")
    look = own.auditability
    assert (look.files, look.kernels, look.readable, look.mutated, look.sanitised) == (1, 1, True, True, True)
    assert not (library.auditability.readable or library.auditability.mutated or library.auditability.sanitised)
    assert found.take == "B" and "its device code can be sanitised" in found.advice
    assert wrong.label in found.advice


# ---------------------------------------------------------------- reading


def test_library_calls_by_all_ways_of_importing():
    text = (
        "from __future__ import annotations\nimport torch, torch.nn.functional as F\nfrom torch import nn, exp as e\n"
        "def go(x):\n    own(x)\n    x.relu()\n    return F.gelu(e(torch.linalg.norm(nn.ReLU()(x))))\n"
    )
    assert library_calls(text) == ("torch.exp", "torch.linalg.norm", "torch.nn.ReLU", "torch.nn.functional.gelu")
    assert library_calls("def go(x):\n    return x\n") == ()


def test_a_program_with_a_plan_is_two_files():
    from truekernel.judge.candidates import Candidate

    program = corpus.programs()["softmax_two_kernels"]
    candidate = Candidate("c", "plan", program.source, program.source, program.plan_source)
    look = auditability(candidate, sanitised=False)
    assert (look.files, look.kernels, look.mutated, look.sanitised) == (2, 2, True, False)
    assert deciding(candidate).launches == "plan"


# ---------------------------------------------------------------- equivalence


def test_outputs_that_are_no_numbers_on_one_side(plain):
    from truekernel.judge.check import prepare

    posed, _ = plain
    suite = prepare(posed, new_secret())
    good = {step.case.id: [want.published for want in step.expected] for step in suite.steps}
    bad = {case: [tensor.clone() for tensor in tensors] for case, tensors in good.items()}
    next(iter(bad.values()))[0].reshape(-1)[0] = float("nan")
    found = equivalence("A", "B", good, bad, suite.strict)
    assert (found.same_bits, found.nonfinite, found.largest) == (False, 1, 0.0)
    nothing = equivalence("A", "B", good, {}, suite.strict)
    assert (nothing.cases, nothing.same_bits, nothing.largest) == (0, None, None)


def test_indices_are_counted_not_measured():
    from truekernel.judge.check import prepare

    posed = pose("argmin_dim")
    suite = prepare(posed, new_secret())
    good = {step.case.id: [want.published for want in step.expected] for step in suite.steps}
    bad = {case: [tensor + 1_000_000 for tensor in tensors] for case, tensors in good.items()}
    found = equivalence("A", "B", good, bad, suite.strict)
    assert found.same_bits is False and found.others > 0
    assert equivalence("A", "B", good, good, suite.strict).others == 0


# ---------------------------------------------------------------- what is handed in


def test_words_that_are_refused(tmp_path):
    with pytest.raises(BadInputError, match="1 candidate to compare"):
        check_words(["a.cu"])
    with pytest.raises(BadInputError, match="26 at most"):
        check_words([f"{n}.cu" for n in range(27)])
    with pytest.raises(BadInputError, match="given twice"):
        check_words(["a.cu", "b.cu", f"{tmp_path}/../{tmp_path.name}/a.cu", f"{tmp_path}/a.cu"])
    check_words(["a.py:one", "a.py:two"])
    (tmp_path / "link.cu").symlink_to(tmp_path / "a.cu")
    with pytest.raises(BadInputError, match="given twice"):
        check_words([f"{tmp_path}/a.cu", f"{tmp_path}/link.cu"])
    (tmp_path / "loop.cu").symlink_to(tmp_path / "loop.cu")
    check_words([f"{tmp_path}/loop.cu", "a.cu"])


def test_the_problem_that_plans_state(tmp_path):
    (tmp_path / "a.cu").write_text("")
    (tmp_path / "a.py").write_text("PROBLEM = 'softmax'\n")
    (tmp_path / "b.cu").write_text("")
    (tmp_path / "b.py").write_text("PROBLEM = 'gelu'\n")
    (tmp_path / "c.cu").write_text("")
    assert stated_problem([str(tmp_path / "a.cu"), str(tmp_path / "c.cu")]) == "softmax"
    with pytest.raises(BadInputError, match="gelu and softmax: give --problem"):
        stated_problem([str(tmp_path / "a.cu"), str(tmp_path / "b.cu")])
    with pytest.raises(BadInputError, match="no launch plan names one: give --problem"):
        stated_problem([str(tmp_path / "c.cu")])
    (tmp_path / "b.py").write_text("PROBLEM = (\n")
    assert stated_problem([str(tmp_path / "a.cu"), str(tmp_path / "b.cu")]) == "softmax"


@pytest.mark.parametrize("words", ["tf32", "C=tf32", "=tf32", "B=", "AB=tf32"])
def test_precisions_that_are_refused(plain, words):
    posed, folder = plain
    with pytest.raises(BadInputError, match="write LABEL=PRECISION, with a label of A, B"):
        hand_in([f"{folder / 'f.py'}:plain", f"{folder / 'f.py'}:other"], posed.problem, [words])


def test_a_candidate_that_needs_a_gpu(plain, tmp_path):
    posed, folder = plain
    (tmp_path / "t.py").write_text("import triton\n\n\ndef go(x, y):\n    return x\n")
    with pytest.raises(BadInputError, match="Triton kernels can't be judged without a GPU"):
        hand_in([f"{folder / 'f.py'}:plain", f"{tmp_path / 't.py'}:go"], posed.problem)
    (tmp_path / "t.py").write_text("def go(:\n")
    with pytest.raises(SourceError):
        hand_in([f"{folder / 'f.py'}:plain", f"{tmp_path / 't.py'}:go"], posed.problem)


# ---------------------------------------------------------------- times


def row(name, ratio, ours, precise=True, agree=True):
    logs = [ratio, ratio + 0.001, ratio - 0.001]
    return Row(name, interval(logs), ours, ours * 2, precise, agree, 0, {}, ())


@pytest.fixture
def clock(monkeypatch, plain):
    """Bench as if it had measured: each function takes what `seconds` says, alike within 2 %."""
    seconds = {"plain": 1e-4, "again": 1e-4, "other": 2e-4}
    monkeypatch.setattr(cuda, "device_info", lambda device=0: None)

    def bench(candidate, posed, problem, *, secret, other=None, pairs=8, baselines=()):
        import math

        mine = seconds[candidate.attribute]
        if isinstance(mine, str):
            if mine == "refused":
                raise BadInputError("its Python would run beside the clock")
            return Result(mine, "as said", "", {}, "a GPU")
        if other is not None:
            found = row(other.name, math.log(seconds[other.attribute] / mine), mine)
            return Result(found.comparison.word, "", other.name, {}, "a GPU", (found,))
        found = row("eager", math.log(1.5e-4 / mine), mine)
        return Result(found.comparison.word, "against eager", "eager", {"rows": 3}, "a GPU", (found,))

    monkeypatch.setattr(timing, "bench", bench)
    return seconds


def test_the_faster_one_is_advised(plain, clock):
    found = compared(plain, "other", "plain", timed=True)
    assert found.take == "B" and "B is 2.00 times as fast as A" in found.advice
    assert [entry.times.word for entry in found.candidates] == ["SLOWER", "FASTER"]
    (pair,) = found.pairs
    assert (pair.first, pair.second, pair.time.name, pair.time.word) == ("B", "A", "A", "FASTER")
    assert found.candidates[0].untimed == "" and len(found.not_measured) == 1


def test_a_faster_one_of_lower_precision_is_said_to_be(plain, clock):
    clock["half"] = 5e-5
    found = compared(plain, "plain", "half", precisions=("B=bfloat16",), timed=True)
    assert found.take == "B" and "computes in bfloat16, as declared, where the problem is float32" in found.advice


@pytest.mark.parametrize("word", ["SLOWER", "AMBIGUOUS"])
def test_side_by_side_counts_more_than_medians_apart(plain, clock, word):
    found = compared(plain, "plain", "other", timed=True)
    pair = found.pairs[0]
    assert (pair.first, pair.second) == ("A", "B")
    turned = pair.time.model_copy(update={"word": word, "ratio": 0.5, "low": 0.4, "high": 0.6})
    entries = list(found.candidates)
    shaky = {"deterministic": False}
    entries[0] = entries[0].model_copy(update={"verdict": entries[0].verdict.model_copy(update=shaky)})
    take, advice = advise(entries, [pair.model_copy(update={"time": turned})], "float32")
    assert take == "B"
    assert ("B is 2.00 times as fast as A (1.67 to 2.50)" in advice) == (word == "SLOWER")


def test_within_noise_time_does_not_decide(plain, clock):
    found = compared(plain, "plain", "again", timed=True)
    assert found.take == "A" and "A and B are not shown to differ in time" in found.advice


def test_wrong_ones_are_not_timed_and_slow_ones_are_said(plain, clock):
    found = compared(plain, "wrong", "other", timed=True)
    assert found.candidates[0].times is None and found.candidates[0].untimed == "it is not right"
    assert found.take == "B" and "slower than the baseline eager" in found.advice


@pytest.mark.parametrize("word", ["WRONG", "IMPOSSIBLE"])
def test_what_its_timing_disproves_is_not_advised(plain, clock, word):
    clock["plain"] = word
    found = compared(plain, "plain", "other", timed=True)
    assert found.take == "B" and f"its timing says {word}" in found.advice


def test_what_can_not_be_timed_is_said(plain, clock):
    clock["again"] = "refused"
    found = compared(plain, "plain", "again", "other", timed=True)
    assert found.candidates[1].untimed == "its Python would run beside the clock"
    assert found.take == "A" and "How fast B would be is not known" in found.advice


def test_without_a_gpu_a_line_says_so(plain, monkeypatch):
    def missing(device=0):
        raise GpuMissingError("no NVIDIA GPU: use the CPU")

    monkeypatch.setattr(cuda, "device_info", missing)
    found = compared(plain, "plain", "other", timed=True)
    assert found.not_measured[0] == "times are not measured: no NVIDIA GPU: use the CPU"
    assert "Speed decides nothing" in found.advice


def test_advice_needs_nothing_but_the_facts(plain):
    found = compared(plain, "plain", "wrong")
    assert advise(found.candidates, found.pairs, "float32") == (found.take, found.advice)
