"""The layout of requests to the native server and of its answers (`native/server.cpp`). Little-endian, no padding."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from truekernel.execution.backend import Ceiling
from truekernel.execution.scalars import pack
from truekernel.model import FILLS, BufferArg, Configuration, Launch, LaunchPlan, Status
from truekernel.numerics.expected import Expected

DTYPE_CODES = {"float32": 0, "float16": 1, "bfloat16": 2, "float64": 3, "int32": 4, "int64": 5, "uint8": 6}
SCHEDULE_CODES = {"gpu": 0, "forward": 1, "reverse": 2, "random": 3, "warp_greedy": 4}
STATUSES: tuple[Status, ...] = (
    "ok",
    "out_of_bounds",
    "race",
    "uninitialised_read",
    "barrier_divergence",
    "deadlock",
    "misaligned",
    "trap",
    "timeout",
    "crash",
    "host_differs",
    "infrastructure",
)
ROLE_INPUT, ROLE_SCRATCH, ROLE_ZEROED, ROLE_MUTABLE = 1, 2, 3, 16
KEEP_OUTPUTS, ALLOW_SYSTEM_CALLS = 1, 2
RECORD, REPORT, DEATH, SKIPPED, DONE, ERROR = 1, 2, 3, 4, 5, 6
HAZARDS = {
    1: "out_of_bounds: wrote before buffer '{buffer}' at byte {offset}",
    2: "out_of_bounds: wrote behind buffer '{buffer}' at byte {offset}",
    3: "out_of_bounds: wrote to input buffer '{buffer}' at byte {offset}",
    4: "barrier_divergence: threads of one block meet at different barriers, line {offset}",
    5: "race: a shuffle reads a lane that does not take part, line {offset}",
}
"""Hazards of a plain execution that ended well, by kind: the outcome that a sanitiser would name, and what happened."""

FRAME = struct.Struct("<IIIIQ")
FRAME_MAGIC = 0x31464B54
RECORD_HEAD = struct.Struct("<IIIIQQd")
HAZARD = struct.Struct("<IIq")
REPORT_BODY = struct.Struct("<IIIIII3I3IIiqQQQ3I3IIId64s192s")


Wanted = tuple[int, Configuration, float, int, Ceiling]
"""An execution: case key, configuration, CPU seconds, bits of its series, and what ends them."""


@dataclass(frozen=True, slots=True)
class Record:
    """What a finished execution delivered. `hazards`: (kind, buffer, byte offset)."""

    seconds: float
    output_hash: str
    statistics: tuple[float, ...]
    hazards: tuple[tuple[int, int, int], ...]
    outputs: bytes


@dataclass(frozen=True, slots=True)
class Report:
    """A fault, as the runtime saw it. `pc`: offset into the library's file, 0 = unknown; `buffer`: -1 none, -2 shared memory."""

    status: Status
    launch: int
    line: int
    thread: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    buffer: int
    offset: int
    address: int
    pc: int
    other_pc: int
    other_thread: tuple[int, int, int]
    other_block: tuple[int, int, int]
    seconds: float
    name: str
    message: str


def definition(
    key: int,
    plan: LaunchPlan,
    inputs: Sequence[memoryview | bytes],
    roles: Sequence[int],
    expected: Sequence[Expected] | None,
    stale: Sequence[tuple[int, memoryview | bytes]],
) -> list[bytes | memoryview]:
    """Request that defines a case; `inputs`: bytes of the input buffers in the plan's order; `stale`: (buffer, bytes)."""
    parts: list[bytes | memoryview] = [struct.pack("<III", ord("D"), key, len(plan.buffers))]
    parts += [struct.pack("<QI", spec.nbytes, role) for spec, role in zip(plan.buffers, roles, strict=True)]
    parts += inputs
    parts.append(struct.pack("<I", len(plan.launches)))
    parts += [_launch(launch) for launch in plan.launches]
    parts += _outputs(plan, expected)
    parts.append(struct.pack("<I", len(stale)))
    parts += [struct.pack("<IQ", buffer, len(data)) for buffer, data in stale]
    parts += [data for _, data in stale]
    return parts


def run_request(
    library: int,
    flags: int,
    executions: Sequence[Wanted],
    tolerances: Sequence[tuple[float, float]],
    rhos: Sequence[float],
    variants: Sequence[tuple[int, int]],
) -> bytes:
    """Request that runs variants (switch value, member) on executions."""
    parts = [struct.pack("<IIII", ord("R"), library, flags, len(executions))]
    for key, configuration, seconds, series, ceiling in executions:
        schedule = SCHEDULE_CODES[configuration.schedule]
        fill = FILLS.index(configuration.fill)
        seed, (worst, nonfinite) = configuration.schedule_seed, ceiling
        parts.append(struct.pack("<IIIQdQdI", key, schedule, fill, seed, seconds, series, worst, nonfinite))
    parts.append(struct.pack(f"<I{2 * len(tolerances)}d", len(tolerances), *(v for pair in tolerances for v in pair)))
    parts.append(struct.pack(f"<I{len(rhos)}d", len(rhos), *rhos))
    parts.append(struct.pack("<I", len(variants)))
    parts += [struct.pack("<iI", *chosen) for chosen in variants]
    return b"".join(parts)


def open_request(library: int, path: str, kernels: Sequence[str]) -> bytes:
    """Request that opens a library."""
    head = struct.pack("<II", ord("L"), library) + _text(path) + struct.pack("<I", len(kernels))
    return head + b"".join(_text(kernel) for kernel in kernels)


def simple_request(letter: str, number: int) -> bytes:
    """Request "F" (forget a case) or "C" (close a library)."""
    return struct.pack("<II", ord(letter), number)


def read_record(payload: bytes) -> Record:
    """A record from its bytes."""
    _, _, statistics, hazards, _, digest, seconds = RECORD_HEAD.unpack_from(payload)
    at = RECORD_HEAD.size
    values = struct.unpack_from(f"<{statistics}d", payload, at)
    at += 8 * statistics
    found = tuple(HAZARD.unpack_from(payload, at + HAZARD.size * k) for k in range(hazards))
    at += HAZARD.size * hazards
    return Record(seconds, f"{digest:016x}", values, found, payload[at:])


def read_report(payload: bytes) -> Report:
    """A report from its bytes."""
    v = REPORT_BODY.unpack(payload)
    known = bool(v[12])
    return Report(
        status=STATUSES[v[2]] if v[2] < len(STATUSES) else "crash",
        launch=v[4],
        line=v[5],
        thread=v[6:9] if known else None,
        block=v[9:12] if known else None,
        buffer=v[13],
        offset=v[14],
        address=v[15],
        pc=v[16],
        other_pc=v[17],
        other_thread=v[18:21],
        other_block=v[21:24],
        seconds=v[26],
        name=_c_text(v[27]),
        message=_c_text(v[28]),
    )


def tensor_bytes(tensor: torch.Tensor) -> memoryview | bytes:
    """Bytes of a CPU tensor in row-major order, without a copy where it is contiguous."""
    flat = tensor.detach().contiguous().view(-1)
    return flat.view(torch.uint8).numpy().data if flat.numel() else b""


def _launch(launch: Launch) -> bytes:
    name = _text(launch.kernel)
    numbers = struct.pack("<6IQII", *launch.grid, *launch.block, launch.shared, launch.cooperative, len(launch.args))
    args = []
    for arg in launch.args:
        if isinstance(arg, BufferArg):
            args.append(struct.pack("<IIqQI", 0, arg.buffer, arg.offset, 0, 8))
        else:
            bits = pack(arg.value, arg.ctype)
            args.append(struct.pack("<IIq8sI", 1, 0, 0, bits, len(bits)))
    return name + numbers + b"".join(args)


def _outputs(plan: LaunchPlan, expected: Sequence[Expected] | None) -> list[bytes | memoryview]:
    parts: list[bytes | memoryview] = [struct.pack("<II", len(plan.outputs), expected is not None)]
    data: list[bytes | memoryview] = []
    for k, buffer in enumerate(plan.outputs):
        spec = plan.buffers[buffer]
        want = expected[k] if expected is not None else None
        ties = want.ties if want is not None and want.kind == "index" else None
        spread = want.spread if want is not None else None
        length = int(ties.shape[-1]) if ties is not None else 0
        kind = 1 if ties is not None else 0
        elements = spec.elements
        head = struct.pack(
            "<IQiiqqI", buffer, spec.nbytes, DTYPE_CODES[spec.dtype], kind, elements, length, spread is not None
        )
        parts.append(head)
        if want is not None:
            doubles = [
                want.truth,
                want.scale,
                *([spread] if spread is not None else []),
                *([ties] if ties is not None else []),
            ]
            data.append(tensor_bytes(want.published))
            data += [tensor_bytes(t.to(torch.float64)) for t in doubles]
    return parts + data


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data


def _c_text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode(errors="replace")


def output_tensors(data: bytes, plan: LaunchPlan) -> list[torch.Tensor]:
    """Kept outputs as tensors, one for each output of the plan."""
    from truekernel.numerics.formats import TORCH_DTYPES

    tensors, at = [], 0
    for buffer in plan.outputs:
        spec = plan.buffers[buffer]
        raw = np.frombuffer(data, dtype=np.uint8, count=spec.nbytes, offset=at).copy()
        at += spec.nbytes
        dtype = TORCH_DTYPES[spec.dtype]
        flat = torch.from_numpy(raw).view(dtype) if spec.nbytes else torch.empty(0, dtype=dtype)
        tensors.append(flat.view(spec.shape))
    return tensors
