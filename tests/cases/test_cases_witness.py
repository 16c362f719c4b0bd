import math

import pytest

from truekernel.cases import is_witness_seed, make_inputs, witness_cases, witness_shapes
from truekernel.cases.shapes import least, shapes, step_of, wide, wide_length
from truekernel.cases.suite_shapes import suite_shapes
from truekernel.cases.witness import DRAWN_COUNT, PLAN, SHAPES
from truekernel.corpus import problems
from truekernel.model import AxisSpec, Domain, OutputSpec, Problem, TensorSpec

ONES = ("one", "rest", "whole", "row", "sheet")
"""Shapes that may have the length 1, as suites do."""


def problem_of(axes, shape, domain=None):
    return Problem(
        name="w",
        family="elementwise",
        summary="",
        axes=axes,
        inputs=(TensorSpec("x", shape, domain=domain or Domain()),),
        outputs=(OutputSpec("y", shape),),
        reference=lambda inputs, _: (inputs["x"] * 2,),
        flops=lambda a: 1.0,
        bytes=lambda a: 1.0,
    )


AXES = {
    "B": AxisSpec(64, 2, "batch", (1, 3)),
    "N": AxisSpec(4096, 128, "reduction", (1, 64, 127, 129, 0)),
    "G": AxisSpec(8, 8, "group"),
}


def test_witness_shapes_use_no_length_of_any_suite():
    found = witness_shapes(problem_of(AXES, ("B", "N", "G")))
    assert set(found) == {*SHAPES, "many", "long", "crowd"} - {"row", "sheet"}
    assert found["crowd"]["B"] > 8000 and found["crowd"]["N"] < 9
    assert found["past"]["N"] % 64 == 1 and found["eight"]["N"] == 8
    assert found["many"]["B"] > 256 and found["long"]["N"] * found["long"]["B"] * 8 > 100_000
    assert found["one"]["N"] == 1 and found["rest"] == {"B": 17, "N": 241, "G": 8}
    for shape, axes in found.items():
        assert axes["B"] not in {1, 2, 3} or (axes["B"] == 1 and shape == "whole")
        assert axes["N"] not in {128, 64, 127, 129} and (axes["N"] != 1 or shape == "one")
        assert axes["G"] == 8


@pytest.mark.parametrize("problem", problems().values(), ids=lambda problem: problem.name)
def test_no_problem_of_the_corpus_has_a_length_in_common(problem):
    suites = suite_shapes(problem).values()
    for name, axis in problem.axes.items():
        used = {axis.audit, *axis.odd, wide_length(axis), *(axes[name] for axes in suites)}
        if step_of(axis):
            shapes = witness_shapes(problem)
            assert not used & {axes[name] for shape, axes in shapes.items() if shape not in ONES}
            assert used & {axes[name] for shape, axes in shapes.items() if shape in ONES} <= {1}
            assert shapes.get("one", {}).get(name, 1) in {*range(1, 20)} - (used - {1})


def test_few_rows_are_shared_out_exactly_or_are_longer_than_elsewhere():
    rows, heads = (witness_shapes(problems()[name]) for name in ("min_dim", "causal_attention_half"))
    assert rows["whole"] == {"B": 1, "R": 8192, "S": 1} and rows["row"] == {"B": 1, "R": 330000, "S": 1}
    assert heads["row"] == {"heads": 1, "length": 263, "D": 64} and "whole" not in heads
    assert "row" not in witness_shapes(problems()["rotary_embedding_bf16"]), "no sum, no row"
    assert "row" not in witness_shapes(problems()["causal_softmax"]), "a square of so many has too many elements"


def test_a_product_that_is_split_along_its_reduction_has_very_many_outputs_once_and_no_other_problem_has():
    found = {name: shapes["sheet"] for name in problems() if "sheet" in (shapes := witness_shapes(problems()[name]))}
    assert set(found) == {"matmul_large_k"}
    assert found["matmul_large_k"]["K"] == 1
    assert found["matmul_large_k"]["M"] * found["matmul_large_k"]["N"] > 4_000_000


@pytest.mark.parametrize("problem", problems().values(), ids=lambda problem: problem.name)
def test_no_suite_has_a_shape_of_a_witness(problem):
    suites = [*shapes(problem), wide(problem), least(problem), *suite_shapes(problem).values()]
    if any(step_of(axis) for axis in problem.axes.values()):
        assert not [axes for axes in witness_shapes(problem).values() if axes in suites]


def test_the_rest_is_one_element_beyond_chunks_of_any_power_of_two():
    rest = witness_shapes(problems()["frobenius_norm"])["rest"]
    assert math.prod(rest.values()) == 4097 and sorted(rest.values()) == [1, 1, 17, 241]
    assert "rest" not in witness_shapes(problems()["axpby_half"]), "one axis has no rows"


def test_no_vector_divides_the_tensors_of_three():
    axes = {"B": AxisSpec(64, 2, "batch", (1, 3)), "N": AxisSpec(64, 64, "spatial", (1, 5))}
    assert all(length % 2 for length in witness_shapes(problem_of(axes, ("B", "N")))["three"].values())


def test_the_last_spatial_axis_is_broad_where_there_is_no_feature_axis():
    axes = {"H": AxisSpec(512, 48, "spatial", (1, 13)), "W": AxisSpec(512, 48, "spatial", (1, 13))}
    found = witness_shapes(problem_of(axes, ("H", "W")))["broad"]
    assert found["W"] > 256 and found["H"] < 8


def test_lengths_keep_the_common_divisor_of_an_axis():
    axes = {"D": AxisSpec(128, 64, "feature", (32, 96))}
    assert {shape["D"] % 32 for shape in witness_shapes(problem_of(axes, ("D",))).values()} == {0}


def test_shapes_that_a_tensor_can_not_have_are_left_out():
    axes = {"H": AxisSpec(64, 16, "spatial", (1, 5)), "K": AxisSpec(9, 9, "group")}
    found = witness_shapes(problem_of(axes, ("H - K + 1",)))
    assert "small" not in found
    assert all(shape["H"] >= 9 for shape in found.values())


def test_witness_cases_can_all_be_made_and_are_in_their_own_range_of_seeds():
    problem = problem_of(AXES, ("B", "N"))
    cases = witness_cases(problem)
    assert 10 <= len(cases) - DRAWN_COUNT <= len(PLAN)
    assert all(is_witness_seed(case.seed) for case in cases)
    assert len({case.id for case in cases}) == len(cases)
    for case in cases:
        assert make_inputs(problem, case)["x"].shape == (case.lengths["B"], case.lengths["N"])


@pytest.mark.parametrize("legal", [False, True])
def test_special_values_only_where_they_are_legal(legal):
    recipes = [case.recipe for case in witness_cases(problem_of(AXES, ("B", "N"), Domain(nonfinite=legal)))]
    assert ("special" in recipes) == legal


def test_a_problem_of_fixed_axes_keeps_its_lengths():
    axes = {"N": AxisSpec(64, 64, "group")}
    assert {case.axes for case in witness_cases(problem_of(axes, ("N",)))} == {(("N", 64),)}


def test_axes_that_may_vary_differ_where_a_square_would_hide_which_is_which():
    axes = {"M": AxisSpec(4096, 48, "feature", (1, 15)), "N": AxisSpec(4096, 48, "feature", (1, 17))}
    found = witness_shapes(problem_of(axes, ("M", "N")))
    assert all(found[shape]["M"] != found[shape]["N"] for shape in ("above", "below", "medium", "large", "broad"))
    assert found["small"]["M"] == found["small"]["N"]


def test_rows_are_longer_than_a_block_where_there_are_many_and_nothing_else():
    rows = witness_shapes(problems()["log_softmax"])["many"]
    assert min(rows.values()) > 256
    assert witness_shapes(problems()["max_pool2d"])["many"]["H"] < 16


def test_inner_axes_of_tiled_families_are_deep_and_nothing_else():
    for name, problem in problems().items():
        deep = witness_shapes(problem).get("deep")
        if deep is not None:
            assert problem.family in ("matmul", "attention", "convolution"), name
    assert witness_shapes(problems()["matmul"])["deep"]["K"] > 16_000
    assert witness_shapes(problems()["attention"])["deep"]["keys"] > 16_000
    assert witness_shapes(problems()["conv1d_dilated"])["deep"]["C"] * 24 > 4096 + 256


def test_a_lone_row_is_longer_than_a_long_one():
    for name, problem in problems().items():
        found = witness_shapes(problem)
        if "lone" in found:
            assert problem.family not in ("matmul", "convolution", "attention", "pooling", "elementwise", "activation")
            assert problem.family == "softmax" or max(found["lone"].values()) >= 18_000, name
    assert witness_shapes(problems()["batch_norm"])["lone"]["positions"] * 2 > 262_144
    assert math.prod(witness_shapes(problems()["frobenius_norm"])["lone"].values()) > 1_048_576


def test_a_tower_strays_beyond_the_slack_by_one_number_a_row():
    tower = witness_shapes(problems()["cumsum"])["tower"]
    assert tower["B"] * 4 > 4096 + 256 and tower["N"] > 256


def test_a_plane_has_more_rows_than_threads_and_rows_of_whole_vectors():
    plane = witness_shapes(problems()["log_softmax"])["plane"]
    assert plane["rows"] > 256 and plane["features"] > 1024 and plane["features"] % 4 == 0
    assert {"softmax", "layer_norm", "mse_loss"} <= {n for n, p in problems().items() if "plane" in witness_shapes(p)}


def test_a_vast_image_has_more_outputs_than_a_grid_takes():
    vast = witness_shapes(problems()["max_pool2d"])["vast"]
    assert 4096 * 256 < math.prod(vast.values()) < 1.3e6
    assert {p.family for p in problems().values() if "vast" in witness_shapes(p)} == {"pooling", "convolution"}
    images = witness_shapes(problems()["conv2d"])["vast"]
    assert images["H"] * images["W"] > 4096 and images["batch"] < 9


def test_past_reaches_beyond_a_window_at_the_edge():
    past = witness_shapes(problems()["conv2d"])["past"]
    assert past["H"] >= 9
    assert past["W"] >= 9


def test_a_crowd_has_more_rows_than_a_grid_that_is_cut():
    for name, problem in problems().items():
        crowd = witness_shapes(problem).get("crowd")
        if crowd is not None:
            assert problem.family not in ("matmul", "convolution", "pooling"), name
            least = {"elementwise": 8192, "activation": 8192, "attention": 59}.get(problem.family, 512)
            assert max(crowd.values()) > least, name


def test_broadest_features_stray_beyond_the_slack_by_one_number_each():
    assert witness_shapes(problems()["batch_norm"])["broadest"]["channels"] > 1024
    assert (
        witness_shapes(problems()["attention"])["broadest"]["D"]
        >= 600
        > witness_shapes(problems()["attention"])["broadest"]["keys"]
    )
    assert "broadest" not in witness_shapes(problems()["softmax"])


def test_long_matrices_have_more_than_a_few_rows():
    for shape, name in (("long", "N"), ("deep", "K")):
        axes = witness_shapes(problems()["matmul"])[shape]
        assert axes[name] > 8192 and axes["M"] >= 9


def test_a_lone_square_leaves_a_row_beyond_blocks_of_four_warps():
    lone = witness_shapes(problems()["causal_softmax"])["lone"]
    assert lone["heads"] * lone["length"] % 4 == 1 and lone["length"] * 4 * 3 > 4096
    assert {"hinge_loss", "softmax", "elu"} <= {n for n, p in problems().items() if "crowd" in witness_shapes(p)}
