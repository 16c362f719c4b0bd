import json
import math

import pytest

from truekernel.fuzz.choices import VOCABULARY
from truekernel.fuzz.records import Call, Named, Outcome, Reference, TensorValue, TestCase, document, parsed

CASE = TestCase(
    "torch",
    (
        Call("torch.add", (TensorValue((2, 3), data=(1.0, float("inf"))), 2), (("alpha", float("-inf")),)),
        Call(
            "torch.cat",
            ((Reference(0), TensorValue((0,), "int64")), None),
            (("dtype", Named("dtype", "float32")),),
            repeat=2,
        ),
    ),
    "seed",
)


def test_a_case_survives_json():
    text = json.dumps(document(CASE), allow_nan=False)
    assert parsed(json.loads(text)) == CASE


def test_nan_survives_json():
    back = parsed(json.loads(json.dumps(document(Call("f", (float("nan"),))), allow_nan=False)))
    assert math.isnan(back.arguments[0])


def test_key_tells_content_and_not_origin():
    same = TestCase("torch", CASE.calls, "free")
    other = TestCase("torch", CASE.calls[:1])
    assert CASE.key() == same.key() != other.key()


def test_what_is_no_record_is_refused():
    with pytest.raises(KeyError):
        parsed({"is": "Nothing"})


def test_leaves_come_in_order():
    assert CASE.calls[1].leaves() == [Reference(0), TensorValue((0,), "int64"), None, Named("dtype", "float32")]


def test_only_failures_fail():
    assert not Outcome("refused").failed
    assert Outcome("hang").failed


def test_vocabularies_name_each_option_once():
    assert all(len(set(options)) == len(options) for options in VOCABULARY.values())
