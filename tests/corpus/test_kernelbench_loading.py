"""Problem files of a checkout become problems; what can't is refused with one line."""

import dataclasses

import pytest
import torch
from kernelbench_files import GOOD, HANGS, HOSTILE, SOFTMAX, write

from truekernel.cases import make_inputs
from truekernel.corpus.kernelbench import load
from truekernel.corpus.kernelbench.checkout import problem_files
from truekernel.errors import BadInputError
from truekernel.model import Case
from truekernel.model.lengths import lengths


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Good and hostile files together, as a checkout."""
    root = tmp_path_factory.mktemp("checkout")
    write(root, GOOD)
    write(root, {name: text for name, (text, _) in HOSTILE.items()}, level=2)
    return load(root, seconds=20.0)


def problem(loaded, number):
    return loaded.adapted[f"level1/{number}"].problem


def inputs_of(found, axes, recipe="official", seed=1):
    return make_inputs(found, Case.of(found.name, axes, recipe, seed))


def test_every_file_is_adapted_or_refused(loaded):
    assert list(loaded.adapted) == [f"level1/{n}" for n in range(1, len(GOOD) + 1)]
    assert len(loaded.refused) == len(HOSTILE)


@pytest.mark.parametrize("name", HOSTILE)
def test_refusals_say_why_in_one_line(loaded, name):
    why = next(r.why for r in loaded.refused if r.file.path.stem == name)
    assert HOSTILE[name][1] in why
    assert "\n" not in why


def test_a_file_that_hangs_is_ended_and_the_others_go_on(tmp_path):
    found = load(write(tmp_path, {"1_Hangs": HANGS, "2_Hangs": HANGS, "3_Softmax": SOFTMAX}), seconds=4.0)
    assert [refused.why for refused in found.refused] == ["it did not end within 4 seconds"] * 2
    assert list(found.adapted) == ["level1/3"]


def test_axes_are_the_constants_that_shapes_follow(loaded):
    softmax = problem(loaded, 1)
    assert softmax.inputs[0].shape == softmax.outputs[0].shape == ("batch_size", "dim")
    rows, features = softmax.axes["batch_size"], softmax.axes["dim"]
    assert (rows.official, rows.kind, rows.audit) == (4096, "batch", 2)
    assert (features.official, features.kind, features.audit) == (393216, "reduction", 393216)
    assert softmax.summary == "Softmax of rows."
    assert softmax.bytes({"batch_size": 1, "dim": 10}) == 80


def test_expressions_of_axes_give_the_shapes_that_the_file_makes(loaded):
    conv = problem(loaded, 2)
    assert {"batch", "channels", "filters", "sides_0", "sides_1"} <= set(conv.axes)
    assert conv.axes["channels"].kind == "reduction"
    assert conv.axes["filters"].kind == "feature"
    for axes in (conv.official_axes(), {**conv.official_axes(), "batch": 3, "sides_0": 9, "sides_1": 14, "filters": 5}):
        made = inputs_of(conv, axes)
        (output,) = conv.reference(made, axes)
        assert tuple(output.shape) == lengths(conv.outputs[0].shape, axes)
    wanted = torch.nn.functional.conv2d(made["image"], made["conv.weight"], made["conv.bias"], stride=2, padding=1)
    assert torch.equal(output, wanted)


def test_a_running_sum_is_not_independent_along_its_axis(loaded):
    scan = problem(loaded, 6)
    assert scan.axes["rows"].kind == "batch"
    assert scan.axes["length"].kind == "reduction"


def test_weights_are_drawn_as_the_file_draws_them(loaded):
    conv = problem(loaded, 2)
    weight = next(spec for spec in conv.parameters if spec.name == "conv.weight")
    assert weight.official == "signed"
    assert float(weight.scale) == pytest.approx(1 / 27**0.5)
    made = inputs_of(conv, conv.audit_axes())["conv.weight"]
    assert made.abs().max() <= 1 / 27**0.5
    other = inputs_of(conv, conv.audit_axes(), "normal&parameters")["conv.weight"]
    assert other.abs().max() > 1 / 27**0.5


def test_integers_stay_integers(loaded):
    targets = problem(loaded, 3)
    logits, classes, mask = targets.inputs
    assert (logits.official, classes.dtype, mask.dtype) == ("normal", "int64", "uint8")
    assert classes.domain.below == "classes"
    axes = targets.official_axes() | {"rows": 50}
    made = inputs_of(targets, axes)
    assert made["targets"].dtype == torch.int64
    assert 0 <= int(made["targets"].min()) <= int(made["targets"].max()) < 1000
    (half,) = targets.reference({n: t.half() if t.is_floating_point() else t for n, t in made.items()}, axes)
    (wide,) = targets.reference({n: t.double() if t.is_floating_point() else t for n, t in made.items()}, axes)
    assert (half.dtype, wide.dtype) == (torch.float16, torch.float64)
    assert torch.equal((wide != 0), made["mask"].bool())


def test_inputs_that_the_file_computes_are_computed_from_our_numbers(loaded):
    derived = problem(loaded, 4)
    axes = derived.official_axes()
    made = inputs_of(derived, axes)
    assert torch.allclose(made["p"].sum(-1), torch.ones(8))
    assert set(made["sign"].unique().tolist()) == {-1.0, 1.0}
    again, other = inputs_of(derived, axes), inputs_of(derived, axes, seed=4)
    assert all(torch.equal(made[name], again[name]) for name in made)
    assert not torch.equal(made["p"], other["p"])
    heavy = inputs_of(derived, axes, "normal*50")
    assert torch.allclose(heavy["p"].sum(-1), torch.ones(8))
    assert heavy["p"].max() > made["p"].max()
    assert torch.allclose(inputs_of(derived, axes, "official*-1")["sign"], -made["sign"])
    assert torch.equal(inputs_of(derived, axes, "official*-1")["p"], made["p"])  # a probability can't be negative


def test_buffers_literals_and_weights_reach_the_model(loaded):
    derived = problem(loaded, 4)
    axes = derived.official_axes()
    made = {name: tensor.double() for name, tensor in inputs_of(derived, axes).items()}
    (output,) = derived.reference(made, axes)
    shift = torch.arange(5, dtype=torch.float64)
    rest = made["throwaway.weight"].sum() + made["throwaway.bias"].sum()
    assert torch.allclose(output, (made["p"] * made["scale"] + shift) * made["sign"] * 3.5 + rest, rtol=1e-12)


def test_other_sizes_make_another_model(loaded):
    derived = problem(loaded, 4)
    axes = {**derived.official_axes(), "N": 3, "W": 9}
    (output,) = derived.reference(inputs_of(derived, axes), axes)
    assert tuple(output.shape) == (3, 9)


def test_the_places_of_extremes_come_with_what_they_choose_from(loaded):
    argmin = problem(loaded, 5)
    assert argmin.outputs[0].kind == "index"
    axes = {**argmin.official_axes(), "B": 2}
    made = inputs_of(argmin, axes)
    (index,) = argmin.reference(made, axes)
    table = argmin.ties(made, axes)
    assert table.shape == (2, 7, 300)
    assert torch.equal(table.argmin(-1), index)


def test_a_forward_that_writes_its_inputs_gets_copies(loaded):
    writer = loaded.adapted["level1/7"]
    assert any("writes to its inputs" in note for note in writer.notes)
    made = inputs_of(writer.problem, writer.problem.official_axes())
    before = made["x"].clone()
    first = writer.problem.reference(made, writer.problem.official_axes())
    assert torch.equal(made["x"], before)
    assert torch.equal(writer.problem.reference(made, writer.problem.official_axes())[0], first[0])


def test_official_sizes_are_never_allocated(tmp_path):
    text = GOOD["1_Softmax"].replace("393216", "1 << 40")
    found = load(write(tmp_path, {"1_Huge": text}), seconds=20.0)
    assert problem(found, 1).axes["dim"].official == 1 << 40


@pytest.mark.parametrize("levels", [(), (3,)])
def test_no_checkout(tmp_path, levels):
    if levels:
        write(tmp_path, GOOD)
    with pytest.raises(BadInputError, match=r"--level 3|not a checkout"):
        problem_files(tmp_path, levels)


def test_a_file_that_changed_since_is_noticed(tmp_path):
    found = problem(load(write(tmp_path, {"1_Softmax": GOOD["1_Softmax"]}), seconds=20.0), 1)
    (tmp_path / "KernelBench" / "level1" / "1_Softmax.py").write_text(GOOD["6_Scan"])
    axes = {"batch_size": 2, "dim": 5}
    with pytest.raises(BadInputError, match="has changed"):
        found.reference(inputs_of(dataclasses.replace(found, make=None), axes), axes)
