"""What compute-sanitizer writes, as findings: which job, which kernel, which line, which address.

Format: "Compute Sanitizer" manual, chapters Memcheck, Racecheck, Initcheck and Synccheck; lines between our runner's marks belong to that job.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from truekernel.model import Status

Tool = Literal["memcheck", "racecheck", "initcheck", "synccheck"]
TOOLS: tuple[Tool, ...] = ("memcheck", "racecheck", "initcheck", "synccheck")

_PREFIX = "========="
_MARK = re.compile(r"@@ (job|buffer|end|broken) (\d+)(.*)")
_AT = re.compile(r"^at (?P<kernel>.+?)\+0x(?P<offset>[0-9a-f]+)(?: in (?P<file>.+):(?P<line>\d+))?$")
_AT_OLD = re.compile(r"^at 0x(?P<offset>[0-9a-f]+) in (?:(?P<file>[^:]+):(?P<line>\d+):)?(?P<kernel>.+)$")
_THREAD = re.compile(r"by thread \((\d+),(\d+),(\d+)\) in block \((\d+),(\d+),(\d+)\)")
_ADDRESS = re.compile(r"Access (?:to|at) (?:the )?(?:\w+ )?(?:address )?0x([0-9a-f]+)|Address 0x([0-9a-f]+)")
_SIZE = re.compile(r"of size (\d+)")
_RACE = re.compile(
    r"(?:Error|Warning|ERROR|WARNING): (?:Race reported|Potential (?P<hazard>\w+) hazard detected)"
    r"(?:.*? between (?P<first>\w+) access)?(?: at (?P<place>.*))?"
)
_RACE_AND = re.compile(r"and (?P<kind>\w+) access at (?P<place>.*?)(?: \[(?P<count>\d+) hazards?\])?$")
_SUMMARY = re.compile(
    r"^(ERROR SUMMARY|RACECHECK SUMMARY|COMPUTE-SANITIZER|LEAK SUMMARY|Program hit|Target application|Error: process)"
)


@dataclass(slots=True)
class Finding:
    """One finding. `job`: number of the job; `status`: the outcome it amounts to; `title`: the tool's first line. `line`: 1-based line of the kernel
    file, 0 = unknown; `other_line`: of the other access of a race. `address`: 0 = unknown; `buffer`, `offset`: the plan's buffer (-1 = none) nearest
    to it, and the byte offset from its start."""

    job: int
    tool: Tool
    status: Status
    title: str
    kernel: str = ""
    line: int = 0
    other_line: int = 0
    address: int = 0
    buffer: int = -1
    offset: int = 0
    thread: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    details: list[str] = field(default_factory=list)
    count: int = 1
    """Findings of the same kind at the same place, this one included."""


@dataclass(slots=True)
class Log:
    """A parsed log. `ended`: status of each job that ended; `started`: the last job that began, -1 before any; `broken`: the job after which the
    process had to end, None when none did."""

    findings: list[Finding] = field(default_factory=list)
    ended: dict[int, str] = field(default_factory=dict)
    started: int = -1
    broken: int | None = None
    buffers: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def parse(lines: Iterable[str], tool: Tool) -> Log:
    """Findings in the lines of a log, in order; each block of lines that begins with a known title is one."""
    log = Log()
    block: list[str] = []
    for raw in lines:
        line = raw.rstrip("\n")
        mark = _MARK.search(line)
        if mark:
            _close(log, block, tool)
            _marked(log, mark)
        elif line.startswith(_PREFIX):
            text = line.removeprefix(_PREFIX)
            if _begins(text):
                _close(log, block, tool)
            if text.strip():
                block.append(text.strip())
            else:
                _close(log, block, tool)
    _close(log, block, tool)
    for finding in log.findings:
        _place(finding, log.buffers.get(finding.job, []))
    return log


def distinct(findings: Iterable[Finding]) -> list[Finding]:
    """The first finding of each kind at each place (line and buffer), with their number: thousands of threads make the same mistake."""
    kept: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        place = (
            finding.job,
            finding.tool,
            finding.status,
            finding.kernel,
            finding.line,
            finding.other_line,
            finding.buffer,
        )
        if place in kept:
            kept[place].count += finding.count
        else:
            kept[place] = finding
    return list(kept.values())


def _begins(text: str) -> bool:
    """Whether a line is no continuation: those are indented."""
    return text.startswith(" ") and not text.startswith("  ")


def _marked(log: Log, mark: re.Match[str]) -> None:
    kind, number, rest = mark[1], int(mark[2]), mark[3].split()
    if kind == "job":
        log.started = number
    elif kind == "buffer":
        log.buffers.setdefault(number, []).append((int(rest[1], 16), int(rest[2])))
    elif kind == "end":
        log.ended[number] = rest[0] if rest else "ok"
    else:
        log.broken = number


def _close(log: Log, block: list[str], tool: Tool) -> None:
    """Turn the collected lines into a finding, and start anew."""
    lines, block[:] = list(block), []
    if not lines:
        return
    title = lines[0]
    status = _status(title)
    if status is None:
        if not _SUMMARY.match(title) and "CUDA API error" not in title and "returned" not in title:
            log.problems.append(title)
        return
    finding = Finding(log.started, tool, status, title)
    race = _RACE.search(title)
    if race and race["place"]:
        _at(finding, race["place"])
    for line in lines[1:]:
        _detail(finding, line)
    log.findings.append(finding)


def _status(title: str) -> Status | None:
    """What a title amounts to; None for one that reports no fault of a kernel."""
    lower = title.lower()
    if _RACE.search(title):
        return "race"
    if "uninitialized" in lower:
        return "uninitialised_read"
    if (
        "barrier error" in lower
        or "divergent thread" in lower
        or "missing wait" in lower
        or "invalid arguments" in lower
    ):
        return "barrier_divergence"
    if "misaligned" in lower:
        return "misaligned"
    if re.search(r"invalid __\w+__ (read|write|atomic)", lower) or "out-of-bounds" in lower or "out of bounds" in lower:
        return "out_of_bounds"
    if "stack overflow" in lower or "hardware exception" in lower or "user stack" in lower:
        return "crash"
    if "trap" in lower or "assert" in lower:
        return "trap"
    return None


def _detail(finding: Finding, line: str) -> None:
    if line.startswith(("Saved host backtrace", "Host Frame", "Device Frame")):
        return
    finding.details.append(line)
    other = _RACE_AND.match(line)
    thread = _THREAD.search(line)
    address = _ADDRESS.search(line)
    if other:
        found = Finding(0, finding.tool, finding.status, "")
        _at(found, other["place"])
        finding.other_line = found.line
        finding.kernel = finding.kernel or found.kernel
    elif thread:
        numbers = [int(n) for n in thread.groups()]
        finding.thread, finding.block = (numbers[0], numbers[1], numbers[2]), (numbers[3], numbers[4], numbers[5])
    elif address:
        finding.address = int(address[1] or address[2], 16)
    elif line.startswith("at ") and not finding.kernel:
        _at(finding, line)


def _at(finding: Finding, place: str) -> None:
    text = place if place.startswith("at ") else f"at {place}"
    text = re.sub(r" \[\d+ hazards?\]$", "", text)
    match = _AT.match(text) or _AT_OLD.match(text)
    if match:
        finding.kernel = match["kernel"]
        finding.line = int(match["line"] or 0)


def _place(finding: Finding, buffers: list[tuple[int, int]]) -> None:
    """The buffer whose bytes are nearest to the finding's address, within 64 KiB."""
    best = 1 << 16
    for number, (start, nbytes) in enumerate(buffers):
        if not finding.address or not nbytes:
            continue
        distance = max(start - finding.address, finding.address - (start + nbytes) + 1, 0)
        if distance < best:
            best, finding.buffer, finding.offset = distance, number, finding.address - start
