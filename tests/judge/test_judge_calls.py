"""What a kernel leaves on the device from one call to the next."""

import pytest
from judge_files import SOLVE

from truekernel.judge.candidates import load_candidate
from truekernel.judge.check import check, prepare
from truekernel.judge.inside.cuda_child import repeated
from truekernel.judge.posing import pose
from truekernel.judge.steps import new_secret
from truekernel.model import BufferArg, BufferSpec, Launch, LaunchPlan, ScalarArg

TICKETS = """__device__ unsigned int taken = 0;

__global__ void elu(const float* x, float* y, int n) {
    __shared__ unsigned int ticket;
    if (threadIdx.x == 0) {
        ticket = atomicAdd(&taken, 1u);
        RESET
    }
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && ticket < gridDim.x) y[i] = x[i] > 0.0f ? x[i] : expm1f(x[i]);
}
"""


@pytest.fixture(scope="module")
def elu():
    posed = pose("elu")
    return posed, prepare(posed, new_secret())


@pytest.mark.parametrize(
    ("reset", "word"), [("", "wrong"), ("if (ticket == gridDim.x - 1) atomicExch(&taken, 0u);", "right")]
)
def test_a_counter_that_is_not_reset_is_wrong_from_the_second_call_on(elu, tmp_path, reset, word):
    posed, suite = elu
    head, _, tail = SOLVE.partition("__global__")
    path = tmp_path / "k.cu"
    path.write_text(head + TICKETS.replace("RESET", reset) + tail[tail.index("extern") - 1 :])
    verdict = check(load_candidate(str(path), posed.problem), posed, suite=suite)
    assert verdict.word == word, verdict.why
    assert ("in a later call of the same process" in verdict.why) == (word == "wrong")


def test_repeated_calls_share_inputs_alone():
    buffers = (BufferSpec("x", (4,), "float32", "input"), BufferSpec("y", (4,), "float32", "empty"))
    args = (BufferArg(0), BufferArg(1, 8), ScalarArg("int", 4))
    plan = LaunchPlan(buffers, (Launch("k", (1, 1, 1), (32, 1, 1), args),), (1,))
    assert repeated(plan, 1) == plan
    found = repeated(plan, 3)
    assert [spec.init for spec in found.buffers] == ["input", "empty", "empty", "empty"]
    assert [launch.args for launch in found.launches] == [(BufferArg(0), BufferArg(n, 8), args[2]) for n in (1, 2, 3)]
    assert found.outputs == (3,)


def test_large_plans_are_repeated_less_often():
    buffers = (BufferSpec("y", (1 << 26,), "float32", "empty"),)
    plan = LaunchPlan(buffers, (Launch("k", (1, 1, 1), (32, 1, 1), (BufferArg(0),)),), (0,))
    assert len(repeated(plan, 8).buffers) == 2
