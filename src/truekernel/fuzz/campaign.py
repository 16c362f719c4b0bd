"""A run: workers, their messages, and what is kept. Findings are on disk before the next message is read, so that a kill loses none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from truekernel.errors import BadInputError, UnknownNameError
from truekernel.fuzz import libraries
from truekernel.fuzz.options import FuzzOptions, FuzzProgress
from truekernel.fuzz.oracles import TIERS
from truekernel.fuzz.records import Finding, document, parsed
from truekernel.fuzz.space import selected
from truekernel.pool import LocalPool
from truekernel.store import Store

WORK = "truekernel.fuzz.worker:work"
FIXED = (
    "library",
    "operators",
    "weights",
    "policy",
    "tier",
    "coverage",
    "knowledge",
    "constraints",
    "seeds",
    "internal",
    "most_calls",
)
"""Options that a resumed run must share with what it goes on with."""


@dataclass(frozen=True, slots=True)
class FuzzResult:
    """What a run has. `findings`: all of it; `fresh`: keys first seen since this call began; `counts`: summed over workers and epochs."""

    findings: tuple[Finding, ...]
    fresh: tuple[str, ...]
    progress: FuzzProgress
    counts: Mapping[str, int]
    versions: Mapping[str, str]

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "format": 1,
            "versions": dict(self.versions),
            "progress": asdict(self.progress),
            "counts": dict(self.counts),
            "fresh": list(self.fresh),
            "findings": [document(finding) for finding in self.findings],
        }


def run_fuzz(options: FuzzOptions, show: Callable[[FuzzProgress], None] | None = None) -> FuzzResult:
    """Fuzz until the budget is spent. Raises TruekernelError subclasses for options that can't be used; what was found before an interruption is stored."""
    _check(options)
    library = libraries.load(options.library)
    selected(library.operators(), options.operators, internal=options.internal)
    library.samples()
    store = _opened(options, library.versions())
    try:
        return _run(options, store, library.versions(), show or (lambda _: None))
    finally:
        store.close()


def _check(options: FuzzOptions) -> None:
    from truekernel.fuzz import coverage, policies

    if options.budget <= 0:
        raise BadInputError(f"--budget {options.budget:g}: give more than 0 seconds")
    if options.workers < 1:
        raise BadInputError(f"--workers {options.workers}: give at least 1")
    if not 1 <= options.most_calls <= 6:
        raise BadInputError(f"--most-calls {options.most_calls}: give 1 to 6")
    if options.policy not in policies.NAMES:
        raise UnknownNameError("policy", options.policy, list(policies.NAMES))
    if options.tier not in TIERS:
        raise UnknownNameError("tier", options.tier, list(TIERS))
    for kind in options.coverage:
        if kind not in coverage.KINDS:
            raise UnknownNameError("kind of coverage", kind, list(coverage.KINDS))
    for pattern, weight in options.weights.items():
        if not weight > 0:
            raise BadInputError(f"--weight {pattern}={weight:g}: give a number above 0")


def _opened(options: FuzzOptions, versions: Mapping[str, str]) -> Store:
    meta = {"kind": "fuzz", "options": _plain(options), "versions": dict(versions)}
    if not options.resume:
        return Store.create(options.run_dir, meta)
    store = Store.open(options.run_dir)
    before = store.meta()["options"]
    changed = [name for name in FIXED if before.get(name) != _plain(options)[name]]
    if changed:
        store.close()
        raise BadInputError(
            f"{options.run_dir} was started with {changed[0]} {before.get(changed[0])!r}, not {_plain(options)[changed[0]]!r}: give the same, or another --run directory"
        )
    return store


def _plain(options: FuzzOptions) -> dict[str, Any]:
    table = asdict(options)
    return {
        name: str(value) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value
        for name, value in table.items()
    }


def _jobs(options: FuzzOptions, store: Store) -> list[dict[str, Any]]:
    marks = {mark: value["key"] for mark, value in store.items("signature")}
    states = dict(store.items("state"))
    jobs = []
    for number in range(options.workers):
        state = states.get(str(number))
        folder = options.run_dir / f"policy-{number}"
        source = folder if state is not None and folder.is_dir() else options.start_from
        jobs.append(
            _plain(options)
            | {
                "number": number,
                "state": state,
                "known": marks,
                "folder": str(folder),
                "load": None if source is None else str(source),
            }
        )
    return jobs


def _run(
    options: FuzzOptions, store: Store, versions: Mapping[str, str], show: Callable[[FuzzProgress], None]
) -> FuzzResult:
    findings: dict[str, Finding] = {key: parsed(value) for key, value in store.items("finding")}
    before = set(findings)
    latest: dict[str, dict[str, Any]] = dict(store.items("progress"))
    started = time.monotonic()
    shown = 0.0
    for _, message in LocalPool(options.workers).run(WORK, _jobs(options, store)):
        _keep(message, store, findings, latest)
        now = time.monotonic()
        if now - shown > 0.5:
            shown = now
            show(_progress(latest, findings, now - started, options.budget))
    progress = _progress(latest, findings, time.monotonic() - started, options.budget)
    show(progress)
    return FuzzResult(
        tuple(_ordered(findings)),
        tuple(key for key in findings if key not in before),
        progress,
        _summed(latest, "counts"),
        versions,
    )


def _keep(
    message: Mapping[str, Any], store: Store, findings: dict[str, Finding], latest: dict[str, dict[str, Any]]
) -> None:
    if "finding" in message:
        finding: Finding = parsed(message["finding"])
        known = findings.get(finding.key)
        if known is not None:
            finding = replace(known, seen=known.seen + 1)
        findings[finding.key] = finding
        store.put_many("finding", {finding.key: document(finding)})
        store.put_many("signature", {message["signature"]: {"key": finding.key}})
    elif "unconfirmed" in message:
        mark = message["unconfirmed"]["signature"]
        store.put_many("unconfirmed", {mark: message["unconfirmed"]})
        store.put_many("signature", {mark: {"key": ""}})
    elif "extreme" in message:
        store.put_many("extreme", {message["extreme"]["signature"]: message["extreme"]})
    elif "again" in message:
        known = findings[message["again"]]
        findings[known.key] = replace(known, seen=known.seen + 1)
    elif "state" in message:
        state = message["state"]
        store.put_many("state", {str(state["number"]): state})
        store.put_many("finding", {key: document(finding) for key, finding in findings.items() if finding.seen > 1})
    elif "progress" in message:
        progress = message["progress"]
        key = f"{progress['number']}.{progress['epoch']}"
        latest[key] = progress
        store.put_many("progress", {key: progress})
        store.put_many(
            "curve",
            {
                f"{key}.{progress['seconds']:010.2f}": {
                    "coverage": progress["coverage"],
                    "counts": progress["counts"],
                    "findings": len(findings),
                }
            },
        )


def _summed(latest: Mapping[str, Mapping[str, Any]], name: str) -> dict[str, int]:
    total: dict[str, int] = {}
    for progress in latest.values():
        for key, value in progress[name].items():
            total[key] = total.get(key, 0) + value
    return dict(sorted(total.items()))


def _progress(
    latest: Mapping[str, Mapping[str, Any]], findings: Mapping[str, Finding], seconds: float, budget: float
) -> FuzzProgress:
    counts = _summed(latest, "counts")
    coverage: dict[str, int] = {}
    for progress in latest.values():
        for kind, value in progress["coverage"].items():
            coverage[kind] = max(coverage.get(kind, 0), value)
    executed = counts.get("executed", 0)
    return FuzzProgress(
        seconds,
        budget,
        executed,
        executed - counts.get("refused", 0),
        counts.get("refused", 0),
        counts.get("calls", 0),
        max((progress["operators"] for progress in latest.values()), default=0),
        len(findings),
        sum(finding.public for finding in findings.values()),
        coverage,
    )


RANK = {"critical": 0, "high": 1, "medium": 2, "low": 3}


def _ordered(findings: Mapping[str, Finding]) -> Iterator[Finding]:
    yield from sorted(findings.values(), key=lambda one: (RANK[one.severity], one.key))


def stored_findings(directory: Path) -> list[Finding]:
    """Findings of a run, the gravest first. Raises RunDirectoryError where it can't be read."""
    store = Store.open(directory)
    try:
        return list(_ordered({key: parsed(value) for key, value in store.items("finding")}))
    finally:
        store.close()
