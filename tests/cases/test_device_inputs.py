"""Inputs drawn by the device's kernel have the bits of those drawn on the CPU: run on the CPU backend here, on a GPU under `-m gpu`."""

import importlib.util
import math
from pathlib import Path

import pytest
import torch

from truekernel.cases import device as drawing_device
from truekernel.cases import make_inputs, parse_recipe, recipes, shapes
from truekernel.cases.device import DRAW, RECIPES, DeviceInputs, source
from truekernel.cases.inputs import draw_tensor
from truekernel.corpus import problems
from truekernel.errors import MachineError
from truekernel.execution import simt
from truekernel.model import Case, Domain, TensorSpec
from truekernel.model.lengths import lengths
from truekernel.numerics.formats import from_bytes, to_bytes

_HELPER = Path(__file__).parents[1] / "numerics" / "simt_machine.py"
_SPEC = importlib.util.spec_from_file_location("simt_machine", _HELPER)
simt_machine = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(simt_machine)

FORMS = ("", "*-1", "*0.003", "+300", "*4+3", "*1e30", "*20&parameters")
FLOATS = ("float32", "float16", "bfloat16", "float64")
DOMAINS = (
    Domain(),
    Domain(nonfinite=True),
    Domain(-1.0, 1.0),
    Domain(low=0.0),
    Domain(0.0, 0.75, nonfinite=True),
    Domain(-1e30, 1e30, nonfinite=True),
)
needs_compiler = pytest.mark.skipif(not simt.find_compilers(), reason="no C++ compiler")


@pytest.fixture(scope="module")
def machine():
    machine = simt_machine.SimtMachine(source, [DRAW])
    yield machine
    machine.close()


def bits_drawn(machine, spec, axes, recipe, seed):
    """What the kernel writes, and that it leaves the bytes behind the tensor alone."""
    wanted = draw_tensor(spec, axes, recipe, seed)
    nbytes = wanted.numel() * wanted.element_size()
    address = machine.hold(bytes([0xEE]) * (nbytes + 16))
    DeviceInputs(machine).draw(address, spec, axes, recipe, seed)
    found = machine.download(address, nbytes + 16)
    assert found[nbytes:] == bytes([0xEE]) * 16
    return found[:nbytes], to_bytes(wanted)


def test_every_recipe_has_a_kernel():
    assert set(RECIPES) == set(recipes())


@needs_compiler
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("base", RECIPES)
def test_every_recipe_has_the_same_bits(machine, base, dtype):
    for count, domain in [(1, DOMAINS[0]), (1030, DOMAINS[1]), (515, DOMAINS[4])]:
        spec = TensorSpec("x", (count,), dtype, domain)
        found, wanted = bits_drawn(machine, spec, {}, parse_recipe(base), (1 << 40) + 7)
        assert found == wanted


@needs_compiler
@pytest.mark.parametrize("domain", DOMAINS, ids=range(len(DOMAINS)))
@pytest.mark.parametrize("form", FORMS)
def test_factors_offsets_and_domains_have_the_same_bits(machine, form, domain):
    for base in ("official", "normal", "special", "heavy", "subnormal"):
        for dtype in ("float32", "float16"):
            spec = TensorSpec("x", ("N", 3), dtype, domain, official="signed", scale="1/sqrt(N)")
            found, wanted = bits_drawn(machine, spec, {"N": 71}, parse_recipe(base + form), 11)
            assert found == wanted, base


@needs_compiler
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_whole_numbers_have_the_same_bits(machine, dtype):
    for domain in (Domain(), Domain(kind="boolean"), Domain(kind="index", below="K"), Domain(low=3.0, high=9.0)):
        spec = TensorSpec("i", (257,), dtype, domain)
        found, wanted = bits_drawn(machine, spec, {"K": 200}, parse_recipe("normal"), 5)
        assert found == wanted


@needs_compiler
def test_tensors_of_the_corpus_have_the_same_bits(machine):
    for problem in list(problems().values())[::7]:
        axes = shapes(problem)[-1]
        for spec in problem.tensors:
            if math.prod(lengths(spec.shape, axes)) < 100_000:
                found, wanted = bits_drawn(machine, spec, axes, parse_recipe("heavy*2+1&parameters"), 3)
                assert found == wanted, (problem.name, spec.name)


@needs_compiler
def test_a_contracted_product_would_be_seen():
    """Negative control: the kernel with one rounding less has other bits."""
    text = source().replace("value = value * factor + offset;", "value = fma(value, factor, offset);")
    machine = simt_machine.SimtMachine(lambda: text, [DRAW])
    spec = TensorSpec("x", (4096,), "float64")
    found, wanted = bits_drawn(machine, spec, {}, parse_recipe("normal*3.3+0.1"), 3)
    assert found != wanted
    machine.close()


def test_the_cpu_is_the_default_place():
    problem = problems()["softmax"]
    case = Case.of(problem.name, {**problem.audit_axes(), "features": 257}, "normal", 1)
    here, named = make_inputs(problem, case), make_inputs(problem, case, "cpu")
    assert all(torch.equal(here[name], named[name]) for name in here)


@pytest.mark.gpu
@pytest.mark.parametrize("name", sorted(problems()))
def test_a_gpu_makes_the_same_bits(name):
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    problem = problems()[name]
    forms = [*RECIPES, "official", "official*3+1", "normal*300&parameters", "normal*-0.003", "special+2"]
    for number, form in enumerate(forms):
        case = Case.of(problem.name, shapes(problem)[number % len(shapes(problem))], form, number)
        here, there = make_inputs(problem, case), make_inputs(problem, case, "cuda")
        for key, tensor in here.items():
            assert to_bytes(tensor) == to_bytes(there[key].cpu()), (form, key)


def test_bytes_round_trip():
    tensor = torch.arange(5, dtype=torch.int32)
    assert torch.equal(from_bytes(to_bytes(tensor), "int32", (5,)), tensor)
    assert len(RECIPES) == drawing_device.WHOLE


@pytest.mark.skipif(importlib.util.find_spec("cuda") is not None, reason="cuda-core is there")
def test_without_cuda_core_one_line_says_what_to_install():
    problem = problems()["softmax"]
    case = Case.of(problem.name, {"rows": 1, "features": 8}, "normal", 1)
    with pytest.raises(MachineError, match="install cuda-core"):
        make_inputs(problem, case, "cuda")
