"""A stranger's .cu with host code, audited like a program of the corpus."""

import pytest

from truekernel import corpus
from truekernel.audit import AuditOptions, replay, run_audit
from truekernel.audit.plan import make_plan
from truekernel.corpus import load_program
from truekernel.errors import BadInputError
from truekernel.model import Program

HOST = """
__global__ void elu_kernel(const float* x, float* y, float alpha, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : alpha * expm1f(x[i]);
}
extern "C" void solve(const float* x, float* y, int B, int D) {
    int n = B * D;
    elu_kernel<<<(n + 127) / 128, 128>>>(x, y, 1.0f, n);
}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.cu"
    path.write_text(HOST)
    return path


def test_it_is_mutated_judged_and_replayed_from_the_run_alone(file, tmp_path):
    options = AuditOptions(
        tmp_path / "run",
        ("kernelbench", "truekernel"),
        programs=(load_program(file, problem="elu"),),
        rules=("boundary", "arithmetic"),
        sample=8,
        workers=1,
    )
    summary = run_audit(options)
    (program,) = summary.programs
    assert (program.name, program.problem, program.gate) == ("mine", "elu", "")
    assert summary.counts.witnessed > 0
    file.unlink()
    survivor = summary.survivors[0] if summary.survivors else None
    assert survivor is not None
    assert replay(tmp_path / "run", survivor.id).same


def test_a_wrong_program_is_refused(file, tmp_path):
    file.write_text(HOST.replace("expm1f", "expf"))
    options = AuditOptions(tmp_path / "run", programs=(load_program(file, problem="elu"),), sample=1, workers=1)
    with pytest.raises(BadInputError, match=r"'mine' fails its gate \(case '.+' with B \d+, D \d+, schedule \w+: "):
        run_audit(options)


RACY = """
__global__ void elu_kernel(const float* x, float* y, float alpha, int n) {
    __shared__ float tile[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : 0.0f;
    tile[(threadIdx.x + 1) % 128] += 0.0f;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : alpha * expm1f(x[i]);
}
extern "C" void solve(const float* x, float* y, int B, int D) {
    int n = B * D;
    elu_kernel<<<(n + 127) / 128, 128>>>(x, y, 1.0f, n);
}
"""


def test_a_program_that_is_right_by_luck_is_refused(file, tmp_path):
    file.write_text(RACY)
    options = AuditOptions(tmp_path / "run", programs=(load_program(file, problem="elu"),), sample=1, workers=1)
    with pytest.raises(BadInputError, match=r"'mine' fails its gate .*checked build: .*(race|uninitialised_read)"):
        run_audit(options)


def test_it_is_taken_alone_or_beside_chosen_problems(file, tmp_path):
    mine = load_program(file, problem="elu")
    alone = make_plan(AuditOptions(tmp_path, programs=(mine,), rules=("boundary",)))
    beside = make_plan(AuditOptions(tmp_path, programs=(mine,), problems=("mse_loss",), rules=("boundary",)))
    assert [p.name for p in alone.programs] == ["mine"]
    assert [p.name for p in beside.programs] == ["mse_loss", "mse_loss_atomic", "mine"]


def test_a_name_that_is_taken_is_refused(file, tmp_path):
    other = file.with_name("softmax_online.cu")
    file.rename(other)
    with pytest.raises(BadInputError, match="rename the file"):
        make_plan(AuditOptions(tmp_path, programs=(load_program(other, problem="elu"),)))


def test_a_program_survives_its_document(file):
    program = load_program(file, problem="elu")
    assert Program.of(program.document()) == program


def test_a_copy_of_a_program_of_ours_is_audited_like_any_other(tmp_path):
    ours = corpus.programs()["elu"]
    (tmp_path / "mine.cu").write_text(ours.source)
    (tmp_path / "mine.py").write_text(ours.plan_source)
    copy = load_program(tmp_path / "mine.cu")
    summary = run_audit(AuditOptions(tmp_path / "run", ("kernelbench",), programs=(copy,), sample=2, workers=1))
    assert summary.counts.balanced and [p.name for p in summary.programs] == ["mine"]
