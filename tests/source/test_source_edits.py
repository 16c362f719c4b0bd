"""Edits: order, overlap, bytes against characters, and the spans of launch plans."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truekernel.errors import BadInputError, SourceError
from truekernel.model import Edit
from truekernel.source import apply_edits, parse_cuda, parse_plan
from truekernel.source.edits import (
    between,
    drop_after,
    drop_before,
    insert_after,
    insert_before,
    remove_statement,
    replace,
)


def test_edits_refer_to_the_text_before_any_edit() -> None:
    assert apply_edits("abcdef", [Edit(4, 5, "X"), Edit(0, 2, ""), Edit(2, 2, "++")]) == "++cdXf"


def test_insertions_at_one_place_keep_their_order() -> None:
    assert apply_edits("ab", [Edit(1, 1, "1"), Edit(1, 1, "2")]) == "a12b"


@pytest.mark.parametrize(
    ("edits", "why"),
    [
        ([Edit(0, 3, ""), Edit(2, 4, "")], "overlap"),
        ([Edit(0, 9, "")], "outside"),
        ([Edit(3, 2, "")], "outside"),
    ],
)
def test_bad_edits_are_refused(edits: list[Edit], why: str) -> None:
    with pytest.raises(BadInputError, match=why):
        apply_edits("abcde", edits)


def test_a_character_is_not_cut_in_two() -> None:
    with pytest.raises(BadInputError, match="cuts a character"):
        apply_edits("é", [Edit(0, 1, "")])


@given(
    st.text(max_size=30), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.text(max_size=5)), max_size=4)
)
def test_edits_leave_the_rest_alone(text: str, wanted: list[tuple[int, int, str]]) -> None:
    bounds = [len(text[:i].encode()) for i in range(len(text) + 1)]
    edits, reach = [], 0
    for low, high, new in sorted((min(a, b), max(a, b), new) for a, b, new in wanted):
        if low >= reach and high <= len(text) and (low, high) != (reach - 1, reach):
            edits.append(Edit(bounds[low], bounds[high], new))
            reach = high
    result = (
        apply_edits(text, reversed(edits)) if len({e.start for e in edits}) == len(edits) else apply_edits(text, edits)
    )
    kept, position = "", 0
    data = text.encode()
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        kept += data[position : edit.start].decode() + edit.replacement
        position = edit.end
    assert result == kept + data[position:].decode()


def test_pieces_of_edits() -> None:
    text = "__global__ void k(float* y) { y[0] = a + b; f(); }"
    tree = parse_cuda(text)
    total = tree.find("binary_expression")[0]
    left, right = total.field("left"), total.field("right")
    assert left is not None and right is not None
    made = [
        apply_edits(text, [edit])[len("__global__ void k(float* y) { ") : -len(" }")]
        for edit in (
            replace(left, "c"),
            insert_before(total, "-"),
            insert_after(total, " + c"),
            between(left, right, "0"),
            drop_after(left, total),
            drop_before(right, total),
            remove_statement(tree.find("expression_statement")[1]),
        )
    ]
    assert made == [
        "y[0] = c + b; f();",
        "y[0] = -a + b; f();",
        "y[0] = a + b + c; f();",
        "y[0] = 0; f();",
        "y[0] = a; f();",
        "y[0] = b; f();",
        "y[0] = a + b; ;",
    ]


PLAN = '''"""Plän."""
BLOCK = 256


def launch(run, inputs, axes):
    y = run.empty((axes["n"],), "float32")
    run.launch("é", (axes["n"] + BLOCK - 1) // BLOCK, block=BLOCK, args=(y, 3))
    return y
'''


def test_plan_spans_are_exact() -> None:
    plan = parse_plan(PLAN)
    for node in plan.nodes:
        segment = ast.get_source_segment(PLAN, node.syntax)
        assert node.text == segment
    (call,) = plan.calls("launch")
    grid, block = call.argument(1, "grid"), call.argument(2, "block")
    assert grid is not None and grid.text == '(axes["n"] + BLOCK - 1) // BLOCK'
    assert block is not None and (block.text, block.line) == ("BLOCK", 7)
    assert call.argument(4, "shared") is None
    arguments = call.argument(3, "args")
    assert arguments is not None and [item.text for item in arguments.elements] == ["y", "3"]
    assert apply_edits(PLAN, [replace(grid, "1")]).count('run.launch("é", 1, block=BLOCK') == 1
    assert [node.text for node in plan.body() if node.kind == "Return"] == ["return y"]


def test_a_plan_that_is_not_python_is_refused() -> None:
    with pytest.raises(SourceError, match=r"^plan\.py:2:"):
        parse_plan("x = 1\ny = = 2\n", "plan.py")
