"""Programs on inputs that random cases rarely hold: special values, empty sums, masks at their edge, ties with padding."""

import math
from collections.abc import Iterator

import pytest
import torch

from truekernel.corpus import problems, programs
from truekernel.execution import simt
from truekernel.trial.run_program import run_program

PROBLEMS, PROGRAMS = problems(), programs()
NAN, INF = math.nan, math.inf


@pytest.fixture(scope="module")
def server() -> Iterator[simt.Server]:
    with simt.Server() as running:
        yield running


def solving(problem: str) -> list[str]:
    return [name for name, program in PROGRAMS.items() if program.problem == problem]


def run(server: simt.Server, name: str, axes: dict[str, int], **inputs: torch.Tensor) -> torch.Tensor:
    program = PROGRAMS[name]
    outcome, outputs = run_program(program, PROBLEMS[program.problem], axes, inputs, server=server)
    assert outcome.status == "ok", outcome
    assert outputs is not None
    return outputs[0]


def special_rows(features: int) -> torch.Tensor:
    """Rows of which each holds something else, at places that different warps read."""
    rows = torch.linspace(-3, 3, features).repeat(6, 1)
    rows[0, ::2] = -INF
    rows[1] = -INF
    rows[2, features // 2] = INF
    rows[3, features - 1] = NAN
    rows[4, : features - 1] = -INF
    rows[4, features - 1] = NAN
    rows[5] = -INF
    rows[5, features - 1] = 1e30
    return rows


@pytest.mark.parametrize("name", solving("softmax") + solving("log_softmax"))
@pytest.mark.parametrize("features", [7, 260, 4100])
def test_softmax_of_infinite_and_missing_values(server: simt.Server, name: str, features: int) -> None:
    x = special_rows(features)
    axes = {"rows": 6, "features": features}
    output = run(server, name, axes, x=x)
    (truth,) = PROBLEMS[PROGRAMS[name].problem].reference({"x": x.double()}, axes)
    assert torch.equal(output.isnan(), truth.isnan())
    torch.testing.assert_close(output.double(), truth, rtol=1e-5, atol=1e-30, equal_nan=True)


@pytest.mark.parametrize("name", solving("max_pool2d"))
def test_max_pooling_of_nan_and_negative_values(server: simt.Server, name: str) -> None:
    axes = {"batch": 1, "C": 2, "H": 11, "W": 36}
    x = -1.0 - torch.arange(2 * 11 * 36).reshape(1, 2, 11, 36) / 100
    x[0, 0, 5, 33] = NAN
    x[0, 1] = -INF
    output = run(server, name, axes, x=x)
    (truth,) = PROBLEMS["max_pool2d"].reference({"x": x}, axes)
    assert truth.isnan().sum() == 16
    assert torch.equal(output.nan_to_num(nan=7.0), truth.nan_to_num(nan=7.0))


@pytest.mark.parametrize("name", solving("causal_softmax"))
def test_causal_softmax_is_exactly_zero_behind_the_mask(server: simt.Server, name: str) -> None:
    scores = torch.full((1, 34, 34), 1e30).triu(1)
    weights = run(server, name, {"heads": 1, "length": 34}, scores=scores)
    wanted = torch.ones(34, 34).tril() / torch.arange(1, 35)[:, None]
    torch.testing.assert_close(weights[0], wanted)
    assert not weights[0].triu(1).any()


@pytest.mark.parametrize("name", solving("causal_attention_half"))
def test_causal_attention_leaves_later_tiles_out(server: simt.Server, name: str) -> None:
    axes = {"heads": 1, "length": 40, "D": 4}
    q = torch.ones(1, 40, 4, dtype=torch.float16)
    k = torch.arange(40)[None, :, None].expand(1, 40, 4).to(torch.float16).contiguous()
    v = k.clone()
    output = run(server, name, axes, q=q, k=k, v=v)
    position = torch.arange(40.0, dtype=torch.float64)
    wanted = position - 1 / (math.e**2 - 1)  # weights fall by exp(2) a step back
    torch.testing.assert_close(output[0, 8:, 0].double(), wanted[8:], rtol=2e-3, atol=0)
    assert output[0, 0].tolist() == [0.0] * 4


@pytest.mark.parametrize("name", solving("l2_normalise"))
def test_rows_of_zeros_stay_zero(server: simt.Server, name: str) -> None:
    x = torch.zeros(3, 262)
    x[1, 261] = -2.0
    output = run(server, name, {"rows": 3, "features": 262}, x=x)
    wanted = torch.zeros(3, 262)
    wanted[1, 261] = -1.0
    assert torch.equal(output, wanted)


@pytest.mark.parametrize("name", solving("layer_norm"))
def test_constant_rows_give_the_bias(server: simt.Server, name: str) -> None:
    bias = torch.arange(132.0)
    output = run(
        server,
        name,
        {"rows": 5, "features": 132},
        x=torch.full((5, 132), 4096.0),
        weight=torch.full((132,), 3.0),
        bias=bias,
    )
    assert torch.equal(output, bias.repeat(5, 1))


@pytest.mark.parametrize("name", ["matmul_tiled", "matmul_register_blocked"])
def test_products_of_small_integers_are_exact(server: simt.Server, name: str) -> None:
    a = (torch.arange(33 * 19).reshape(33, 19) % 7 - 3).float()
    b = (torch.arange(19 * 37).reshape(19, 37) % 5 - 2).float()
    assert torch.equal(run(server, name, {"M": 33, "N": 37, "K": 19}, a=a, b=b), a @ b)
