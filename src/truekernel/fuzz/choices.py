"""The tree of choices: which kinds of nodes there are, and what can be chosen at each.

The vocabulary of a kind is fixed (those of `family` and `operator` belong to a library), so that a learned policy has one output for each option.
At a node only some options are open: the mask. `space.questions` asks node by node and answers with a test case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "pattern", "calls", "family", "operator", "relation", "origin", "form", "risk", "mutation", "argument",
    "axis", "extent", "rank", "dtype", "layout", "values", "integer", "real", "boolean", "text", "present", "repeat",
]  # fmt: skip

PATTERNS = ("none", "extreme_window", "collapse", "alias", "repeat", "huge_stride", "empty", "special_values")
"""Shapes of past bugs: a kernel and stride far beyond the input; a shape that collapses (1024x1024 to 1x1); arguments that share memory; a call made many
times in a row; views whose strides reach far; empty tensors in all places; NaN, infinities and extremes everywhere."""

RELATIONS = ("independent", "same_operator", "chain")
"""How a further call stands to the one before: unrelated; the same operator on other arguments; with its result as an argument."""

ORIGINS = ("constrained", "seed", "free")
"""constrained: a form that was learned from samples, redrawn within what was learned of it; seed: a sample as it is, then mutated; free: types only."""

RISKS = ("0", "1", "2", "all")
"""How many leaves of a constrained call may leave what was seen to be valid."""

MUTATIONS = ("none", "extent", "rank", "dtype", "layout", "values", "scalar", "present", "alias")

EXTENTS = (
    "same", "0", "1", "2", "3", "4", "5", "7", "8", "9", "15", "16", "17", "31", "32", "33", "63", "64", "65", "100", "127", "128", "129",
    "255", "256", "257", "511", "513", "1000", "1024", "2048", "4097", "65537", "2147483647", "2147483648", "4611686018427387904",
)  # fmt: skip
"""Sizes of a dimension, chosen around the widths of vectors, tiles and integer types. The largest only where no memory is taken: beside a 0, or expanded."""

DTYPES = (
    "float32", "float64", "float16", "bfloat16", "complex64", "complex128", "int64", "int32", "int16", "int8", "uint8", "bool",
    "complex32", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip

LAYOUTS = ("contiguous", "strided", "transposed", "channels_last", "offset", "expanded", "overlapping", "huge_stride")
"""offset: a contiguous view that starts within a larger buffer. expanded: one dimension has stride 0. overlapping: windows that share elements.
huge_stride: a dimension of extent 1 or 0 with a stride beyond 2**31."""

VALUES = (
    "normal", "unit", "positive", "small_integers", "zeros", "ones", "ties", "negative", "large", "tiny", "subnormal", "nan", "infinite", "mixed",
    "extreme", "index", "symmetric", "triangular", "same",
)  # fmt: skip
"""mixed: ordinary numbers with NaN, infinities, zeros of both signs, subnormals and the largest among them. extreme: only the least and largest of the dtype
(INT_MIN, INT_MAX). index: within `TensorValue.bound`. same: as the sample has it."""

INTEGERS = (
    "same", "-9223372036854775808", "-2147483649", "-2147483648", "-65536", "-128", "-3", "-2", "-1", "0", "1", "2", "3", "4", "5", "7", "8", "16", "31", "32",
    "64", "100", "128", "255", "256", "1024", "65535", "65536", "2147483647", "2147483648", "4294967296", "1152921504606846976", "9223372036854775807",
)  # fmt: skip

REALS = (
    "same", "-inf", "-1e+38", "-1000000.0", "-2.0", "-1.0", "-0.5", "-1e-45", "-0.0", "0.0", "1e-45", "1e-30", "1e-07", "0.1", "0.5", "0.9", "1.0", "1.5",
    "2.0", "3.0", "10.0", "1000000.0", "1e+38", "1e+300", "inf", "nan",
)  # fmt: skip

MOST_ARGUMENTS = 24
MOST_AXES = 8
MOST_FORMS = 48
MOST_TEXTS = 16

VOCABULARY: dict[Kind, tuple[str, ...]] = {
    "pattern": PATTERNS,
    "calls": ("1", "2", "3", "4", "5", "6"),
    "relation": RELATIONS,
    "origin": ORIGINS,
    "form": tuple(map(str, range(MOST_FORMS))),
    "risk": RISKS,
    "mutation": MUTATIONS,
    "argument": tuple(map(str, range(MOST_ARGUMENTS))),
    "axis": tuple(map(str, range(MOST_AXES))),
    "extent": EXTENTS,
    "rank": tuple(map(str, range(MOST_AXES))),
    "dtype": ("same", *DTYPES),
    "layout": LAYOUTS,
    "values": VALUES,
    "integer": INTEGERS,
    "real": REALS,
    "boolean": ("same", "false", "true"),
    "text": ("same", *map(str, range(MOST_TEXTS))),
    "present": ("same", "absent"),
    "repeat": ("1", "2", "16"),
}
"""Options by kind. `family` and `operator` are the library's: `space.vocabulary(kind)` knows all."""


@dataclass(frozen=True, slots=True)
class Node:
    """Where a choice is made. `call`: number of the call being built. `slot`: number of the argument leaf that it concerns, or -1; `axis`: its dimension, or -1.

    `learned`: key under which the space learns whether options are valid, or "".
    """

    kind: Kind
    call: int = 0
    slot: int = -1
    axis: int = -1
    learned: str = ""


@dataclass(frozen=True, slots=True)
class Options:
    """What is open at a node. `open`: indices into the vocabulary of the node's kind, ascending, never empty. `weights`: one for each, positive: how a
    policy without an opinion should choose (they hold the user's weights of operators, and shares that keep ordinary cases frequent)."""

    open: tuple[int, ...]
    weights: tuple[float, ...]
