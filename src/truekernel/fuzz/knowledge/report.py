"""One public bug report, as data. `schema.json` is the same as JSON Schema; a test compares them."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

ReportKind = Literal[
    "crash",
    "internal_assert",
    "out_of_bounds",
    "silent_wrong",
    "compile_mismatch",
    "device_mismatch",
    "hang",
    "memory",
    "refusal",
]
"""What was reported. `crash`: a signal ended the process. `out_of_bounds`: memory outside a tensor was read or written. `silent_wrong`: a wrong result or
gradient. `compile_mismatch`: compiled code gives another result than eager code, or fails where that succeeds. `device_mismatch`: CPU and GPU disagree.
`memory`: a small input asks for a huge allocation. `refusal`: a message that misleads, or a valid input refused."""

REPORT_KINDS: tuple[ReportKind, ...] = get_args(ReportKind)


class Report(BaseModel):
    """A bug report that is public under `url`. Texts are our own words; nothing is quoted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = Field(pattern=r"^https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+$")
    library: Literal["torch", "jax", "tensorflow"]
    apis: tuple[str, ...] = Field(min_length=1)
    """Dotted paths, as users write them."""
    kind: ReportKind
    version: str | None
    """Of the library, as the thread states it; None where what was read of it names none."""
    device: Literal["cpu", "cuda", "mps", "any"]
    """Where it was seen."""
    year: int = Field(ge=2015, le=2030)
    """In which it was reported."""
    tags: tuple[str, ...]
    """What triggers it, in the words of `patterns.json`; empty where the thread's title tells no trigger."""
    trigger: str = Field(min_length=10, max_length=200)
    basis: Literal["text", "title"]
    """Whether the trigger was read in the thread's text, or in its title alone."""
    disputed: bool
    """Maintainers hold it to be expected, or the input to be at fault. Counts half."""
