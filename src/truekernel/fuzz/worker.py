"""One worker of a run: builds cases, executes them, lets space and policy learn, triages failures. Runs in a process of `pool.LocalPool`."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from truekernel.fuzz import libraries
from truekernel.fuzz.executor import Executor, Report
from truekernel.fuzz.oracles import TIERS
from truekernel.fuzz.policy import Policy, State
from truekernel.fuzz.records import Feedback, Finding, TestCase, document
from truekernel.fuzz.space import Space, SpaceOptions
from truekernel.fuzz.triage import Triage, signature

SAY_SECONDS = 1.0
SAVE_SECONDS = 60.0
SAVE_SHARE = 50.0
"""Saving takes at most one part in this many of the time."""
VALIDITY = "validity.json"
ORACLE_SHARE = 0.35
"""Share of valid cases that each cheap oracle is asked about, beside those that reached something new."""
SERIOUSNESS = ("low", "medium", "high", "critical")


def work(job: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Messages: {"progress": ...} about each second, {"finding": ...}, {"unconfirmed": ...}, {"extreme": ...}, {"state": ...} now and then and at the end."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    yield from Worker(job).run()


class Worker:
    """`job`: the fields of `FuzzOptions` as JSON, with `number`, `state` (of an earlier run, or None), `known` (signatures seen) and `folder` (for the policy)."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self.job = job
        self.library = libraries.load(job["library"])
        experience = None
        if job["knowledge"]:
            from truekernel.fuzz.knowledge import load

            experience = load()
        self.space = Space(
            self.library,
            SpaceOptions(
                tuple(job["operators"]),
                job["weights"],
                constraints=job["constraints"],
                seeds=job["seeds"],
                internal=job["internal"],
                most_calls=job["most_calls"],
            ),
            experience,
        )
        epoch = 0 if job["state"] is None else job["state"]["epoch"] + 1
        self.epoch = epoch
        self.seed = (job["seed"] * 1000 + job["number"]) * 1000 + epoch
        self.random = random.Random(self.seed)
        from truekernel.fuzz import coverage, policies

        self.policy: Policy = policies.make(job["policy"], self.space, self.seed, {})
        if job["load"]:
            self.policy.load(Path(job["load"]))
        learned = Path(job["folder"]) / VALIDITY
        if job["state"] is not None and learned.is_file():
            self.space.validity.load(json.loads(learned.read_text(encoding="utf-8")))
        self.oracles = TIERS[job["tier"]]
        self.executor = Executor(
            self.library, oracles=self.oracles, coverage=coverage.make(job["coverage"], self.library)
        )
        self.triage = Triage(self.library) if job["triage"] else None
        self.state = State()
        self.known: dict[str, str] = dict(job["known"])
        self.keys: set[str] = set(self.known.values())
        self.seen: set[str] = set()
        self.extremes: set[str] = set()
        self.tally: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        self.counts: dict[str, int] = defaultdict(int)
        self.covered: dict[str, int] = defaultdict(int)
        self.started, self.processor = time.monotonic(), time.process_time()

    def spent(self) -> float:
        """Seconds of the budget that are used."""
        if self.job["processor_time"]:
            triage = self.triage.processor_seconds() if self.triage else 0.0
            training = self.policy.processor_seconds() if hasattr(self.policy, "processor_seconds") else 0.0
            return time.process_time() - self.processor + self.executor.processor_seconds() + triage + training
        return time.monotonic() - self.started

    def run(self) -> Iterator[dict[str, Any]]:
        """Work until the budget is spent."""
        said = time.monotonic()
        save_at = said + SAVE_SECONDS
        try:
            while (seconds := self.spent()) < self.job["budget"]:
                yield from self._one(seconds)
                now = time.monotonic()
                if now - said > SAY_SECONDS:
                    said = now
                    yield {"progress": self._progress()}
                if now > save_at:
                    yield {"state": self._saved()}
                    save_at = time.monotonic() + max(SAVE_SECONDS, SAVE_SHARE * (time.monotonic() - now))
        finally:
            self.executor.close()
            if self.triage:
                self.triage.close()
        yield {"progress": self._progress()}
        yield {"state": self._saved()}

    def _one(self, seconds: float) -> Iterator[dict[str, Any]]:
        state = self.state
        state.seconds = seconds
        case = self.space.build(self.policy, state, self.random)
        key = case.key()
        if key in self.seen:
            self.counts["duplicates"] += 1
            feedback = Feedback(state.recent[-1].outcome if state.recent else _nothing(), duplicate=True)
            self.policy.learn(feedback)
            return
        self.seen.add(key)
        report = self.executor.run(case, seed=self.random.getrandbits(32), share=ORACLE_SHARE)
        self._count(case, report)
        finding, fresh = None, False
        worst = report.worst
        yield from self._extremes(case, report)
        if worst.failed:
            mark = signature(case, worst)
            if mark not in self.known:
                found = self.triage.examine(case, worst, seconds) if self.triage else None
                if found is None:
                    self.known[mark] = ""
                    why = self.triage.why if self.triage else "not examined"
                    self.counts[f"dropped {why}"] += 1
                    record = {"signature": mark, "why": why, "case": document(case), "outcome": document(worst)}
                    yield {"unconfirmed": record}
                else:
                    self.known[mark] = found.key
                    fresh = found.key not in self.keys
                    self.keys.add(found.key)
                    finding = found
                    yield {"finding": document(found), "signature": mark, "fresh": fresh}
            elif self.known[mark]:
                yield {"again": self.known[mark]}
        feedback = self._feedback(case, report, finding, fresh)
        state.recent.append(feedback)
        state.findings = len(self.keys)
        self.space.learn(feedback, case)
        self.policy.learn(feedback)

    def _extremes(self, case: TestCase, report: Report) -> Iterator[dict[str, Any]]:
        """What only extreme values bring about is counted, and filed once a signature."""
        for outcome in report.outcomes:
            if outcome.kind != "extreme":
                continue
            self.counts["extreme values"] += 1
            mark = signature(case, outcome)
            if mark not in self.extremes:
                self.extremes.add(mark)
                yield {"extreme": {"signature": mark, "case": document(case), "outcome": document(outcome)}}

    def _feedback(self, case: TestCase, report: Report, finding: Finding | None, fresh: bool) -> Feedback:
        new = report.new
        mark = signature(case, report.worst) if report.worst.failed else ""
        return Feedback(
            report.worst,
            functions=tuple(int(item) for item in new.get("functions", ())),
            overloads=tuple(str(item) for item in new.get("overloads", ())),
            lines=tuple(str(item) for item in new.get("lines", ())),
            kernels=tuple(str(item) for item in new.get("kernels", ())),
            finding=finding.key if finding else self.known.get(mark, ""),
            fresh=fresh,
            severity=finding.severity if finding else None,
            seconds=report.seconds,
        )

    def _count(self, case: TestCase, report: Report) -> None:
        counts, state = self.counts, self.state
        plain = report.outcomes[0].kind
        counts["executed"] += 1
        counts["calls"] += report.calls
        counts[plain] += 1
        counts[f"origin {case.origin} {'refused' if plain == 'refused' else 'accepted'}"] += 1
        if len(case.calls) == 1:
            self.tally[case.calls[0].operator][plain == "refused"] += 1
        for name in report.asked:
            counts[f"oracle {name}"] += 1
        for kind, items in report.new.items():
            self.covered[kind] += len(items)
        state.executed = counts["executed"]
        state.valid = counts["executed"] - counts["refused"]
        state.functions = self.covered.get("functions", 0)

    def _progress(self) -> dict[str, Any]:
        return {
            "number": self.job["number"],
            "epoch": self.epoch,
            "seconds": self.spent(),
            "clock": time.monotonic() - self.started,
            "counts": dict(self.counts),
            "coverage": dict(self.covered),
            "operators": sum(1 for accepted, _ in self.tally.values() if accepted),
            "starts": self.executor.starts,
        }

    def _saved(self) -> dict[str, Any]:
        """What a resumed run goes on from. What policy and space learned is saved beside, whole or not at all."""
        folder = Path(self.job["folder"])
        draft = folder.with_name(f"{folder.name}.new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        self.policy.save(draft)
        (draft / VALIDITY).write_text(json.dumps(self.space.validity.document()), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)
        return {
            "number": self.job["number"],
            "epoch": self.epoch,
            "tally": dict(self.tally),
        }


def _nothing() -> Any:
    from truekernel.fuzz.records import Outcome

    return Outcome("valid")
