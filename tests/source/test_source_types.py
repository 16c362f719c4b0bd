"""Types of names and expressions, and kernel signatures."""

import pytest

from truekernel.errors import BadInputError
from truekernel.source import CType, canonical, declared_type, expression_type, kernel_signatures, parse_cuda
from truekernel.source.query import arguments, callee

HEAD = """
#define EPS 1e-5f
#define TILE 16
using real = float;
typedef unsigned count_t;
struct Pair { float value; int index; const float* from; };
__device__ float sum(float v) { return v; }
template <typename T> __global__ void k(const T* a, real* b, int n, size_t stride, T scale, const float4* q, __half h, count_t c) {
    __shared__ float tile[32][33];
    extern __shared__ float dynamic[];
    Pair p; Pair* pp = &p;
    const int i = threadIdx.x;
    auto v = q[i];
    const auto f = tile[i][0] * 2;
    probe(EXPRESSION);
    for (int j = 0; j < n; ++j) { float i = 0; inner(i); }
}
"""
CASES = {
    "i": "int",
    "v": "float4",
    "v.x": "float",
    "tile[i][3]": "float",
    "dynamic[0]": "float",
    "p.value": "float",
    "pp->index": "int",
    "pp->from[2]": "float",
    "f": "float",
    "h": "__half",
    "c": "unsigned int",
    "n / 2": "int",
    "i < n": "bool",
    "i + stride": "unsigned long long",
    "n + c": "unsigned int",
    "(float)i": "float",
    "static_cast<float>(n)": "float",
    "float(n)": "float",
    "fmaxf(f, 0.f)": "float",
    "__shfl_xor_sync(0xffffffffu, f, 1)": "float",
    "__ldg(b)": "float",
    "sum(1)": "float",
    "EPS": "float",
    "TILE": "int",
    "scale": "T",
    "a[i]": "T",
    "*b": "float",
    "-f": "float",
    "1.0f / n": "float",
    "1.0 / n": "double",
    "i ? 1.f : 0": "float",
    "min(n, 3)": "int",
    "reinterpret_cast<const float4*>(b)[i]": "float4",
    "blockIdx.y": "unsigned int",
    "-INFINITY": "float",
    "0xff": "int",
    "3ull": "unsigned long long",
    "h + h": "__half",
    "b[i] + h": "float",
    "unknown": None,
    "unknown + 1": None,
}


def _probe(text: str, name: str = "probe"):
    tree = parse_cuda(HEAD.replace("EXPRESSION", text))
    call = next(node for node in tree.find("call_expression") if callee(node) == name)
    return arguments(call)[0]


@pytest.mark.parametrize(("text", "base"), CASES.items())
def test_expression(text: str, base: str | None) -> None:
    found = expression_type(_probe(text))
    assert (found.base if found is not None and found.scalar else found) == base


def test_arrays_and_pointers() -> None:
    tile = declared_type(_probe("tile"))
    assert tile == CType("float", 0, ("32", "33"), shared=True)
    assert tile.element is not None and tile.element.extents == ("33",)
    pointer = expression_type(_probe("b + i"))
    assert pointer is not None and (pointer.base, pointer.pointer) == ("float", 1)
    assert expression_type(_probe("&b[i]")) == CType("float", 1)


def test_the_innermost_declaration_wins() -> None:
    inner = _probe("n", "inner")
    found = declared_type(inner)
    assert found is not None and found.base == "float"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("unsigned", "unsigned int"),
        ("long", "long long"),
        ("unsigned long int", "unsigned long long"),
        ("size_t", "unsigned long long"),
        ("std::size_t", "unsigned long long"),
        ("int64_t", "long long"),
        ("uint32_t", "unsigned int"),
        ("const int", "int"),
        ("half", "__half"),
        ("uint8_t", "unsigned char"),
        ("signed char", "signed char"),
        ("float4", "float4"),
        ("MyType", "MyType"),
    ],
)
def test_canonical(written: str, name: str) -> None:
    assert canonical(written) == name


def test_signatures() -> None:
    source = """
    template <int BLOCK, typename T = float, bool ADD = true>
    __global__ void __launch_bounds__(BLOCK) reduce(const T* __restrict__ x, T* __restrict__ y, const unsigned n, T scale, float const* w,
                                                    std::int64_t stride, int (*table)[4], __nv_bfloat16 b) {}
    extern "C" __global__ void plain(void) {}
    __device__ float helper(float v) { return v; }
    __global__ void declared(int n);
    """
    found = kernel_signatures(source)
    assert list(found) == ["reduce", "plain"]
    kernel = found["reduce"]
    assert [(p.name, p.ctype, p.default) for p in kernel.template] == [
        ("BLOCK", "int", None),
        ("T", None, "float"),
        ("ADD", "bool", "true"),
    ]
    assert [(p.name, p.ctype, p.pointer, p.const) for p in kernel.params] == [
        ("x", "T", True, True),
        ("y", "T", True, False),
        ("n", "unsigned int", False, True),
        ("scale", "T", False, False),
        ("w", "float", True, True),
        ("stride", "long long", False, False),
        ("table", "int", True, False),
        ("b", "__nv_bfloat16", False, False),
    ]
    assert found["plain"].params == ()
    assert kernel.bind("reduce<256, half>").params[3].ctype == "__half"
    assert kernel.bind("reduce<256>").params[3].ctype == "float"
    with pytest.raises(BadInputError, match="3 template arguments"):
        kernel.bind("reduce<1, float, true, 4>")
