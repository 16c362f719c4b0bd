"""The adapter of JAX, on a CPU: jax.numpy, jax.nn, jax.lax and jax.scipy.special.

XLA's threads do not survive a fork, so nothing is computed in the parent; it only looks at names and signatures.
"""

from __future__ import annotations

import inspect
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy
import jax.scipy.special

from truekernel.fuzz.guessing import guess, in_child
from truekernel.fuzz.library import Bound, Oracle, Ran
from truekernel.fuzz.oracles.arrays import ArrayOracle, Compiled, Determinism, Vectorised
from truekernel.fuzz.records import (
    ArgumentKind,
    Call,
    Named,
    Operator,
    ParameterSpec,
    Reference,
    Shared,
    TensorValue,
    TestCase,
    Value,
)
from truekernel.fuzz.sample_cache import Samples, cached, write

NAMESPACES = ("jax.numpy", "jax.numpy.linalg", "jax.numpy.fft", "jax.nn", "jax.scipy.special", "jax.lax")
EXCLUDED = re.compile(
    r"^(save.*|load.*|from.*|get_printoptions|set_printoptions|printoptions|isdtype|issubdtype|promote_types|result_type|can_cast|finfo|iinfo|dtype|ComplexWarning|ndim|shape|size|"
    r"array_repr|array_str|vectorize|apply_.*|frompyfunc|ufunc|einsum_path|iscomplexobj|isrealobj|isscalar|iterable|generic|piecewise|select_and_.*|while_loop|fori_loop|cond|switch|scan|"
    r"map|reduce|reduce_window|associative_scan|custom_.*|p(sum|max|min|mean|shuffle|permute|swapaxes|broadcast|cast|vary).*|all_gather.*|all_to_all|axis_.*|ragged_all.*|rng_.*|infeed|outfeed|"
    r"create_token|after_all|with_sharding.*|platform_dependent|.*_p|stop_gradient|optimization_barrier|composite|pvary|pcast|psend|precv|broadcast_shapes|initializers|log1mexp|tan_p|"
    r"dtypes|conv_dimension_numbers|conv_general_permutations|padtype_to_pads|xla_.*|standard_.*|get_.*|is_.*|empty.*|asarray|array|copy|astype|unstack|dce_sink|linear_.*|betainc_p|custom|mul_p)$"
)
FEATURE_NAMES = (*(f"namespace {name}" for name in NAMESPACES), "tensors", "integers", "parameters")
CHUNK = 12
GUESSES, KEPT = 20, 4
_TENSORS = frozenset(
    {
        "x",
        "y",
        "a",
        "b",
        "x1",
        "x2",
        "arr",
        "array",
        "operand",
        "lhs",
        "rhs",
        "m",
        "v",
        "q",
        "p",
        "ar",
        "condition",
        "weights",
        "indices",
        "logits",
        "inputs",
        "key",
        "value",
        "query",
    }
)


class Jax:
    """JAX on a CPU; see `library.Library`."""

    name = "jax"
    feature_names = FEATURE_NAMES

    @cached_property
    def _operators(self) -> list[Operator]:
        found = []
        for namespace in NAMESPACES:
            module = _resolve(namespace)
            for name in sorted(dir(module)):
                target = getattr(module, name)
                if (
                    name.startswith("_")
                    or EXCLUDED.match(name)
                    or inspect.isclass(target)
                    or inspect.ismodule(target)
                    or not callable(target)
                ):
                    continue
                parameters = _parameters(target)
                if any(one.kind in ("tensor", "tensors") for one in parameters):
                    found.append(_operator(f"{namespace}.{name}", namespace, parameters, bool(inspect.getdoc(target))))
        return found

    @cached_property
    def _by_name(self) -> dict[str, Operator]:
        return {operator.name: operator for operator in self._operators}

    def operators(self) -> Sequence[Operator]:
        """Functions that take an array, by namespace."""
        return self._operators

    def samples(self) -> Samples:
        """Calls that were accepted when guessed; XLA may refuse or crash, so children find them."""
        return cached(f"jax-{jax.__version__}-1", "truekernel.fuzz.libraries.jax")

    def versions(self) -> dict[str, str]:
        """Versions that a report states."""
        import jaxlib

        return {
            "jax": jax.__version__,
            "jaxlib": jaxlib.__version__,
            "python": platform.python_version(),
            "system": platform.platform(),
        }

    def start(self) -> None:
        """A CPU, float64 allowed."""
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_enable_x64", True)

    def make(self, value: TensorValue) -> Any:
        """An array from its description; layouts are torch's affair, arrays of JAX have none. Raises ValueError for dtypes that numpy lacks."""
        import torch

        from truekernel.fuzz.libraries.torch_values import make

        plain = replace(value, layout="contiguous", gradient=False)
        if value.dtype == "bfloat16":
            return jax.numpy.asarray(make(replace(plain, dtype="float32")).numpy()).astype("bfloat16")
        tensor = make(plain)
        if tensor.dtype in (torch.complex32, torch.float8_e4m3fn, torch.float8_e5m2):
            raise ValueError(f"numpy has no dtype {value.dtype}")
        return jax.numpy.asarray(tensor.numpy())

    def bind(self, call: Call, results: Sequence[Any], leaves: Sequence[Sequence[Any]]) -> Bound:
        """A call with arguments made. Raises ValueError for arguments that can't be made."""
        own: list[Any] = []
        every = [*leaves, own]

        def build(value: Value) -> Any:
            if isinstance(value, tuple):
                return tuple(build(part) for part in value)
            if isinstance(value, TensorValue):
                made = self.make(value)
            elif isinstance(value, Named):
                made = value.name if value.kind == "dtype" else None
            elif isinstance(value, Reference):
                arrays = _arrays(results[value.call]) if value.call < len(results) else []
                if value.output >= len(arrays):
                    raise ValueError(f"call {value.call} returned no array {value.output}")
                made = arrays[value.output]
            elif isinstance(value, Shared):
                made = every[value.call][value.leaf]
            else:
                made = value
            own.append(made)
            return made

        arguments = tuple(build(value) for value in call.arguments)
        keywords = {name: build(value) for name, value in call.keywords}
        return Bound(
            self._by_name[call.operator], call, partial(_ready, _resolve(call.operator)), arguments, keywords, own
        )

    def footprint(self, ran: Ran) -> int:
        """Bytes of the outputs of a case that ran, and a MiB for what compiling takes."""
        return (1 << 20) + sum(array.nbytes for result in ran.results for array in _arrays(result))

    def location(self, error: BaseException) -> str:
        """The innermost line of JAX."""
        place, trace = "", error.__traceback__
        while trace is not None:
            name = trace.tb_frame.f_code.co_filename
            if "/jax/" in name:
                place = f"jax/{name.rsplit('/jax/', 1)[1]}:{trace.tb_lineno}"
            trace = trace.tb_next
        return place

    @cached_property
    def _oracles(self) -> list[Oracle]:
        made: list[ArrayOracle] = [
            Determinism(_ready, _numpy),
            Compiled(jax.jit, _numpy),
            Vectorised(jax.vmap, jax.numpy.stack, _numpy),
        ]
        return list(made)

    def oracles(self) -> Sequence[Oracle]:
        """Determinism, jit, vmap."""
        return self._oracles

    def script(self, case: TestCase) -> list[str]:
        """Lines that make the calls, arrays written with numpy."""
        from truekernel.fuzz.libraries.torch_script import call_text, tensor_names

        lines = ["import jax.numpy, jax.scipy.special; jax.config.update('jax_enable_x64', True)", "import numpy"]
        for number, call in enumerate(case.calls):
            names = tensor_names(call, number)
            for slot, leaf in enumerate(call.leaves()):
                if isinstance(leaf, TensorValue):
                    lines.append(f"{names[slot]} = {_expression(leaf)}")
            lines.append(f"r{number} = {call_text(call, names)}")
        return lines

    def violation(self, case: TestCase) -> str:  # noqa: ARG002
        """None is known."""
        return ""

    def literal(self, value: TensorValue) -> TensorValue:
        """Values written out, as torch's adapter does it."""
        from truekernel.fuzz.libraries.torch import Torch

        return Torch().literal(replace(value, layout="contiguous"))


def _resolve(name: str) -> Any:
    found: Any = jax
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def _ready(function: Any, *arguments: Any, **keywords: Any) -> Any:
    """The result, computed: JAX returns before it has."""
    return jax.block_until_ready(function(*arguments, **keywords))


def _arrays(result: Any) -> list[Any]:
    return [leaf for leaf in jax.tree_util.tree_leaves(result) if hasattr(leaf, "nbytes")]


def _numpy(result: Any) -> list[Any]:
    import numpy as np

    return [np.asarray(leaf) for leaf in _arrays(result)]


def _parameters(target: Any) -> tuple[ParameterSpec, ...]:
    try:
        signature = inspect.signature(target)
    except (ValueError, TypeError):
        return ()
    found = []
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        found.append(
            ParameterSpec(
                parameter.name,
                _kind(parameter.name, str(parameter.annotation)),
                parameter.default is not parameter.empty,
                parameter.kind is parameter.KEYWORD_ONLY,
            )
        )
    return tuple(found)


def _kind(name: str, annotation: str) -> ArgumentKind:
    if "ArrayLike" in annotation or "Array" in annotation or name in _TENSORS:
        return "tensors" if "Sequence" in annotation or "Iterable" in annotation else "tensor"
    for word, kind in (
        ("DTypeLike", "dtype"),
        ("Sequence[int]", "integers"),
        ("int", "integer"),
        ("float", "real"),
        ("bool", "boolean"),
        ("str", "text"),
    ):
        if word in annotation:
            return kind  # type: ignore[return-value]
    return (
        "integer" if name in ("axis", "k", "n", "dimension") else "integers" if name in ("shape", "axes") else "other"
    )


def _operator(name: str, namespace: str, parameters: tuple[ParameterSpec, ...], documented: bool) -> Operator:
    kinds = [parameter.kind for parameter in parameters]
    features = (
        *(float(namespace == one) for one in NAMESPACES),
        min(kinds.count("tensor"), 8) / 8,
        min(kinds.count("integer"), 8) / 8,
        min(len(kinds), 16) / 16,
    )
    return Operator(name, namespace.removeprefix("jax."), parameters, documented=documented, features=features)


def _expression(value: TensorValue) -> str:
    shape = value.shape
    if value.data is None:
        return f"numpy.random.default_rng({value.seed}).normal(size={shape}).astype({value.dtype!r})"
    data = [value.data[place % len(value.data)] for place in range(_count(shape))] if value.data else []
    text = ", ".join(
        part
        if isinstance(part, str)
        else f"numpy.float64('{part!r}')"
        if isinstance(part, float) and not -1e308 < part < 1e308
        else repr(part)
        for part in data
    )
    return f"jax.numpy.asarray([{text}]).astype({value.dtype!r}).reshape({shape})"


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _guessed(library: Jax, names: Sequence[str]) -> Iterator[Call]:
    import random

    library.start()
    for name in names:
        operator, chance, kept = library._by_name[name], random.Random(name), 0
        for _ in range(GUESSES):
            call = guess(operator, chance)
            try:
                library.bind(call, (), ())()
            except Exception:
                continue
            yield call
            kept += 1
            if kept >= KEPT:
                break


def _main(path: Path) -> None:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    library = Jax()
    names = [operator.name for operator in library.operators()]
    table: Mapping[str, list[Call]] = {}
    found: dict[str, list[Call]] = dict(table)
    with tempfile.TemporaryDirectory(prefix="truekernel-samples-") as folder:
        for start in range(0, len(names), CHUNK):
            for call in in_child(partial(_guessed, library, names[start : start + CHUNK]), Path(folder), 120.0):
                found.setdefault(call.operator, []).append(call)
    write(path, found)


def library() -> Jax:
    """The adapter."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    return Jax()


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
