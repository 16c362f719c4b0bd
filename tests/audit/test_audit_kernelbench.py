"""An audit whose references and inputs are those of a checkout of KernelBench."""

import pytest

from truekernel.audit import run_audit
from truekernel.audit.options import AuditOptions
from truekernel.audit.replaying import replay
from truekernel.errors import BadInputError, RunDirectoryError
from truekernel.report import wording

SOFTMAX = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)

batch_size = 4096
dim = 393216

def get_inputs():
    return [torch.rand(batch_size, dim)]

def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkout") / "KernelBench" / "level1"
    folder.mkdir(parents=True)
    (folder / "23_Softmax.py").write_text(SOFTMAX)
    (folder / "88_Other.py").write_text("raise RuntimeError('not a problem')\n")
    return folder.parent.parent


def options(checkout, run, **more):
    return AuditOptions(
        run_dir=run,
        checkers=("kernelbench@1e-4",),
        problems=more.pop("problems", ("softmax_online", "mse_loss")),
        sample=8,
        workers=1,
        kernelbench=checkout,
        **more,
    )


@pytest.fixture(scope="module")
def audited(checkout, tmp_path_factory):
    run = tmp_path_factory.mktemp("run") / "run"
    return run, run_audit(options(checkout, run))


def test_only_programs_whose_problem_the_checkout_has_are_audited(audited, checkout):
    _, summary = audited
    assert {program.problem for program in summary.programs} == {"softmax"}
    assert summary.run.kernelbench == str(checkout)
    assert set(summary.run.left_out) == {"mse_loss"}
    assert "mse_loss" in wording.references(summary)
    assert f"--kernelbench {checkout}" in wording.audit_command(summary)
    assert summary.counts.unique > 0
    assert summary.checkers[0].false_rejection.hits == 0


def test_witness_replays_against_the_reference_of_the_checkout_while_it_is_unchanged(audited, checkout):
    run, summary = audited
    assert summary.survivors
    mutant = summary.survivors[0].id
    assert replay(run, mutant).same
    file = checkout / "KernelBench" / "level1" / "23_Softmax.py"
    file.write_text(SOFTMAX + "\n# changed\n")
    try:
        with pytest.raises(BadInputError, match="gone or changed"):
            replay(run, mutant)
        with pytest.raises(RunDirectoryError, match="other options"):
            run_audit(options(checkout, run, resume=True))
    finally:
        file.write_text(SOFTMAX)


def test_reference_of_another_meaning_is_not_taken_for_ours(checkout, tmp_path):
    other = tmp_path / "KernelBench" / "level1"
    other.mkdir(parents=True)
    (other / "23_Softmax.py").write_text(SOFTMAX.replace("torch.softmax", "torch.log_softmax"))
    with pytest.raises(BadInputError, match="compute different things"):
        run_audit(options(tmp_path, tmp_path / "run", problems=("softmax_online",)))


def test_folder_that_is_no_checkout_and_problems_that_it_lacks_are_refused(checkout, tmp_path):
    with pytest.raises(BadInputError, match="not a checkout"):
        run_audit(options(tmp_path, tmp_path / "run"))
    with pytest.raises(BadInputError, match="'mse_loss': the checkout has no level1/94"):
        run_audit(options(checkout, tmp_path / "run", problems=("mse_loss",)))
