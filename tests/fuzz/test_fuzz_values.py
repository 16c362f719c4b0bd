"""Tensors from descriptions, and descriptions of tensors."""

import itertools

import pytest
import torch

from truekernel.fuzz.choices import DTYPES, LAYOUTS, VALUES
from truekernel.fuzz.libraries.torch_calls import described, made
from truekernel.fuzz.libraries.torch_script import expression
from truekernel.fuzz.libraries.torch_values import TORCH_TYPES, describe, make
from truekernel.fuzz.records import Named, TensorValue

SHAPES = ((), (0,), (3,), (2, 3), (2, 3, 2, 2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_every_layout_and_recipe_can_be_made(dtype):
    for layout, values, shape in itertools.product(LAYOUTS, VALUES, SHAPES):
        tensor = make(TensorValue(shape, dtype, layout, values, 7, 5))
        assert (tuple(tensor.shape), tensor.dtype) == (shape, TORCH_TYPES[dtype])


@pytest.mark.parametrize("layout", ["strided", "transposed", "channels_last", "offset"])
def test_layout_changes_places_and_not_values(layout):
    value = TensorValue((2, 3, 4, 5), seed=3)
    plain, other = make(value), make(TensorValue(value.shape, layout=layout, seed=3))
    assert torch.equal(plain, other)
    assert plain.stride() != other.stride() or other.storage_offset()


def test_special_values_are_there():
    mixed = make(TensorValue((500,), values="mixed"))
    assert mixed.isnan().any()
    assert mixed.isinf().any()
    assert make(TensorValue((9,), "int8", values="extreme")).unique().tolist() == [-128, 127]
    assert (make(TensorValue((50,), values="subnormal")).abs() < torch.finfo(torch.float32).smallest_normal).all()


def test_neighbours_are_filled():
    tensor = make(TensorValue((3,), layout="strided"), 0x3F)
    assert tensor.as_strided((6,), (1,), tensor.storage_offset())[1::2].unique().numel() == 1


def test_a_tensor_too_large_is_refused():
    with pytest.raises(ValueError, match="more than"):
        make(TensorValue((1 << 31,)))
    assert make(TensorValue((1 << 31,), layout="expanded", values="ones")).shape == (1 << 31,)


def test_a_call_survives_description():
    given = (torch.arange(6).reshape(2, 3), [1, 2], 0.5, torch.float64)
    call = described("torch.f", given, {"memory_format": torch.channels_last})
    arguments, keywords, leaves = made(call)
    assert torch.equal(arguments[0], given[0])
    assert arguments[1:] == ([1, 2], 0.5, torch.float64)
    assert keywords == {"memory_format": torch.channels_last}
    assert len(leaves) == 6
    assert call.leaves()[4] == Named("dtype", "float64")


@pytest.mark.filterwarnings("ignore:Sparse invariant")
def test_recipes_are_recognised():
    matrix = torch.randn(4, 4, generator=torch.Generator().manual_seed(1))
    assert describe(matrix @ matrix.mT + torch.eye(4)).values == "symmetric"
    assert describe(matrix.tril()).values == "triangular"
    assert describe(matrix).values == "normal"
    assert describe(torch.rand(9)).values == "unit"
    assert describe(torch.tensor([3, 1])).data == (3, 1)
    assert describe(torch.sparse_coo_tensor(size=(2, 2))) is None


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64"])
def test_scripts_make_the_same_tensor(layout, dtype):
    data = {
        "float32": (1.5, float("nan"), -0.0),
        "int64": (1, -2, 3),
        "bool": (True, False),
        "complex64": ("(1+2j)", "3j"),
    }[dtype]
    for shape in ((), (3,), (2, 3), (1, 2, 2, 3), (0, 2)):
        value = TensorValue(shape, dtype, layout, data=data)
        wanted, got = make(value), eval(expression(value), {"torch": torch})
        assert got.stride() == wanted.stride() or not wanted.numel() or 1 in shape
        assert got.dtype == wanted.dtype
        torch.testing.assert_close(got, wanted, rtol=0, atol=0, equal_nan=True)
