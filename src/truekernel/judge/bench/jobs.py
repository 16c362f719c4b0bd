"""What a timing process is told, as files in a folder of its own: both sides are trusted, the device code alone is not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from truekernel.execution.cuda.library import Library
from truekernel.execution.cuda.wire_cases import case_message, tensor_bytes
from truekernel.model import ITEM_BYTES, LaunchPlan, Problem
from truekernel.model.lengths import lengths
from truekernel.numerics.formats import DTYPE_NAMES

Inputs = Mapping[str, torch.Tensor]


def device_job(folder: Path, library: Library, plan: LaunchPlan, sets: Sequence[Inputs]) -> None:
    """For `device_timer`: {cubin, symbols, buffers, launches, outputs, sets: [{buffer number: file}]}."""
    (folder / "code.cubin").write_bytes(library.cubin)
    files: list[dict[str, str]] = []
    message: dict[str, Any] = {}
    for number, inputs in enumerate(sets):
        case = case_message("timed", plan, inputs, None, ())
        message = case.message
        files.append({})
        for at, buffer in enumerate(message["buffers"]):
            if "content" in buffer:
                name = f"set-{number}-{at}.bin"
                (folder / name).write_bytes(case.contents[buffer["content"]])
                files[-1][str(at)] = name
    _write(
        folder,
        {
            "cubin": "code.cubin",
            "symbols": dict(library.symbols),
            "buffers": [{"nbytes": b["nbytes"], "role": b["role"]} for b in message["buffers"]],
            "launches": message["launches"],
            "outputs": message["outputs"],
            "sets": files,
        },
    )


def torch_job(
    folder: Path,
    problem: str,
    axes: Mapping[str, int],
    stated: Problem,
    sets: Sequence[Inputs],
    *,
    how: str,
    precision: str,
    graphed: bool,
) -> None:
    """For `torch_timer`: {problem, axes, how, precision, graphed, output_dtypes, output_bytes, sets: [{tensor: [file, dtype, shape]}]}."""
    files: list[dict[str, list[Any]]] = []
    for number, inputs in enumerate(sets):
        files.append({})
        for at, (name, tensor) in enumerate(inputs.items()):
            file = f"set-{number}-{at}.bin"
            (folder / file).write_bytes(tensor_bytes(tensor))
            files[-1][name] = [file, DTYPE_NAMES[tensor.dtype], list(tensor.shape)]
    _write(
        folder,
        {
            "problem": problem,
            "axes": dict(axes),
            "how": how,
            "precision": precision,
            "graphed": graphed,
            "output_dtypes": [spec.dtype for spec in stated.outputs],
            "output_bytes": sum(output_bytes(stated, axes)),
            "sets": files,
        },
    )


def output_bytes(problem: Problem, axes: Mapping[str, int]) -> list[int]:
    """Bytes of each output."""
    return [_elements(spec.shape, axes) * ITEM_BYTES[spec.dtype] for spec in problem.outputs]


def total_bytes(problem: Problem, axes: Mapping[str, int]) -> int:
    """Bytes of all inputs and outputs together."""
    inputs = sum(_elements(spec.shape, axes) * ITEM_BYTES[spec.dtype] for spec in problem.tensors)
    return inputs + sum(output_bytes(problem, axes))


def _elements(shape: Sequence[str | int], axes: Mapping[str, int]) -> int:
    count = 1
    for length in lengths(shape, axes):
        count *= length
    return count


def _write(folder: Path, job: Mapping[str, Any]) -> None:
    (folder / "job.json").write_text(json.dumps(job))
