import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from truekernel.errors import BadInputError
from truekernel.model import AxisSpec, OutputSpec, Problem, TensorSpec
from truekernel.numerics import expect, gathers, statistics, with_spread
from truekernel.numerics.composites import COMPOSITES
from truekernel.numerics.error_scale import deviations, record

U32 = 2.0**-24


def problem_of(function, dtype="float32", shape=("N",), **more):
    return Problem(
        name="p",
        family="elementwise",
        summary="",
        axes={"N": AxisSpec(64, 64, "batch")},
        inputs=(TensorSpec("x", ("N",), dtype),),
        outputs=more.pop("outputs", (OutputSpec("y", shape, dtype),)),
        reference=lambda inputs, axes: (function(inputs["x"]),),
        flops=lambda a: 1.0,
        bytes=lambda a: 1.0,
        **more,
    )


def normal(n, seed=0):
    return torch.randn(n, generator=torch.Generator().manual_seed(seed))


def scale_of(function, x, **more):
    (want,) = expect(problem_of(function, **more), {"x": x}, {"N": x.numel()})
    return want.scale


@settings(max_examples=20, deadline=None)
@given(st.floats(-1e6, 1e6, width=32))
def test_one_rounding_gives_about_one_unit_roundoff(value):
    x = torch.full((16,), value)
    scale = scale_of(lambda v: v * 3.1, x)
    result = abs(value * 3.1)
    assert (scale >= U32 * result * 0.999).all()
    assert (scale <= 2 * U32 * result + 1e-45).all()


def test_exact_operators_have_no_error():
    x = normal(64)
    for function in (
        torch.relu,
        torch.neg,
        lambda v: v.flip(0),
        lambda v: v.clamp(0, 1),
        lambda v: v.reshape(8, 8).amax(1).repeat(8),
    ):
        assert record(lambda f=function: f(x)) == []
        assert scale_of(function, x).abs().max() == 0


def test_cancellation_is_seen():
    x = normal(1024)
    plain = scale_of(lambda v: v.sum().reshape(1), x, shape=(1,))
    shifted = scale_of(lambda v: (v + 1000.0).sum().reshape(1) - 1000.0 * 1024, x, shape=(1,))
    assert shifted > 100 * plain


def test_sums_grow_with_the_root_of_their_length():
    sizes = [64, 4096]
    scales = [
        scale_of(lambda v: v.abs().sum().reshape(1), normal(n), shape=(1,)) / normal(n).abs().sum() for n in sizes
    ]
    assert 4 < scales[1] / scales[0] < 16


def test_serial_float32_sums_are_within_a_few_scales():
    rows = normal(64 * 2048).reshape(64, 2048)
    problem = problem_of(lambda v: v.reshape(64, 2048).sum(1), shape=(64,))
    (want,) = expect(problem, {"x": rows.reshape(-1)}, {"N": rows.numel()})
    serial = np.add.accumulate(rows.numpy(), axis=1, dtype=np.float32)[:, -1]
    found = statistics([torch.from_numpy(serial)], [want], "stale")
    assert 0.3 < found["worst"] < 3


def test_half_precision_sums_are_far_outside():
    rows = normal(64 * 2048).reshape(64, 2048)
    problem = problem_of(lambda v: v.reshape(64, 2048).sum(1), shape=(64,))
    (want,) = expect(problem, {"x": rows.reshape(-1)}, {"N": rows.numel()})
    half = torch.zeros(64, dtype=torch.float16)
    for column in rows.T:
        half += column.half()
    assert statistics([half.float()], [want], "stale")["worst"] > 50


def test_intermediates_that_the_reference_stores_in_half_count_as_half():
    x = normal(256).half()
    stored = scale_of(lambda v: (v * 3.1) - v * 3.0, x, dtype="float16")
    wide = scale_of(lambda v: (v.to(torch.promote_types(v.dtype, torch.float32)) * 0.1).to(v.dtype), x, dtype="float16")
    assert (stored > 2.0**-11 * x.double().abs()).double().mean() > 0.9
    assert (wide < 2.0**-10 * x.double().abs() * 0.1 + 1e-7).all()


def test_scales_are_deterministic_and_finite_with_special_values():
    x = normal(64)
    x[3], x[5], x[7] = float("nan"), float("inf"), -float("inf")
    first, again = scale_of(torch.exp, x), scale_of(torch.exp, x)
    assert torch.equal(first, again)
    assert first.isfinite().all()
    assert (first >= 0).all()
    assert first[3] == first[5] == 0


def test_masked_infinities_stay_out_of_the_scale():
    x = normal(64)
    masked = scale_of(lambda v: torch.softmax(v.masked_fill(torch.arange(64) > 31, -float("inf")), 0), x)
    assert (masked[:32] > 0).all()
    assert masked[32:].max() == 0


def test_an_own_error_scale_is_used():
    problem = problem_of(lambda v: v * 3.1, error_scale=lambda inputs, axes: (torch.full((4,), 7.0),))
    (want,) = expect(problem, {"x": normal(4)}, {"N": 4})
    assert want.scale.tolist() == pytest.approx([7.0] * 4)


def test_truth_is_infinite_where_the_dtype_overflows():
    (want,) = expect(problem_of(lambda v: v * v, "float16"), {"x": torch.tensor([1000.0, 2.0]).half()}, {"N": 2})
    assert want.truth.tolist() == [float("inf"), 4.0]
    assert want.published.tolist() == [float("inf"), 4.0]
    assert want.scale[0] == 0


def test_index_outputs_have_a_table():
    problem = problem_of(
        lambda v: v.argmax().reshape(1),
        outputs=(OutputSpec("i", (1,), "int64", "index"),),
        ties=lambda inputs, axes: inputs["x"].double().reshape(1, -1),
    )
    (want,) = expect(problem, {"x": torch.tensor([1.0, 3.0, 3.0])}, {"N": 3})
    assert want.truth.tolist() == [1.0]
    assert want.ties.tolist() == [[1.0, 3.0, 3.0]]
    assert want.scale.tolist() == [0.0]
    assert statistics([torch.tensor([2])], [want], "stale")["worst"] == 0
    assert statistics([torch.tensor([0])], [want], "stale")["worst"] > 1


def test_a_reference_with_the_wrong_number_of_outputs_is_refused():
    problem = problem_of(torch.relu, outputs=(OutputSpec("a", ("N",)), OutputSpec("b", ("N",))))
    with pytest.raises(BadInputError, match="tuple of 2"):
        expect(problem, {"x": normal(4)}, {"N": 4})


def test_empty_tensors_have_expectations():
    (want,) = expect(problem_of(torch.exp), {"x": torch.zeros(0)}, {"N": 0})
    assert want.elements == 0
    assert statistics([torch.zeros(0)], [want], "poison")["worst"] == 0


X = normal(96).double()
CALLS = {
    "_softmax": lambda x: F.softmax(x.reshape(8, 12), 1),
    "_log_softmax": lambda x: F.log_softmax(x.reshape(8, 12), 0),
    "logsumexp": lambda x: torch.logsumexp(x.reshape(8, 12), 1),
    "native_layer_norm": lambda x: F.layer_norm(x.reshape(8, 12), (12,), x[:12], x[12:24], 1e-5),
    "native_group_norm": lambda x: F.group_norm(x.reshape(2, 6, 8), 3, x[:6], x[6:12], 1e-5),
    "native_batch_norm": lambda x: F.batch_norm(x.reshape(4, 6, 4), None, None, x[:6], x[6:12], training=True),
    "var": lambda x: x.reshape(8, 12).var(1, correction=1),
    "var_mean": lambda x: torch.var_mean(x.reshape(8, 12), 0)[0],
    "std": lambda x: x.std(),
    "linalg_vector_norm": lambda x: torch.linalg.vector_norm(x.reshape(8, 12), dim=1),
    "gelu": F.gelu,
    "silu": F.silu,
    "elu": F.elu,
    "softplus": F.softplus,
    "mish": F.mish,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "leaky_relu": F.leaky_relu,
    "log_sigmoid_forward": F.logsigmoid,
    "mse_loss": lambda x: F.mse_loss(x[:48], x[48:]),
    "huber_loss": lambda x: F.huber_loss(x[:48], x[48:], reduction="sum"),
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x[:48], x[48:], reduction="none", beta=0.5),
    "binary_cross_entropy": lambda x: F.binary_cross_entropy(x[:48].sigmoid(), x[48:].sigmoid()),
}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_fused_operators_taken_apart_mean_the_same(name):
    """Perturbed runs stay within rounding of torch's own fused operator; a wrong formula would be far off."""
    assert name in [step for step, _ in record(lambda: CALLS[name](X))]
    truth = CALLS[name](X)
    (found,) = deviations(lambda: (CALLS[name](X),), (truth,))
    assert 0 < found.max() < 1e-5
    assert set(CALLS) == set(COMPOSITES)


def test_gathering_references_are_told_apart():
    x = normal(16)
    assert gathers(x.sum)
    assert gathers(lambda: torch.softmax(x, 0))
    assert gathers(lambda: x.cumsum(0))
    assert not gathers(lambda: torch.exp(x) * 2)
    assert not gathers(lambda: x.reshape(4, 4).amax(1))


def test_spread_is_the_largest_error_of_the_panel():
    (want,) = expect(problem_of(lambda v: v * 2), {"x": torch.tensor([1.0, 2.0])}, {"N": 2})
    (spread,) = with_spread([want], [[torch.tensor([2.5, 4.0])], [torch.tensor([2.0, 3.0])]])
    assert spread.spread.tolist() == [0.5, 1.0]
    assert statistics([torch.tensor([3.0, 4.0])], [spread], "stale", rhos=[1.0])["bound:1"] == 2.0
    assert with_spread([want], [])[0].spread.tolist() == [0.0, 0.0]


def test_masked_elements_do_not_silence_the_others():
    # An infinity that is perturbed stays one: what is computed beside it keeps its scale.
    scores = torch.tensor([[-30.0, -71.5, 0.0, -math.inf]], dtype=torch.float64)
    truth = torch.softmax(scores, 1)
    (found,) = deviations(lambda: (torch.softmax(scores, 1),), (truth,))
    relative = found / truth.reshape(-1)
    assert 71.5 * 2.0**-25 < float(relative[1]) < 1000 * 2.0**-24
    assert float(found[3]) == 0.0
