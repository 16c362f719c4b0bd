"""What an evaluation script and the candidate inside change, what ran in which state, and what is measured when all run in one state."""

from __future__ import annotations

import hashlib
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truekernel.errors import BadInputError
from truekernel.judge.scripts import static
from truekernel.judge.scripts.running import Event, Watched, run_script
from truekernel.judge.verdict import Record

METRIC = r"(?i)speed-?\s?up\D{0,40}?([0-9]+(?:\.[0-9]+)?)"
"""What is read from a script's output where nothing else is asked for: the number behind the word speedup."""
MOST_STATES = 4
"""States that a script is run in again."""
GROUPS = ("callables", "interpreter", "process", "config")
"""Groups of state whose changes are reported beside switches and environment; random generators move by design."""
WARM_SHARE = 0.1
"""Share of each subject's first calls that is no time of it."""
BAD = ("conditions differ", "left changed", "written unseen", "replaced")


class Finding(Record):
    """`kind`: one of those that `BAD` and `docs/how-to/audit-a-script.md` list; `where`: file and line, "" where nobody was seen."""

    kind: str
    text: str
    where: str = ""


class Place(Record):
    """A place in the script's text that a rule of `static` names."""

    rule: str
    line: int
    text: str
    harm: str


class Subject(Record):
    """A module class that the script calls. `number`: in the order of first calls; `processes`: in which it was called; `milliseconds`: median of a call, by the wall clock in its process; null on a
    GPU, where calls return before they are done. `state`: the switches in which it ran, where they are not the same for all subjects."""

    name: str
    where: str
    number: int
    processes: tuple[int, ...]
    calls: int
    milliseconds: float | None
    state: dict[str, str]


class Run(Record):
    """One run of the script. `held`: "" as it is, or the subject in whose state everything ran. `metrics`: numbers read from its output."""

    held: str
    exit_code: int | None
    seconds: float
    metrics: tuple[float, ...]
    milliseconds: dict[str, float]
    unheld: tuple[str, ...] = ()
    """Writes that could not be made again."""


class ScriptAudit(Record):
    """What is said of a script."""

    format: int = 1
    script: str
    sha256: str
    arguments: tuple[str, ...]
    processes: int
    subjects: tuple[Subject, ...]
    together: bool
    """Whether two subjects were called in one process."""
    findings: tuple[Finding, ...]
    places: tuple[Place, ...]
    runs: tuple[Run, ...]
    """As it is, then in the state of each subject that ran in a state of its own."""
    clocks: dict[str, int]
    """Readings by clock and place."""
    notes: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """1 where state was changed or not level, or the script failed; places in its text are questions."""
        return int(any(f.kind in BAD for f in self.findings) or self.runs[0].exit_code != 0)


@dataclass
class _Seen:
    """A subject as the events tell of it."""

    name: str
    where: str
    library: bool
    processes: list[int] = field(default_factory=list)
    nanoseconds: list[int] = field(default_factory=list)
    waits: bool = True
    values: dict[str, set[str]] = field(default_factory=dict)


def audit_script(
    script: Path, arguments: Sequence[str] = (), *, metric: str = METRIC, timeout: float = 600.0, level: bool = True
) -> ScriptAudit:
    """Run a script as it is, and again in one state where its subjects ran in several. `timeout`: seconds of one run.

    Raises BadInputError for a file that is no Python or a pattern that is none.
    """
    pattern = _pattern(metric)
    places = static.read(script)
    first = run_script(script, arguments, timeout=timeout)
    seen = _subjects(first)
    different = _different(seen)
    runs = [_run("", first, pattern)]
    if level and different and first.exit_code == 0:
        for subject in _states(seen, different)[:MOST_STATES]:
            held = held_writes(first, subject.name)
            runs.append(_run(subject.name, run_script(script, arguments, timeout=timeout, held=held), pattern))
    return ScriptAudit(
        script=str(script),
        sha256=hashlib.sha256(script.read_bytes()).hexdigest(),
        arguments=tuple(arguments),
        processes=len(first.processes),
        subjects=tuple(_told(number, one, different) for number, one in enumerate(seen)),
        together=any(set(a.processes) & set(b.processes) for a in seen for b in seen if a is not b),
        findings=tuple(_findings(first, seen, different)),
        places=tuple(
            Place(rule=f.rule, line=f.line, text=f.text, harm=next(r.harm for r in static.RULES if r.name == f.rule))
            for f in places
        ),
        runs=tuple(runs),
        clocks=_clocks(first),
        notes=tuple(_notes(first, seen, runs)),
    )


def _pattern(metric: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(metric)
    except re.error as error:
        raise BadInputError(f"--metric {metric!r}: no regular expression: {error}") from None
    if pattern.groups != 1:
        raise BadInputError(f"--metric {metric!r}: give one group, around the number")
    return pattern


# -------------------------------------------------------------------- subjects


def _subjects(run: Watched) -> list[_Seen]:
    """Classes that were called, by first call; those of libraries only where there are no others."""
    found: dict[str, _Seen] = {}
    touched: dict[str, set[str]] = {}
    for _, event in run.events("switch"):
        touched.setdefault(_target(event), set()).update(event["changed"])
    for process, events in enumerate(run.processes):
        _follow(process, events, touched, found)
    own = [one for one in found.values() if not one.library]
    return own or list(found.values())


def _follow(process: int, events: Sequence[Event], touched: Mapping[str, set[str]], found: dict[str, _Seen]) -> None:
    """One process's subjects and the values of switches in which they ran: what a subject sets first in a call counts, since it may take it back at the call's end. `touched`: switches by
    target of a write."""
    current: dict[str, str] = {}
    written: set[tuple[int, str]] = set()
    overruled: dict[str, set[str]] = {}
    for event in events:
        match event["event"]:
            case "subject":
                where = f"{event['file']}:{event['line']}" if event["file"] else ""
                one = found.setdefault(event["name"], _Seen(event["name"], where, event["library"]))
                if process not in one.processes:
                    one.processes.append(process)
                current = dict(event["state"])
                for key in set(current) - overruled.get(one.name, set()):
                    one.values.setdefault(key, set()).add(current[key])
            case "switch":
                current |= {key: after for key, (_, after) in event["changed"].items()}
                if event["subject"] not in found or (event["call"], _target(event)) in written:
                    continue
                written.add((event["call"], _target(event)))
                one = found[event["subject"]]
                for key in touched[_target(event)]:
                    own = overruled.setdefault(one.name, set())
                    if key not in own:
                        own.add(key)
                        one.values[key] = set()
                    one.values[key].add(current.get(key, "unknown"))
            case "calls" if event["name"] in found:
                one = found[event["name"]]
                one.nanoseconds += event["nanoseconds"]
                one.waits = one.waits and event["waits"]


def _different(seen: Sequence[_Seen]) -> list[str]:
    """Switches that are not the same for all subjects."""
    keys = sorted({key for one in seen for key in one.values})
    return [key for key in keys if len({frozenset(one.values.get(key, ())) for one in seen}) > 1]


def _states(seen: Sequence[_Seen], different: Sequence[str]) -> list[_Seen]:
    """One subject for each state."""
    found: dict[tuple[frozenset[str], ...], _Seen] = {}
    for one in seen:
        found.setdefault(tuple(frozenset(one.values.get(key, ())) for key in different), one)
    return list(found.values())


def _told(number: int, one: _Seen, different: Sequence[str]) -> Subject:
    return Subject(
        name=one.name,
        where=one.where,
        number=number,
        processes=tuple(one.processes),
        calls=len(one.nanoseconds),
        milliseconds=_milliseconds(one.nanoseconds) if one.waits else None,
        state={key: _values(one, key) for key in different},
    )


def _values(one: _Seen, key: str) -> str:
    return " and ".join(sorted(one.values.get(key, {"unknown"})))


def _milliseconds(nanoseconds: Sequence[int]) -> float | None:
    warm = nanoseconds[int(len(nanoseconds) * WARM_SHARE) :]
    return round(statistics.median(warm) / 1e6, 6) if warm else None


def held_writes(run: Watched, name: str) -> list[tuple[str, Any]]:
    """The writes that make the state in which a subject ran: all before its first call in its process, and the first of each that it makes itself."""
    for process in range(len(run.processes)):
        events = run.processes[process]
        first = next((n for n, e in enumerate(events) if e["event"] == "subject" and e["name"] == name), None)
        if first is None:
            continue
        before = [e for e in events[:first] if e["event"] == "switch"]
        own: dict[str, Event] = {}
        for event in events[first:]:
            if event["event"] == "switch" and event["subject"] == name:
                own.setdefault(_target(event), event)
        return [(e["name"], e["arguments"]) for e in [*before, *own.values()] if e["arguments"] is not None]
    return []


def _target(event: Event) -> str:
    """What a write is to: the same for two writes of which the later undoes the earlier."""
    return f"{event['name']} {event['arguments'][:-1] if event['arguments'] else ''}"


def _run(held: str, run: Watched, pattern: re.Pattern[str]) -> Run:
    times = {
        one.name: value for one in _subjects(run) if one.waits and (value := _milliseconds(one.nanoseconds)) is not None
    }
    return Run(
        held=held,
        exit_code=run.exit_code,
        seconds=round(run.seconds, 3),
        metrics=tuple(float(match) for match in pattern.findall(run.output) if _is_number(match)),
        milliseconds=times,
        unheld=tuple(f"{event['name']}: {event['why']}" for _, event in run.events("unheld")),
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# -------------------------------------------------------------------- findings


def _findings(run: Watched, seen: Sequence[_Seen], different: Sequence[str]) -> Iterator[Finding]:
    for key in different:
        states = ", ".join(f"{one.name} {_values(one, key)}" for one in seen)
        yield Finding(kind="conditions differ", text=f"{key}: {states}", where=_writer(run, key))
    for process in range(len(run.processes)):
        yield from _left(run, process)
    for _, event in run.events("drift"):
        for key, (before, after) in event["changed"].items():
            yield Finding(
                kind="written unseen",
                text=f"{key}: {before} became {after}, and no function of torch that sets it was called",
                where=event["where"],
            )
    for (name, value), where in _environment(run).items():
        yield Finding(kind="environment", text=f"{name} = {value}", where=where)
    for where in dict.fromkeys(event["where"] for _, event in run.events("exec")):
        yield Finding(
            kind="executed here",
            text="text is executed in this process, which can change all that it holds",
            where=where,
        )


def _left(run: Watched, process: int) -> Iterator[Finding]:
    """What a process leaves changed at its end, or had changed in between."""
    events = run.processes[process]
    states = {e["when"]: e["state"] for e in events if e["event"] == "state"}
    before, after = states.get("torch loaded"), states.get("end")
    writes = [(key, e) for e in events if e["event"] == "switch" for key in e["changed"]]
    if before is None:
        return
    for key in dict.fromkeys(key for key, _ in writes):
        whole = f"numeric.{key}"
        where = _writer(run, key)
        if after is None or before.get(whole) == after.get(whole):
            kind = "changed and put back" if after is not None else "changed"
            values = ", ".join(dict.fromkeys(e["changed"][key][1] for k, e in writes if k == key))
            yield Finding(kind=kind, text=f"{key}: {before.get(whole)}, then {values}", where=where)
        else:
            yield Finding(
                kind="left changed", text=f"{key}: {before.get(whole)} became {after.get(whole)}", where=where
            )
    for name in sorted(after or {}):
        group, _, rest = name.partition(".")
        old, new = before.get(name), (after or {})[name]
        if group not in GROUPS or old == new or (old is None and group != "process"):
            continue
        kind = "replaced" if group == "callables" else "left otherwise"
        yield Finding(kind=kind, text=f"{rest}: {old} became {new}")


def _writer(run: Watched, key: str) -> str:
    """Where a switch was written first."""
    return next((e["where"] for _, e in run.events("switch") if key in e["changed"]), "")


def _environment(run: Watched) -> dict[tuple[str, str], str]:
    return {(e["name"], e["value"]): e["where"] for _, e in run.events("environment")}


def _clocks(run: Watched) -> dict[str, int]:
    found: dict[str, int] = {}
    for _, event in run.events("clock"):
        name = f"{event['name']} {event['where']}"
        found[name] = found.get(name, 0) + event["count"]
    return found


def _notes(run: Watched, seen: Sequence[_Seen], runs: Sequence[Run]) -> Iterator[str]:
    if not run.processes:
        yield "nothing was watched: the script's Python ignores PYTHONPATH"
    if len(seen) < 2:
        yield "fewer than two classes of modules were called, so that no conditions could be compared: plain functions are not seen"
    if run.exit_code != 0:
        how = "ran past its time" if run.exit_code is None else f"ended with {run.exit_code}"
        last = run.output.strip().splitlines()[-1:] or [""]
        yield f"the script {how}: {last[0][:200]}"
    if not runs[0].metrics:
        yield "its output holds no number of the kind that --metric names"
    unwatched = [e for _, e in run.events("child") if e["argv"] and _is_blind(e["argv"])]
    for event in unwatched:
        yield f"not watched: {' '.join(event['argv'])[:160]}, started at {event['where']}"


def _is_blind(argv: Sequence[str]) -> bool:
    """A Python that reads no PYTHONPATH."""
    if not Path(argv[0]).name.startswith("python"):
        return False
    options = [word for word in argv[1:] if word.startswith("-") and not word.startswith("--")]
    return any(set("IE") & set(word[1:]) for word in options[:3] if word[1:2] not in ("c", "m"))
