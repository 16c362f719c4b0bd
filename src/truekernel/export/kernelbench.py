"""A KernelBench candidate: a file with `class ModelNew`, whose forward launches our kernels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from truekernel.errors import BadInputError
from truekernel.export.cpu_host import cpu_run
from truekernel.export.inline_host import DECLARATION, cuda_source
from truekernel.export.plan_data import literal, plan_data, traced
from truekernel.export.subject import Subject
from truekernel.export.weights import Weight, weights_of
from truekernel.model import Axes, Problem

HOSTS = ("nvrtc", "load_inline", "cpu")
_HEADERS = Path(__file__).parents[1] / "execution" / "cuda" / "native" / "include"


def model_new(
    subject: Subject,
    problem: Problem,
    axes: Axes,
    *,
    host: str = "nvrtc",
    weights: Sequence[Weight] | None = None,
    output_shapes: Sequence[tuple[int, ...]] | None = None,
) -> str:
    """Text of a candidate for sizes `axes`.

    Its forward takes the problem's inputs in order and returns its output (a tuple of several). `host`: "nvrtc" compiles in milliseconds when the file is
    imported; "load_inline" is what candidates usually are; "cpu" runs on the CPU and needs this package. `weights`: the parameters in the order in which the reference draws them, so that the same seed gives the same values;
    None: as our own problem states them. `output_shapes`: where the reference's differ from ours in their grouping. Raises PlanError, BadInputError.
    """
    if host not in HOSTS:
        raise BadInputError(f"--host {host}: known are {', '.join(HOSTS)}")
    data = plan_data(traced(subject, problem, axes))
    sizes = ", ".join(f"{name}={length}" for name, length in axes.items())
    drawn = weights_of(problem, axes) if weights is None else list(weights)
    shapes = list(output_shapes) if output_shapes is not None else [data["buffers"][k][1] for k in data["outputs"]]
    if host == "cpu":
        make = cpu_run(subject, problem, axes, _text(subject.source))
    else:
        make = _nvrtc(subject, data) if host == "nvrtc" else _inline(subject, data)
    title = " ".join(f"{subject.title}, exported for {sizes}".split()).replace('"', "'")
    body = [
        "outputs = _tk_run(given)",
        f"outputs = [o.view(shape) for o, shape in zip(outputs, {literal([tuple(s) for s in shapes])})]",
        "return outputs[0] if len(outputs) == 1 else tuple(outputs)",
    ]
    return f'"""{title}."""\n\n{make}\n\n{_module(problem, drawn, body)}'


def model_new_of(text: str, function: str, problem: Problem, axes: Axes) -> str:
    """Text of a candidate whose forward calls a function of a Python file with the problem's tensors, inputs before weights; the file's own text stands above it."""
    module = _module(problem, weights_of(problem, axes), [f"return {function}(*given)"])
    return f"{text.rstrip()}\n\n\nimport torch\n\n\n{module}"


def _nvrtc(subject: Subject, data: dict[str, Any]) -> str:
    _, _, runtime = Path(__file__).with_name("nvrtc_host.py").read_text(encoding="utf-8").partition("\n\nimport ")
    headers = {path.name: path.read_text(encoding="utf-8") for path in sorted(_HEADERS.iterdir())}
    return "\n".join(
        (
            f"import {runtime}",
            f"_tk_source = {_text(subject.source)}",
            f"_tk_headers = {literal(headers)}",
            f"_tk_plan = {literal(data)}",
            f"_tk_run = _TkKernels(_tk_source, _tk_plan, _tk_headers, {subject.fma}).run",
        )
    )


def _inline(subject: Subject, data: dict[str, Any]) -> str:
    flags = ["-O3", *(f"-U__CUDA_NO_{name}__" for name in ("HALF_OPERATORS", "HALF_CONVERSIONS", "HALF2_OPERATORS"))]
    flags.append("-U__CUDA_NO_BFLOAT16_CONVERSIONS__")
    if not subject.fma:
        flags.append("-fmad=false")
    text = cuda_source(subject.source, data)
    return "\n".join(
        (
            "import hashlib as _tk_hashlib",
            "",
            "import torch",
            "from torch.utils.cpp_extension import load_inline as _tk_load_inline",
            "",
            f"_tk_source = {_text(text)}",
            '_tk_name = "tk_" + _tk_hashlib.sha256(_tk_source.encode()).hexdigest()[:16]',
            "_tk_module = _tk_load_inline(",
            f"    name=_tk_name, cpp_sources={DECLARATION!r}, cuda_sources=_tk_source,",
            f'    functions=["tk_forward"], extra_cuda_cflags={flags!r},',
            ")",
            "_tk_run = _tk_module.tk_forward",
        )
    )


def _text(source: str) -> str:
    """A Python literal that keeps the lines of a source readable."""
    if "'''" in source or "\\" in source or source.endswith("'"):
        return "(\n" + "\n".join(f"    {json.dumps(line)}" for line in source.splitlines(keepends=True)) + "\n)"
    return f"'''{source}'''"


def _module(problem: Problem, weights: Sequence[Weight], body: Sequence[str]) -> str:
    """The class; `body`: what its forward does with `given`, the tensors in the problem's order."""
    lines = [
        "class ModelNew(torch.nn.Module):",
        "    def __init__(self, *args, **kwargs):",
        "        super().__init__()",
    ]
    names = [weight.name for weight in weights if weight.name]
    if len(names) != len(problem.parameters):
        raise BadInputError(
            f"'{problem.name}' has {len(problem.parameters)} weights, {len(names)} are given: export it without --kernelbench"
        )
    for weight in weights:
        lines.append(f"        {weight.statement()}")
    order = _order(problem, weights)
    lines += [
        "",
        "    def forward(self, *args):",
        "        given = [value for value in args if isinstance(value, torch.Tensor)]",
        *(f"        given.append(self.{name}.detach())" for name in order),
        *(f"        {line}" for line in body),
    ]
    return "\n".join(lines) + "\n"


def _order(problem: Problem, weights: Sequence[Weight]) -> list[str]:
    """Attribute names of the weights in the order of the problem's parameters."""
    placed = sorted((weight for weight in weights if weight.name), key=lambda weight: weight.place)
    if [weight.place for weight in placed] != list(range(len(problem.parameters))):
        raise BadInputError(f"weights of '{problem.name}' are not all given")
    return [weight.name for weight in placed]
