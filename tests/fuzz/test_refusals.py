"""Refusals and defects: labelled messages that torch 2.13 (and, for tuning only, JAX 0.10.2) really gave, and examples of each rule.

`refusal_messages.json`: operator, class and text (cut at 420 characters) of exceptions, and a label given by judgement. `part`: rules were tuned on `tuning` alone;
`held_out` is the other half; `fresh` was collected and labelled after the rules stood. `source`: a call made here, or a text that a public report quotes.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from truekernel.fuzz.refusals import CATEGORIES, RULES, classify

ROWS = json.loads((Path(__file__).parent / "refusal_messages.json").read_text(encoding="utf-8"))


def judged(part):
    return [(row, classify(row["error"], row["message"], row["operator"])) for row in ROWS if row["part"] == part]


def defects(part):
    """True positives, false positives, false negatives."""
    pairs = [(row["label"] == "defect", judgement.category == "defect") for row, judgement in judged(part)]
    counts = Counter(pairs)
    return counts[True, True], counts[False, True], counts[True, False]


def test_there_are_three_hundred_labelled_messages_of_all_kinds():
    assert len(ROWS) >= 300
    assert sum(row["source"] == "call" for row in ROWS) >= 300
    for part in ("tuning", "held_out"):
        labels = Counter(row["label"] for row in ROWS if row["part"] == part)
        assert set(labels) == set(CATEGORIES)
        assert labels["defect"] >= 30


def test_no_message_is_there_twice():
    keys = [(row["error"], row["message"]) for row in ROWS]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(("part", "precision", "recall"), [("held_out", 0.95, 0.95), ("fresh", 0.95, 0.75)])
def test_defects_are_found_among_messages_that_the_rules_were_not_tuned_on(part, precision, recall):
    right, wrong, missed = defects(part)
    assert right / (right + wrong) >= precision
    assert right / (right + missed) >= recall


@pytest.mark.parametrize("part", ["held_out", "fresh"])
def test_the_five_categories_agree_with_the_labels(part):
    pairs = judged(part)
    assert sum(row["label"] == judgement.category for row, judgement in pairs) / len(pairs) >= 0.9


def test_a_judge_that_calls_all_refusals_would_be_seen():
    assert sum(row["label"] == "defect" for row in ROWS if row["part"] == "held_out") / len(judged("held_out")) > 0.05


EXAMPLES = [
    ("defect", "RuntimeError", 'x INTERNAL ASSERT FAILED at "a.cpp":1, please report a bug to PyTorch.', ""),
    ("defect", "RuntimeError", "CUDA error: an illegal memory access was encountered", ""),
    ("unknown", "RuntimeError", "CUDA error: device-side assert triggered", ""),
    ("defect", "RuntimeError", "Storage size calculation overflowed with sizes=[10] and strides=[-1]", ""),
    (
        "resource",
        "RuntimeError",
        "Storage size calculation overflowed with sizes=[10] and strides=[9223372036854775807]",
        "",
    ),
    ("resource", "OutOfMemoryError", "CUDA: tried to allocate 20.00 GiB", ""),
    ("resource", "XlaRuntimeError", "RESOURCE_EXHAUSTED: Out of space", ""),
    ("unimplemented", "XlaRuntimeError", "UNIMPLEMENTED: no such lowering", ""),
    ("unimplemented", "UnimplementedError", "no kernel for this type", ""),
    ("defect", "XlaRuntimeError", "INTERNAL: no such buffer", ""),
    ("defect", "InternalError", "failed to create the thunk", ""),
    ("refusal", "XlaRuntimeError", "INVALID_ARGUMENT: shapes differ", ""),
    ("defect", "IndexError", "vector::_M_range_check: __n (which is 3) >= this->size() (which is 2)", ""),
    ("defect", "MemoryError", "std::bad_alloc", "torch.combinations"),
    ("defect", "RuntimeError", "a.cpp:1: SymIntArrayRef expected to contain only concrete integers", ""),
    ("defect", "RuntimeError", "could not create a primitive descriptor for the matmul primitive", ""),
    ("defect", "RuntimeError", "Assertion `size == batch_size' failed.  at Criterion.c:50", ""),
    ("unimplemented", "Unsupported", "Attempted to wrap sparse Tensor", ""),
    ("defect", "AssertionError", "Node add_25 was invalid, but is output", ""),
    ("unimplemented", "InductorError", "NotImplementedError: complex outputs", ""),
    ("defect", "InductorError", "LoweringException: KeyError: 'x'", ""),
    ("refusal", "RuntimeError", "ZeroDivisionError", "torch.floor_divide"),
    ("refusal", "OverflowError", "Python int 1180591620717411303424 too large to convert to int32", "jax.numpy.array"),
    ("defect", "OverflowError", "int too big to convert", "torch.tril_indices"),
    ("defect", "RuntimeError", "", ""),
    ("defect", "AssertionError", "expected_ranges == extra_ranges", ""),
    ("defect", "SystemError", "returned NULL without setting an exception", ""),
    ("defect", "ZeroDivisionError", "integer modulo by zero", "torch.nn.GroupNorm"),
    ("refusal", "AttributeError", "'_OpNamespace' 'aten' object has no attribute 'banana'", ""),
    ("unknown", "AttributeError", "'int' object has no attribute 'shape'", ""),
    ("defect", "IndexError", "list index out of range", ""),
    ("defect", "ValueError", "not enough values to unpack (expected 4, got 2)", ""),
    (
        "defect",
        "IndexError",
        "Dimension out of range (expected to be in range of [-2, 1], but got -3)",
        "torch.nn.functional.max_pool2d",
    ),
    ("refusal", "IndexError", "Dimension out of range (expected to be in range of [-2, 1], but got -3)", "torch.sum"),
    (
        "refusal",
        "IndexError",
        "Dimension out of range (expected to be in range of [-2, 1], but got -3)",
        "torch.Tensor.unfold",
    ),
    (
        "defect",
        "IndexError",
        "select(): index 1 out of range for tensor of size [3, 1] at dimension 1",
        "torch.Tensor.to_sparse_csr",
    ),
    (
        "refusal",
        "IndexError",
        "select(): index 1 out of range for tensor of size [3, 1] at dimension 1",
        "torch.select",
    ),
    ("defect", "RuntimeError", "Unknown Complex ScalarType for Long", ""),
    ("unimplemented", "NotImplementedError", "\"sort\" not implemented for 'ComplexFloat'", ""),
    ("unimplemented", "RuntimeError", "cummax does not support complex dtypes", ""),
    (
        "refusal",
        "RuntimeError",
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location.",
        "",
    ),
    ("refusal", "RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", ""),
    (
        "refusal",
        "RuntimeError",
        "Expected x > 0 to be true. (Could this error message be improved? If so, please report an enhancement request to PyTorch.)",
        "",
    ),
    ("unknown", "KeyboardInterrupt", "", ""),
]


@pytest.mark.parametrize(("category", "error", "message", "operator"), EXAMPLES)
def test_examples(category, error, message, operator):
    assert classify(error, message, operator).category == category


def test_every_rule_decides_something():
    decided = {classify(error, message, operator).why for _, error, message, operator in EXAMPLES}
    decided |= {classify(row["error"], row["message"], row["operator"]).why for row in ROWS}
    assert {rule.why for rule in RULES} <= decided


def test_the_two_way_answer():
    assert classify("RuntimeError", "x INTERNAL ASSERT FAILED").kind == "defect"
    assert classify("NotImplementedError", "not there").kind == "refusal"
    assert classify("KeyboardInterrupt", "").kind == "refusal"


def test_the_compilers_wrapper_is_opened():
    text = "RuntimeError when making fake tensor call: call_function f(*(), **{}): got "
    assert classify("TorchRuntimeError", text + "ZeroDivisionError('division by zero')").category == "defect"
    assert (
        classify("TorchRuntimeError", text + "RuntimeError('Invalid number of data points (0) specified')").category
        == "refusal"
    )
