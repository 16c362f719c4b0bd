"""What a timing process is told: a job in a folder of its own, and inputs in files that all share. Both sides are trusted, the device code alone is not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from truekernel.execution.cuda.library import Library
from truekernel.execution.cuda.wire_cases import plan_message, tensor_bytes
from truekernel.model import ITEM_BYTES, LaunchPlan, Problem
from truekernel.model.lengths import lengths
from truekernel.numerics.formats import DTYPE_NAMES


@dataclass(frozen=True, slots=True)
class Contents:
    """A tensor in a file."""

    file: str
    dtype: str
    shape: tuple[int, ...]


Sets = Sequence[Mapping[str, Contents]]
"""Of each set of inputs, its tensors by name."""


def written(folder: Path, number: int, inputs: Mapping[str, torch.Tensor]) -> dict[str, Contents]:
    """A set of inputs in files of `folder`."""
    found = {}
    for at, (name, tensor) in enumerate(inputs.items()):
        file = folder / f"set-{number}-{at}.bin"
        file.write_bytes(tensor_bytes(tensor))
        found[name] = Contents(str(file), DTYPE_NAMES[tensor.dtype], tuple(tensor.shape))
    return found


def device_job(folder: Path, library: Library, plan: LaunchPlan, sets: Sets) -> None:
    """For `device_timer`: {cubin, symbols, buffers, launches, outputs, sets: [{buffer number: file}]}."""
    (folder / "code.cubin").write_bytes(library.cubin)
    message = plan_message("timed", plan)
    files = [
        {
            str(at): contents[b["name"]].file
            for at, b in enumerate(message["buffers"])
            if b["role"] in ("input", "mutable")
        }
        for contents in sets
    ]
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
    sets: Sets,
    *,
    how: str,
    precision: str,
    graphed: bool,
) -> None:
    """For `torch_timer`: {problem, axes, how, precision, graphed, output_dtypes, output_bytes, sets: [{tensor: [file, dtype, shape]}]}."""
    files = [{name: [c.file, c.dtype, list(c.shape)] for name, c in contents.items()} for contents in sets]
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
