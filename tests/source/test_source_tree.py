"""Parsing: spans, masking, device code, directives, errors."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truekernel.errors import SourceError
from truekernel.source import parse_cuda
from truekernel.source.masking import masked
from truekernel.source.query import callee
from truekernel.source.tree import function_name, has_errors

SOURCE = """// größer than __align__(16)
#include <cuda_runtime.h>
#define ADD(a, b) ((a) + \\
                   (b))
#if LIMIT > 3
constexpr int LIMITED = 1 + 2;
#endif
constexpr float EPS = 1e-5f;
constexpr float UNUSED = 2e-5f;
struct __align__(16) Four { float a; __device__ float twice() const { return a * 2.0f; } };
template <int N, typename T>
__global__ void __launch_bounds__(32 * 4) kernel(const T* __restrict__ x, T* y, int n) {
    extern __shared__ __align__(16) float scratch[];
    __shared__ float tile[16 + 1][17];
    auto half = [] __device__ (float v) { return v * 0.5f; };  // v - 1
    if (n < 3) y[0] = half(x[0]) + EPS;
    #pragma unroll
    for (int i = 0; i < n; ++i) y[i] = other<N + 1>(x[i]);
    const char* text = "a + b";
}
int main() { return 40 + 2; }
"""


def test_everything_parses_after_masking() -> None:
    tree = parse_cuda(SOURCE)
    assert tree.errors == ()
    assert [function_name(node) for node in tree.functions] == ["twice", "kernel", "main"]
    assert [function_name(node) for node in tree.device_functions] == ["twice", "kernel"]


def test_spans_refer_to_the_text_as_written() -> None:
    tree = parse_cuda(SOURCE)
    data = SOURCE.encode()
    for node in tree.nodes:
        assert node.text == data[node.start : node.end].decode()
        assert all(node.start <= child.start <= child.end <= node.end for child in node.children)
    comment = tree.find("comment")[0]
    assert comment.text == "// größer than __align__(16)"


def test_columns_count_characters() -> None:
    tree = parse_cuda("/* äöü */ __global__ void k(float* y) { y[0] = 1.0f; }")
    assert (tree.functions[0].line, tree.functions[0].column) == (1, 11)


def test_only_device_code_may_be_rewritten() -> None:
    tree = parse_cuda(SOURCE)
    found = {node.text for node in tree.device("binary_expression")}
    assert found == {"a * 2.0f", "v * 0.5f", "n < 3", "half(x[0]) + EPS", "i < n"}
    literals = {node.text for node in tree.device("number_literal")}
    assert "1e-5f" in literals and "2e-5f" not in literals and "40" not in literals
    assert "17" not in literals, "array extents stay"


def test_places_that_may_not_be_edited() -> None:
    tree = parse_cuda(SOURCE)
    data = SOURCE.encode()
    for piece in (b"a + b", b"v - 1", b"((a) + ", b"(b))", b"LIMIT > 3", b"unroll"):
        start = data.index(piece)
        assert not tree.may_edit(start, start + len(piece)), piece
    for piece in (b"n < 3", b"1 + 2"):
        start = data.index(piece)
        assert tree.may_edit(start, start + len(piece)), piece


def test_questions_about_nodes() -> None:
    tree = parse_cuda(SOURCE)
    call = next(node for node in tree.find("call_expression") if callee(node) == "other")
    assert call.in_device_code
    assert call.function is not None and function_name(call.function) == "kernel"
    assert call.statement is not None and call.statement.text.startswith("y[i] = ")
    returned = next(node for node in tree.find("binary_expression") if node.text == "40 + 2")
    assert not returned.in_device_code


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("def f(x):\n    return x + 1\n", 1, 1),
        ("this is a letter, not a program", 1, 1),
        ("", 1, 1),
        ("int x = 3;\n", 1, 1),
        ("\x00\x01\x02", 1, 1),
    ],
)
def test_what_is_not_cuda_is_refused_with_its_place(text: str, line: int, column: int) -> None:
    with pytest.raises(SourceError, match=rf"^somewhere\.cu:{line}:{column}: "):
        parse_cuda(text, "somewhere.cu")


def test_small_errors_are_kept_and_counted() -> None:
    tree = parse_cuda("__global__ void k(float* y) { y[0] = 1.0f + 2.0f; y[1] = @@ 3.0f; }\n")
    assert tree.errors and 0 < tree.skipped_bytes < 10
    assert any(node.text == "1.0f + 2.0f" for node in tree.device("binary_expression"))
    assert not tree.may_edit(tree.errors[0].start, tree.errors[0].end)


def test_has_errors_sees_what_the_tree_sees() -> None:
    assert not has_errors(SOURCE)
    assert has_errors("__global__ void k( {")


@given(st.binary(max_size=200))
def test_masking_keeps_lengths_and_lines(data: bytes) -> None:
    text = b"__align__(16) x __launch_bounds__(3) ] __device__ (" + data + b"__cluster_dims__(2,\n(1), 1) y"
    blanked = masked(text)
    assert len(blanked) == len(text)
    assert [i for i, c in enumerate(blanked) if c == 10] == [i for i, c in enumerate(text) if c == 10]


@settings(max_examples=60)
@given(st.text(alphabet=st.sampled_from(list("kx(){}[];+-*/\"'#\n \\é<>,=&?:.0f")), max_size=60))
def test_any_text_gives_a_tree_or_a_refusal(text: str) -> None:
    source = f"__global__ void k(float* x) {{ x[0] = 1.0f; }}\n{text}"
    try:
        tree = parse_cuda(source)
    except SourceError:
        return
    assert all(node.text in source for node in tree.nodes)
    assert tree.skipped_bytes <= len(source.encode())
