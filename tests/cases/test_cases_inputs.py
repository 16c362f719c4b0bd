import dataclasses
import hashlib
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from truekernel.cases import is_legal, make_inputs, parse_recipe, recipes, shapes
from truekernel.cases.grammar import Recipe
from truekernel.cases.inputs import draw_tensor
from truekernel.errors import BadInputError, UnknownNameError
from truekernel.model import AxisSpec, Case, Domain, OutputSpec, Problem, TensorSpec
from truekernel.model.lengths import evaluate, lengths
from truekernel.numerics.formats import TORCH_DTYPES, to_bytes

PROBLEM = Problem(
    name="sample",
    family="matmul",
    summary="a matrix times a vector",
    axes={"M": AxisSpec(4096, 40, "batch", (1, 7)), "K": AxisSpec(512, 64, "reduction", (1, 63, 65, 0))},
    inputs=(TensorSpec("a", ("M", "K")), TensorSpec("rows", ("M",), "int64", Domain(kind="index", below="M"))),
    parameters=(TensorSpec("w", ("K",), official="signed", scale="1/sqrt(K)"),),
    outputs=(OutputSpec("y", ("M",)),),
    reference=lambda inputs, axes: (inputs["a"] @ inputs["w"],),
    flops=lambda a: 2.0 * a["M"] * a["K"],
    bytes=lambda a: 4.0 * a["M"] * a["K"],
)
BASES = sorted(recipes())


def inputs_of(recipe, seed=1, problem=PROBLEM, **axes):
    return make_inputs(problem, Case.of(problem.name, {**problem.audit_axes(), **axes}, recipe, seed))


def tensor_of(recipe, dtype="float32", count=4096, **domain):
    spec = TensorSpec("x", (count,), dtype, Domain(**domain))
    return draw_tensor(spec, {}, parse_recipe(recipe), 3)


def digest(tensor):
    return hashlib.sha256(to_bytes(tensor)).hexdigest()[:16]


GOLDEN = {
    "constant": "680aca77ba6b819a",
    "decades": "79567ea24c1aca11",
    "dust": "ab24693d173db9d6",
    "heavy": "bfbabbf96a068d33",
    "integers": "39ca21959e4f64fd",
    "near": "ab037d2b937ad16f",
    "normal": "e9f25640d1032d1a",
    "ones": "3035aac5fb87474c",
    "ramp": "2a7d9d2e6ec6d800",
    "short": "33e09e9c7e0c3d1a",
    "signed": "f2af8fbe37ee151a",
    "sparse": "e4ffcda8913b1e64",
    "special": "2feba0884eabe723",
    "subnormal": "b4ec97c4dd6a7413",
    "ties": "19b81769ac8dec0c",
    "uniform": "32bd93f11af72bba",
    "zeros": "4fe7b59af6de3b66",
}


@pytest.mark.parametrize("base", BASES)
def test_bits_never_change(base):
    """These hashes are part of the meaning of every stored case: a change needs a new recipe name."""
    assert digest(tensor_of(base, nonfinite=True)) == GOLDEN[base]


def test_a_case_is_reproducible_and_seeds_matter():
    first, again, other = inputs_of("normal"), inputs_of("normal"), inputs_of("normal", seed=2)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["a"], other["a"])


def test_shapes_dtypes_and_domains():
    made = inputs_of("normal*1000")
    assert {name: (tuple(t.shape), t.dtype) for name, t in made.items()} == {
        "a": ((40, 64), torch.float32),
        "rows": ((40,), torch.int64),
        "w": ((64,), torch.float32),
    }
    assert made["rows"].min() >= 0
    assert made["rows"].max() < 40
    assert all(t.is_contiguous() for t in made.values())
    assert made["w"].abs().max() <= 1 / 8  # parameters keep their official recipe and scale


def test_parameters_are_redrawn_where_the_recipe_says_so():
    assert inputs_of("normal&parameters")["w"].abs().max() > 1 / 8
    assert torch.equal(inputs_of("integers")["w"], inputs_of("integers")["w"].round())
    assert torch.equal(inputs_of("official*3")["w"], inputs_of("official")["w"])


def test_factors_and_offsets():
    plain = inputs_of("official")["a"]
    assert torch.equal(inputs_of("official*-1")["a"], -plain)
    assert torch.equal(inputs_of("uniform")["a"], plain)
    assert torch.equal(inputs_of("uniform*2+1000")["a"], (plain.double() * 2 + 1000).float())


def test_distributions():
    normal = tensor_of("normal", count=100_000).double()
    assert abs(normal.mean()) < 0.02
    assert abs(normal.std() - 1) < 0.02
    uniform = tensor_of("uniform", count=100_000).double()
    assert 0 <= uniform.min() <= uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.01
    assert abs((tensor_of("sparse", count=100_000) == 0).double().mean() - 0.8) < 0.01
    assert len(tensor_of("ties").unique()) == 9
    assert len(tensor_of("constant").unique()) == 1
    assert (tensor_of("ramp").diff() > 0).double().mean() > 0.99
    assert tensor_of("ramp").argmax() == 4095
    assert tensor_of("heavy", count=100_000).abs().max() > 100


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_subnormal_numbers_are_subnormal(dtype):
    values = tensor_of("subnormal", dtype)
    assert (values != 0).all()
    assert values.abs().max() < torch.finfo(values.dtype).smallest_normal
    assert values.min() < 0 < values.max()


def test_special_values_only_where_they_are_legal():
    assert not tensor_of("special").isnan().any()
    special = tensor_of("special", nonfinite=True)
    assert special.isnan().any()
    assert special.isposinf().any()
    assert special.isneginf().any()


@given(
    st.sampled_from(BASES),
    st.sampled_from(["", "*3", "*1000", "*-1", "+1000", "*0.01+-5"]),
    st.sampled_from(["float32", "float16", "bfloat16"]),
    st.sampled_from([(-math.inf, math.inf), (0.0, 1.0), (0.5, math.inf), (-4.0, 4.0), (-60.0, 60.0), (-1e15, 1e15)]),
)
def test_the_domain_is_always_kept(base, change, dtype, bounds):
    low, high = bounds
    values = tensor_of(base + change, dtype, count=257, low=low, high=high)
    assert values.isfinite().all()
    assert values.min() >= low
    assert values.max() <= high


def test_a_factor_is_fitted_to_the_domain_rather_than_cut():
    values = tensor_of("normal*1000", low=-60.0, high=60.0)
    assert len(values.unique()) > 1000
    assert values.abs().max() > 10


def test_an_official_scale_that_leaves_the_domain_is_left_out():
    assert torch.equal(tensor_of("official*-1", low=0.0, high=1.0), tensor_of("official", low=0.0, high=1.0))


def test_integer_tensors_are_unchanged_by_scales():
    spec = TensorSpec("i", (64,), "int32", Domain(-5, 5))
    plain = draw_tensor(spec, {}, parse_recipe("official"), 1)
    assert torch.equal(plain, draw_tensor(spec, {}, parse_recipe("official*3"), 1))
    assert plain.abs().max() <= 5
    assert len(plain.unique()) == 11
    flags = draw_tensor(TensorSpec("m", (64,), "uint8", Domain(kind="boolean")), {}, parse_recipe("normal"), 1)
    assert sorted(flags.unique().tolist()) == [0, 1]


def test_an_index_into_nothing_is_refused():
    with pytest.raises(BadInputError, match="no legal value"):
        draw_tensor(TensorSpec("i", (4,), "int64", Domain(kind="index", below="N")), {"N": 0}, Recipe("uniform"), 1)


def test_a_case_of_another_problem_is_refused():
    with pytest.raises(BadInputError, match="other"):
        make_inputs(PROBLEM, Case.of("other", {}, "uniform", 1))


@given(st.sampled_from([*BASES, "official"]), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.booleans())
def test_recipe_strings_round_trip(base, factor, offset, parameters):
    redraws = base != "official" and recipes()[base].redraws_parameters
    recipe = Recipe(base, factor, offset, parameters or redraws)
    assert parse_recipe(str(recipe)) == recipe


@given(st.text(max_size=20))
def test_any_text_parses_or_is_refused_in_one_line(text):
    try:
        parse_recipe(text)
    except BadInputError as error:
        assert "recipe" in str(error)


def test_an_unknown_recipe_names_its_neighbours():
    with pytest.raises(UnknownNameError, match="uniform"):
        parse_recipe("unifrom*3")


@pytest.mark.parametrize(
    ("text", "value"),
    [("H - K + 1", 6), ("2*(H+K)//3", 7), ("1/sqrt(K)", 1 / math.sqrt(3)), ("max(H, K) % 5", 3), ("-K", -3)],
)
def test_expressions(text, value):
    assert evaluate(text, {"H": 8, "K": 3}) == value


@pytest.mark.parametrize(
    "text", ["__import__('os')", "H.real", "H ** K", "[H]", "lambda: H", "H +", "Q", "H / (K - 3)", "True"]
)
def test_other_expressions_are_refused(text):
    with pytest.raises(BadInputError, match="expression"):
        evaluate(text, {"H": 8, "K": 3})


def test_lengths_are_whole_numbers():
    assert lengths((4, "H", "H - K"), {"H": 8, "K": 3}) == (4, 8, 5)
    with pytest.raises(BadInputError, match="whole number"):
        lengths(("H / K",), {"H": 8, "K": 3})
    with pytest.raises(BadInputError, match="whole number"):
        lengths(("K - H",), {"H": 8, "K": 3})


def test_shapes_change_one_axis_then_all():
    found = shapes(PROBLEM)
    assert found[0] == {"M": 40, "K": 64}
    assert {"M": 1, "K": 64} in found
    assert {"M": 40, "K": 0} in found
    assert {"M": 7, "K": 65} in found
    assert {"M": 7, "K": 63} in found
    assert len({tuple(axes.items()) for axes in found}) == len(found)
    assert not any(axes["K"] == 0 and axes["M"] != 40 for axes in found)


def test_shapes_without_meaning_are_left_out():
    assert is_legal(PROBLEM, {"M": 1, "K": 1})
    assert not is_legal(PROBLEM, {"M": -1, "K": 1})


def test_a_tensor_of_more_elements_than_any_official_one_and_a_thousand_million_is_not_legal() -> None:
    assert is_legal(PROBLEM, {"M": 1 << 15, "K": 1 << 15})
    assert not is_legal(PROBLEM, {"M": 1 << 15, "K": (1 << 15) + 1})
    vast = replace(PROBLEM, axes={**PROBLEM.axes, "M": replace(PROBLEM.axes["M"], official=1 << 31)})
    assert is_legal(vast, {"M": 1 << 31, "K": 1})


def test_empty_tensors_can_be_made():
    made = inputs_of("special", K=0)
    assert made["a"].shape == (40, 0)
    assert np.prod(made["w"].shape) == 0


def test_a_place_draws_one_floating_tensor_alone():
    official, first, second = (inputs_of(recipe) for recipe in ("official", "subnormal@0", "subnormal@1"))
    least = torch.finfo(torch.float32).tiny
    assert (first["a"].abs() < least).all() and torch.equal(first["w"], official["w"])
    assert (second["w"].abs() < least).all() and torch.equal(second["a"], official["a"])
    assert torch.equal(first["rows"], official["rows"])
    bias = dataclasses.replace(PROBLEM, parameters=(*PROBLEM.parameters, TensorSpec("bias", ("M",))))
    third = inputs_of("subnormal@0", problem=bias)
    assert not third["bias"].any() and torch.equal(third["w"], official["w"])
    alone = inputs_of("subnormal@2", problem=bias)
    assert (alone["bias"].abs() < least).all() and alone["bias"].any() and not alone["a"].any() and not alone["w"].any()


def test_a_place_is_read_and_written():
    assert parse_recipe("normal*20&parameters@1") == Recipe("normal", 20.0, 0.0, True, 1)
    assert str(Recipe("subnormal", place=0)) == "subnormal@0"
    with pytest.raises(BadInputError, match="@place"):
        parse_recipe("subnormal@x")


@pytest.mark.parametrize(("dtype", "least"), [("float32", 0.9997), ("bfloat16", 0.94), ("float16", 0.93)])
def test_products_of_two_shorts_fall_just_short_of_a_number(dtype, least):
    values = tensor_of("short", dtype).double()
    assert {abs(value) for value in values.tolist()} == {abs(values[0].item())} and values.unique().numel() == 2
    steps = (values[0].item() ** 2 - 1) / torch.finfo(TORCH_DTYPES[dtype]).eps
    assert least < steps % 1 < 1


def test_dust_does_not_change_a_sum_rounded_to_nearest_and_its_coarse_numbers_cancel():
    values = tensor_of("dust", count=4096)
    coarse = values.abs() >= 0.25
    assert 0.05 < coarse.double().mean() < 0.25
    assert values[coarse].sum() == 0 and set(values[coarse].abs().tolist()) <= {0.25, 0.5, 0.75, 1.0}
    assert (values[~coarse] < 0).all() and values[~coarse].sum().abs() < 2.0**-27
    assert (torch.tensor(0.25) + values[~coarse] == 0.25).all()


@pytest.mark.parametrize(
    ("recipe", "tiny"),
    [
        ("subnormal@1", True),
        ("decades", True),
        ("normal*1e-19", True),
        ("normal*-1e-20", True),
        ("normal*1e-12", False),
        ("normal", False),
        ("dust", False),
    ],
)
def test_recipes_whose_products_may_be_subnormal_are_tiny(recipe, tiny):
    assert parse_recipe(recipe).tiny == tiny
