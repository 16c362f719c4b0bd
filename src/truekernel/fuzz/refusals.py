"""What an exception of a library means: does it tell the caller of a bad argument, or does it show a fault of the library?

Rules look at the class and the text of the exception, and at the name of the operator. They are tried in order; the first that fits decides.
They can't see the input: `std::bad_alloc` is a defect here, whatever was asked for, because a caller can't learn from it what to change.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

Category = Literal["refusal", "unimplemented", "resource", "defect", "unknown"]
"""`refusal`: an argument is refused, and the text says why. `unimplemented`: not there for this dtype, device or layout, or not for the compiler.
`resource`: more memory, or a larger size, than there can be. `defect`: the library's fault, be it only that the text misleads or comes from its inside.
`unknown`: can't be told from class and text."""

CATEGORIES: tuple[Category, ...] = get_args(Category)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an exception means. `why` is the rule that said so, in words."""

    category: Category
    why: str

    @property
    def kind(self) -> Literal["refusal", "defect"]:
        """The two-way answer: everything but a defect is the library's right."""
        return "defect" if self.category == "defect" else "refusal"


@dataclass(frozen=True, slots=True)
class Rule:
    """`errors`: a pattern for the whole name of the class; `message`: one that is searched for in the text; both must fit.
    `unless`: one that must not be found. `also`: a further condition on operator and text."""

    category: Category
    why: str
    message: str = ""
    errors: str = r".*"
    unless: str = ""
    also: Callable[[str, str], bool] | None = None

    def fits(self, error: str, message: str, operator: str) -> bool:
        """Whether the rule decides this exception."""
        if re.fullmatch(self.errors, error) is None or re.search(self.message, message, re.DOTALL) is None:
            return False
        if self.unless and re.search(self.unless, message, re.DOTALL):
            return False
        return self.also is None or self.also(operator, message)


_WITHOUT_DIMENSION = re.compile(
    r"pool|conv|pad|linear|(batch|group|instance|layer|response)_norm|embedding|upsample|interpolate|grid|rnn|lstm|gru|attention|_loss|functional\.(un)?fold|col2im|im2col|shuffle"
)
"""Operators whose callers name no dimension, so that a complaint about one comes from inside."""


def _names_no_dimension(operator: str, _message: str) -> bool:
    return _WITHOUT_DIMENSION.search(operator.lower()) is not None


def _speaks_of_another(operator: str, message: str) -> bool:
    named = re.match(r"(\w+)\(\): ", message)
    return named is not None and named.group(1).strip("_") not in operator


_KIND_OF_TENSOR = (
    r"dtype|complex|Complex|sparse|[Ss]trided|CUDA|cuda|\bmeta\b|Meta|[Hh]alf|BFloat|float|Float|double|Double|integer|[Bb]ool|scalar type|input type|layout|memory format|backend|"
    r"quanti[sz]ed|Quantized|mkldnn|Mkldnn|compile|Dynamo|batching|autograd|accelerator|Long|Short|Char|Int\b|nested|NestedTensor"
)

RULES: tuple[Rule, ...] = (
    Rule("defect", "an internal assertion failed, or the text asks for a bug report",
         r"INTERNAL ASSERT FAILED|report (a|this) (bug|error)|there is a bug in|likely to be a \w+ bug"),
    Rule("defect", "a fault on the device, not of an argument",
         r"illegal memory access|misaligned address|unspecified launch failure|illegal instruction|invalid configuration argument|_STATUS_(EXECUTION_FAILED|INTERNAL_ERROR|MAPPING_ERROR)"),
    Rule("unknown", "an assertion on the device; its text is elsewhere", r"device-side assert"),
    Rule("defect", "a negative stride is told as an overflow", r"Storage size calculation overflowed .*strides=\[[^\]]*-\d"),
    Rule("resource", "more memory, or a larger size, than there can be",
         r"can't allocate memory|out of memory|calculation overflowed|integer multiplication overflow|possible overflow|[Ii]nvalid buffer size"),
    Rule("resource", "the device has no memory left", errors=r"OutOfMemoryError|ResourceExhaustedError"),
    Rule("resource", "a status of the run-time library", r"^RESOURCE_EXHAUSTED"),
    Rule("unimplemented", "a status of the run-time library", r"^UNIMPLEMENTED"),
    Rule("unimplemented", "a status of the run-time library", errors=r"UnimplementedError"),
    Rule("defect", "a status of the run-time library", r"^(INTERNAL|DATA_LOSS|UNKNOWN): "),
    Rule("defect", "a status of the run-time library", errors=r"InternalError|DataLossError|UnknownError"),
    Rule("defect", "a text of the C++ library that nobody caught",
         r"\bstd::(bad_|length_error|out_of_range|vector|logic_error)|_M_\w+|basic_string::|\b(unordered_)?map::at|\bvector::|\bsto(i|l|ll|d|f)\b|__n \(which is|bad optional access"),
    Rule("defect", "an integer was taken for a symbolic one", r"expected to contain only concrete integers|cannot be represented as a SymInt"),
    Rule("defect", "a vendor's library failed and its text was passed on",
         r"could not create a primitive|MKL FFT error|DFTI ERROR|oneMKL ERROR|MKL ERROR|NNPACK \w+ failed|DNNL error|has illegal value"),
    Rule("defect", "the text of a C assertion", r"^Assertion `|^Assertion .* failed\.?\s+at "),
    Rule("unimplemented", "the compiler can't trace this",
         errors=r"Unsupported|UserError|GuardOnDataDependentSymNode|\w*(DataDependent|DynamicOutputShape|UnsupportedFakeTensor|UnsupportedOperator)\w*",
         unless=r"^Observed exception|^(Runtime|Type|Value|Index)Error when making fake tensor call"),
    Rule("defect", "the compiler's back end failed",
         r"CppCompileError|C\+\+ compile error|PassManager::run failed|was invalid, but is output|^unexpected type \w+\d$|no_dispatch"),
    Rule("unimplemented", "the compiler's back end lacks this", r"NotImplementedError|not yet (supported|implemented)", r"InductorError|LoweringException|BackendCompilerFailed"),
    Rule("defect", "the compiler's back end failed", errors=r"InductorError|LoweringException|BackendCompilerFailed|CppCompileError|CalledProcessError"),
    Rule("refusal", "a division by zero", r"^ZeroDivisionError$|^division by (0|zero)$", r"RuntimeError"),
    Rule("defect", "an exception without words", r"^\s*$", r"RuntimeError|AssertionError|ValueError|TypeError|IndexError"),
    Rule("defect", "an assertion without words", r"^\(.*\)$|^[\w.()\[\] ]+ (==|!=|<=|>=|<|>) [\w.()\[\] ]+$", r"AssertionError",
         unless=r"\b(must|should|expected|got|be|the|only)\b"),
    Rule("refusal", "an argument is refused, and the text says why", r"too large to convert to u?int\d+|while parsing an argument|unbound axis name", r"OverflowError|NameError"),
    Rule("defect", "an exception that Python itself raised inside",
         errors=r"SystemError|UnboundLocalError|NameError|RecursionError|ZeroDivisionError|OverflowError|StopIteration|KeyError|BufferError"),
    Rule("refusal", "there is no such operator", r"_OpNamespace", r"AttributeError"),
    Rule("unknown", "Python complains of a type that the caller may have passed, or not",
         r"^'\w+' object (has no attribute|is not \w+)|unsupported operand type|bad operand type|not supported between instances|cannot unpack non-iterable|cannot be interpreted", r"AttributeError|TypeError"),
    Rule("defect", "a list of the library's own was too short", r"^(list|tuple|string|list assignment|pop) (index )?(out of range|from empty)|^(list|tuple) index|^list assignment index", r"IndexError"),
    Rule("defect", "a shape was unpacked without looking", r"(not enough|too many) values to unpack", r"ValueError"),
    Rule("defect", "a dimension is refused that no caller named", r"Dimension out of range|out of range for tensor of size|Dimension specified as 0", r"IndexError", also=_names_no_dimension),
    Rule("defect", "an index is refused by an operator that nobody called", r"out of range for tensor of size|index \S+ out of range", r"IndexError", also=_speaks_of_another),
    Rule("defect", "a text that misleads", r"Unknown Complex ScalarType|Could not allocate memory to change Tensor SizesAndStrides|unknown ivalue|Unsupported TypeMeta"),
    Rule("unimplemented", "the library says that it is not implemented", errors=r"NotImplementedError"),
    Rule("unimplemented", "not there for this kind of tensor",
         r"not (yet )?(implemented|supported|available)|[Uu]nsupported|\w+not supported|does(n't| not) (yet )?(support|implement)|(is|are|be) implemented for|\bonly (be )?(support|implement|available)\w*|"
         r"only \S+ (is|are) supported|not compiled with|cannot be called on meta|requires (a )?(CUDA|cuda)|without \w+ library|dummy base class|do not support",
         unless=r"single memory location|boolean masks|at least \dD|\d-dimensional|[Oo]rder \S+ not|negative|non-positive|\bp ==",
         also=lambda _operator, message: re.search(_KIND_OF_TENSOR + r"|dummy base class", message) is not None),
    Rule("refusal", "an argument is refused, and the text says why", r"\w+\W+\w+",
         r"RuntimeError|ValueError|TypeError|IndexError|AssertionError|LinAlgError|_LinAlgError|FileNotFoundError|AcceleratorError|TorchRuntimeError|Unsupported|UserError|InvalidArgumentError|\w*Error"),
)  # fmt: skip

_INNER = re.compile(r"got (\w+)\(([\"'])(.*?)\2\)|LoweringException: (\w+): ?(.*)", re.DOTALL)


def classify(error: str, message: str, operator: str = "") -> Judgement:
    """What an exception means. `error`: name of its class, without the module; `operator`: dotted name of what was called.

    The compiler wraps exceptions of its tracing in one of its own; then the inner one is judged.
    """
    for rule in RULES:
        if rule.fits(error, message, operator):
            if rule.category == "refusal" and error == "TorchRuntimeError":
                return _inner(message, operator) or Judgement(rule.category, rule.why)
            return Judgement(rule.category, rule.why)
    return Judgement("unknown", "no rule fits")


def _inner(message: str, operator: str) -> Judgement | None:
    found = _INNER.search(message)
    if found is None:
        return None
    error, text = (found.group(1), found.group(3)) if found.group(1) else (found.group(4), found.group(5))
    return classify(error, text.replace("\\n", "\n"), operator)
