import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from truekernel.numerics.formats import FORMATS, TORCH_DTYPES, from_bytes, poisoned, to_bytes, ulp, unit_roundoff


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_formats_agree_with_torch(name):
    info = torch.finfo(TORCH_DTYPES[name])
    assert FORMATS[name].largest == info.max
    assert 2 * FORMATS[name].unit_roundoff == info.eps
    assert 2.0 ** FORMATS[name].least_exponent == info.smallest_normal


@given(st.floats(-(2.0**127), 2.0**127, width=32))
def test_ulp_of_float32_is_numpys_spacing(value):
    assert ulp(np.array([value]), "float32")[0] == np.spacing(np.float32(abs(value)))


@given(st.floats(-65472, 65472, width=16))
def test_ulp_of_float16_is_numpys_spacing(value):
    assert ulp(np.array([value]), "float16")[0] == float(np.spacing(np.float16(abs(value))))


def test_integers_have_no_spacing():
    assert ulp(np.array([1.0, 1e9]), "int32").tolist() == [0.0, 0.0]
    assert unit_roundoff("int64") == 0.0


@pytest.mark.parametrize("name", sorted(TORCH_DTYPES))
def test_bytes_round_trip(name):
    tensor = torch.arange(12).reshape(3, 4).to(TORCH_DTYPES[name])
    data = to_bytes(tensor)
    assert torch.equal(from_bytes(data, name, (3, 4)), tensor)
    with pytest.raises(ValueError, match="are needed"):
        from_bytes(data, name, (3, 5))
    assert from_bytes(b"", name, (0, 4)).shape == (0, 4)


@pytest.mark.parametrize("name", sorted(TORCH_DTYPES))
def test_poison_is_seen_and_zeros_are_not(name):
    size = len(to_bytes(torch.zeros(1, dtype=TORCH_DTYPES[name])))
    tensor = from_bytes(b"\xff" * size + b"\x00" * size, name, (2,))
    assert poisoned(tensor).tolist() == [True, False]


def test_one_expanded_element_has_bytes():
    tensor = torch.ones(1, dtype=torch.float16).expand(1)
    assert tensor.as_strided((1,), (0,)).stride() == (0,)
    assert to_bytes(tensor.as_strided((1,), (0,))) == b"\x00\x3c"
