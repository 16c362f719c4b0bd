"""What the examples of the rules can't show: counts by class, effects on a whole program, and the arithmetic of rounding expressions."""

import math
import re
import struct
from collections import Counter

import pytest
import torch

from truekernel.model import Program
from truekernel.mutation import Rule, benign_rules, mutants, results, rules
from truekernel.mutation.precision import bf16, half, tf32
from truekernel.source import parse_cuda

SOFTMAX = """
// __syncthreads(); in a comment, and __expf(x)
#define UNUSED __syncthreads()
__device__ __forceinline__ float warp_sum(float v) {
    for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
    return v;
}
template <int THREADS>
__global__ void __launch_bounds__(THREADS) softmax(const float* __restrict__ x, float* __restrict__ y, int cols) {
    __shared__ float part[THREADS / 32];
    const int lane = threadIdx.x & 31;
    const float* row = x + (size_t)blockIdx.x * cols;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += THREADS) sum += expf(row[i] - 1.0f);
    sum = warp_sum(sum);
    if (lane == 0) part[threadIdx.x >> 5] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = warp_sum(lane < THREADS / 32 ? part[lane] : 0.0f);
        if (lane == 0) part[0] = sum;
    }
    __syncthreads();
    const float inverse = 1.0f / part[0];
    for (int i = threadIdx.x; i < cols; i += THREADS) y[(size_t)blockIdx.x * cols + i] = expf(row[i] - 1.0f) * inverse;
}
"""
PLAN = """
THREADS = 128


def launch(run, inputs, axes):
    rows, cols = axes["rows"], axes["cols"]
    y = run.empty((rows, cols), "float32")
    run.launch(f"softmax<{THREADS}>", rows, THREADS, (inputs["x"], y, cols))
    return y
"""
PROGRAM = Program("softmax", "softmax", SOFTMAX, PLAN)
LEAST = {"sync": 9, "warp": 10, "atomic": 8, "async": 6, "precision": 12, "launch": 8}


def named(name: str) -> Rule:
    return {**rules(), **benign_rules()}[name]


def of(name: str, program: Program = PROGRAM) -> list[str]:
    rule = named(name)
    return results(program.source if rule.file == "cu" else program.plan_source, rule)


def test_enough_rules_in_each_class():
    counts = Counter(rule.rule_class for rule in rules().values())
    assert {name: counts[name] >= least for name, least in LEAST.items()} == dict.fromkeys(LEAST, True)
    assert len(benign_rules()) >= 14


@pytest.mark.parametrize("rule_class", ["sync", "warp", "precision", "launch"])
def test_a_reduction_gets_mutants_of_many_rules(rule_class):
    chosen = {name: rule for name, rule in rules().items() if rule.rule_class == rule_class}
    made = {pair.rule for mutant in mutants(PROGRAM, chosen) for pair in mutant.made_by}
    assert len(made) >= 8


def test_comments_and_directives_stay():
    for mutant in mutants(PROGRAM, {**rules(), **benign_rules()}):
        assert "// __syncthreads(); in a comment, and __expf(x)\n#define UNUSED __syncthreads()\n" in mutant.source


def test_each_barrier_is_removed_singly():
    made = of("barrier-removed")
    assert [text.count("__syncthreads();") for text in made] == [2, 2]
    assert len(set(made)) == 2


def test_benign_variants_of_a_reduction():
    made = {pair.rule for mutant in mutants(PROGRAM, benign_rules()) for pair in mutant.made_by}
    assert {
        "two-partial-sums",
        "sum-in-double",
        "redundant-barrier",
        "block-constant-halved",
        "reciprocal-to-quotients",
    } <= made
    assert len(made) >= 14


def test_benign_flag_reaches_the_mutant():
    program = Program("p", "", "__global__ void k(float* y) { y[0] = y[1] * y[2] + y[3]; }", "")
    (mutant,) = mutants(program, {"fma-off": named("fma-off")})
    assert mutant.flags == ("fma=off",)
    assert mutant.source == program.source


def test_sums_that_are_read_in_their_loop_are_left_alone():
    scan = SOFTMAX.replace("sum += expf(row[i] - 1.0f);", "{ sum += row[i]; y[i] = sum; }")
    program = Program("scan", "", scan, PLAN)
    assert of("two-partial-sums", program) == of("sum-in-double", program) == of("loop-reversed", program) == []


def test_block_constant_is_left_alone_when_its_kernel_does_not_know():
    plan = PLAN.replace('f"softmax<{THREADS}>"', '"softmax"')
    assert of("block-constant-halved", Program("p", "", SOFTMAX, plan)) == []


def test_block_mutant_changes_the_launch_alone():
    (text,) = of("block-halved")
    assert "THREADS = 128\n" in text
    assert "max(THREADS // 2, 1), (inputs" in text


def test_fence_and_flag_swap_places_around_a_comment():
    source = "__global__ void k(float* y, int* c) { y[0] = 1; __threadfence();  // publish\n atomicAdd(c, 1); }"
    assert results(source, named("fence-after-flag")) == [
        "__global__ void k(float* y, int* c) { y[0] = 1; atomicAdd(c, 1);  // publish\n __threadfence(); }"
    ]


def evaluated(expression: str, value: float) -> float:
    """Value of a rounding expression of C, by Python's integers and IEEE single precision."""
    single = torch.tensor(value, dtype=torch.float32).item()
    words = {
        "__float_as_uint": lambda v: struct.unpack("I", torch.tensor(v, dtype=torch.float32).numpy().tobytes())[0],
        "__uint_as_float": lambda bits: struct.unpack("f", struct.pack("I", bits & 0xFFFFFFFF))[0],
        "v": single,
    }
    return eval(re.sub(r"(0x[0-9a-f]+)u|(\d)f\b", r"\1\2", expression), words)


@pytest.mark.parametrize(
    "value", [1.0, -3.14159, 0.1, 1e-4, 65000.0, 12345.678, -7.5e-3, float("inf"), float("-inf"), 0.0]
)
def test_rounding_expressions_round(value):
    assert evaluated(bf16("v"), value) == torch.tensor(value, dtype=torch.float32).bfloat16().item()
    assert evaluated(half("v"), value) == torch.tensor(value, dtype=torch.float32).half().item()
    if abs(value) < 65504:
        assert evaluated(tf32("v"), value) == torch.tensor(value, dtype=torch.float32).half().float().item()


def test_rounding_expressions_keep_nan_and_overflow_as_the_format_does():
    assert math.isnan(evaluated(bf16("v"), math.nan))
    assert math.isnan(evaluated(half("v"), math.nan))
    assert evaluated(half("v"), 70000.0) == math.inf
    assert evaluated(tf32("v"), 70000.0) == pytest.approx(70000.0, rel=1e-3)


def test_every_result_parses_without_errors():
    for mutant in mutants(PROGRAM, {**rules(), **benign_rules()}):
        assert parse_cuda(mutant.source).errors == ()
