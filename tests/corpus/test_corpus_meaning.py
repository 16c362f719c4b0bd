"""What the problems with special semantics mean: masks, padding, dilation, statistics, special values; references against first principles."""

import math

import pytest
import torch

from truekernel.corpus import problems

PROBLEMS = problems()
NAN, INF = math.nan, math.inf


def reference(name: str, axes: dict[str, int], **inputs: torch.Tensor) -> torch.Tensor:
    (output,) = PROBLEMS[name].reference(inputs, axes)
    return output


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_causal_softmax_ignores_later_keys() -> None:
    axes = {"heads": 2, "length": 5}
    scores = normal(2, 5, 5)
    weights = reference("causal_softmax", axes, scores=scores)
    later = torch.ones(5, 5, dtype=torch.bool).triu(1)
    assert torch.equal(weights[:, later], torch.zeros(2, 10, dtype=torch.float64))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 5, dtype=torch.float64))
    changed = reference("causal_softmax", axes, scores=scores + 7.0 * later)
    assert torch.equal(changed, weights)
    torch.testing.assert_close(weights[0, 1, 1], torch.sigmoid((scores[0, 1, 1] - scores[0, 1, 0]) * 0.125))


def test_causal_attention_sees_itself_and_what_came_before() -> None:
    axes = {"heads": 1, "length": 6, "D": 4}
    q, k, v = (normal(1, 6, 4, seed=s) for s in range(3))
    before = reference("causal_attention_half", axes, q=q, k=k, v=v)
    torch.testing.assert_close(before[:, 0], v[:, 0])
    k[:, 3] += 5.0
    v[:, 3] -= 5.0
    after = reference("causal_attention_half", axes, q=q, k=k, v=v)
    assert torch.equal(after[:, :3], before[:, :3])
    assert not torch.isclose(after[:, 3:], before[:, 3:]).any()


def test_attention_scales_by_the_root_of_the_head_width() -> None:
    axes = {"heads": 1, "queries": 1, "keys": 2, "D": 16}
    q = torch.ones(1, 1, 16, dtype=torch.float64)
    k = torch.stack([torch.zeros(16), torch.ones(16)]).double()[None]
    v = torch.stack([torch.zeros(16), torch.ones(16)]).double()[None]
    output = reference("attention", axes, q=q, k=k, v=v)
    torch.testing.assert_close(output, torch.full((1, 1, 16), 1.0 / (1.0 + math.exp(-4.0)), dtype=torch.float64))


def test_rotary_embedding_rotates_pairs_half_a_head_apart() -> None:
    axes = {"tokens": 2, "heads": 1, "pairs": 3}
    x = normal(2, 1, 6)
    angle = normal(2, 3, seed=1)
    y = reference("rotary_embedding_bf16", axes, x=x, cosine=angle.cos(), sine=angle.sin())
    plane = torch.complex(x[..., :3], x[..., 3:]) * torch.polar(torch.ones_like(angle), angle)[:, None]
    torch.testing.assert_close(y, torch.cat((plane.real, plane.imag), dim=-1))


def test_average_pooling_does_not_count_padding_and_max_pooling_does_not_see_it() -> None:
    ones = torch.ones(1, 1, 5, 4, dtype=torch.float64)
    average = reference("avg_pool2d", {"batch": 1, "C": 1, "H": 5, "W": 4}, x=ones)
    assert torch.equal(average, torch.ones(1, 1, 3, 2, dtype=torch.float64))
    largest = reference("max_pool2d", {"batch": 1, "C": 1, "H": 5, "W": 4}, x=-ones)
    assert torch.equal(largest, -torch.ones(1, 1, 4, 3, dtype=torch.float64))


def test_max_pooling_lets_nan_win_and_minus_infinity_stand() -> None:
    x = torch.zeros(1, 1, 6, 6, dtype=torch.float64)
    x[0, 0, 0, 0] = NAN
    largest = reference("max_pool2d", {"batch": 1, "C": 1, "H": 6, "W": 6}, x=x)[0, 0]
    assert largest.isnan().nonzero().tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    empty = reference("max_pool2d", {"batch": 1, "C": 1, "H": 6, "W": 6}, x=torch.full_like(x, -INF))
    assert (empty == -INF).all()


def test_conv2d_has_stride_padding_and_bias() -> None:
    axes = {"batch": 2, "C": 2, "O": 3, "H": 15, "W": 11}
    x, weight, bias = normal(2, 2, 15, 11), normal(3, 2, 11, 11, seed=1), normal(3, seed=2)
    y = reference("conv2d", axes, x=x, weight=weight, bias=bias)
    padded = torch.zeros(2, 2, 19, 15, dtype=torch.float64)
    padded[:, :, 2:17, 2:13] = x
    for row in range(3):
        for column in range(2):
            patch = padded[:, :, 4 * row : 4 * row + 11, 4 * column : 4 * column + 11]
            wanted = (patch[:, None] * weight[None]).sum(dim=(2, 3, 4)) + bias
            torch.testing.assert_close(y[:, :, row, column], wanted)
    assert y.shape == (2, 3, 3, 2)


def test_conv1d_taps_are_dilated_and_outputs_strided() -> None:
    x = torch.zeros(1, 1, 20, dtype=torch.float64)
    x[0, 0, 8] = 1.0
    weight = torch.tensor([[[1.0, 2.0, 3.0]]], dtype=torch.float64)
    y = reference("conv1d_dilated", {"batch": 1, "C": 1, "O": 1, "L": 20}, x=x, weight=weight)
    assert y[0, 0].tolist() == [3.0, 0.0, 0.0, 0.0]
    y = reference("conv1d_dilated", {"batch": 1, "C": 1, "O": 1, "L": 20}, x=x.roll(-1), weight=weight)
    assert y[0, 0].tolist() == [0.0, 2.0, 0.0, 0.0]


def test_transposed_convolution_spreads_an_input_over_its_taps() -> None:
    x = torch.zeros(1, 2, 4, dtype=torch.float64)
    x[0, 1, 2] = 1.0
    weight = normal(2, 3, 3)
    y = reference("conv_transpose1d", {"batch": 1, "C": 2, "O": 3, "L": 4}, x=x, weight=weight)
    wanted = torch.zeros(1, 3, 9, dtype=torch.float64)
    for tap in range(3):
        wanted[0, :, 2 * 2 - 1 + 2 * tap] = weight[1, :, tap]
    assert torch.equal(y, wanted)


def test_depthwise_convolution_keeps_channels_apart() -> None:
    axes = {"batch": 1, "C": 2, "H": 4, "W": 5}
    x, weight = normal(1, 2, 4, 5), normal(2, 1, 3, 3, seed=1)
    y = reference("depthwise_conv2d", axes, x=x, weight=weight)
    x[:, 0] += 1.0
    changed = reference("depthwise_conv2d", axes, x=x, weight=weight)
    assert torch.equal(changed[:, 1], y[:, 1])
    torch.testing.assert_close(changed[:, 0] - y[:, 0], weight[0, 0].sum().expand(1, 2, 3))


@pytest.mark.parametrize(
    ("name", "axes", "over"),
    [
        ("layer_norm", {"rows": 3, "features": 40}, (1,)),
        ("batch_norm", {"batch": 3, "channels": 2, "positions": 20}, (0, 2)),
    ],
)
def test_normalised_values_have_mean_zero_and_biased_variance_one(
    name: str, axes: dict[str, int], over: tuple[int, ...]
) -> None:
    x = 1000.0 + 5.0 * normal(*axes.values())
    features = axes.get("features", axes.get("channels", 0))
    y = reference(name, axes, x=x, weight=torch.ones(features).double(), bias=torch.zeros(features).double())
    torch.testing.assert_close(y.mean(over), torch.zeros_like(y.mean(over)), atol=1e-9, rtol=0)
    torch.testing.assert_close(y.var(over, correction=0), torch.ones_like(y.mean(over)), atol=1e-6, rtol=0)


def test_group_norm_takes_statistics_over_neighbouring_channels() -> None:
    axes = {"batch": 2, "groups": 3, "width": 2, "positions": 4}
    x, weight, bias = normal(2, 6, 4), normal(6, seed=1), normal(6, seed=2)
    y = reference("group_norm", axes, x=x, weight=weight, bias=bias)
    rows = reference(
        "layer_norm",
        {"rows": 6, "features": 8},
        x=x.reshape(6, 8),
        weight=torch.ones(8).double(),
        bias=torch.zeros(8).double(),
    )
    torch.testing.assert_close(y, rows.reshape(2, 6, 4) * weight[:, None] + bias[:, None])


def test_norms_without_mean_only_scale() -> None:
    x = normal(2, 3, 4)
    y = reference("channel_rms_norm", {"batch": 2, "channels": 3, "positions": 4}, x=x)
    torch.testing.assert_close(y.square().mean(1), torch.ones(2, 4).double(), atol=1e-3, rtol=0)
    rows = torch.stack([normal(5), torch.zeros(5).double()])
    unit = reference("l2_normalise", {"rows": 2, "features": 5}, x=rows)
    torch.testing.assert_close(unit.norm(dim=1), torch.tensor([1.0, 0.0]).double())


def test_half_precision_norms_round_once() -> None:
    x = normal(4, 64).to(torch.bfloat16)
    weight = (1.0 + normal(64, seed=1)).to(torch.bfloat16)
    axes = {"tokens": 4, "hidden": 64}
    narrow = reference("rms_norm_bf16", axes, x=x, weight=weight)
    wide = reference("rms_norm_bf16", axes, x=x.double(), weight=weight.double())
    assert (narrow == wide.to(torch.bfloat16)).float().mean() > 0.99


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_special_rows(name: str) -> None:
    x = torch.tensor([[0.0, -INF, 0.0], [-INF, -INF, -INF], [0.0, INF, 1.0], [NAN, 0.0, 1.0]]).double()
    y = reference(name, {"rows": 4, "features": 3}, x=x)
    y = y.exp() if name == "log_softmax" else y
    torch.testing.assert_close(y[0], torch.tensor([0.5, 0.0, 0.5]).double())
    assert y[1:].isnan().all()
