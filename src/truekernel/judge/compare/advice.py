"""Which candidate to take, derived from the facts of a comparison and from nothing else.

What is not shown to be right is never advised. Among right ones: those that are not shown to be slower than the fastest; among these the one of the problem's own precision, which changes
no state, repeats its bits, and into which others can look furthest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from truekernel.judge.compare.records import Entry, Pair, TimeRow
from truekernel.judge.compare.timing import TELLING

MOST_CHANGES = 3


def advise(entries: Sequence[Entry], pairs: Sequence[Pair], own: str) -> tuple[str, str]:
    """Label of the candidate to take, "" where none can be advised, and one paragraph that says why. `own`: the problem's precision."""
    refused = {entry.label: why for entry in entries if (why := _refusal(entry))}
    usable = [entry for entry in entries if entry.label not in refused]
    against = [f"{label} {why}." for label, why in refused.items()]
    if not usable:
        return "", " ".join(("None can be advised:", *against))
    leading, words = _leading(usable, pairs)
    chosen = min(leading, key=lambda entry: [cost for cost, _ in _virtues(entry, own)])
    why = _why(chosen, [entry for entry in leading if entry is not chosen], own) if len(usable) > 1 else ""
    alone = "it is the only one that is shown to be right" if len(usable) == 1 else why
    said = [f"Take {chosen.label}{f': {alone}' if alone else ''}.", *words, *against]
    return chosen.label, " ".join((*said, *_alike(chosen, usable, pairs), *_warnings(chosen, own)))


def _refusal(entry: Entry) -> str:
    """Why a candidate can't be advised, "" where nothing forbids it."""
    verdict, times = entry.verdict, entry.times
    if verdict.word != "right":
        return f"is {'a hazard' if verdict.word == 'hazard' else verdict.word} ({verdict.why})"
    if times is not None and times.word not in TELLING:
        return f"was right in the check, but its timing says {times.word} ({times.why})"
    return ""


def _leading(usable: Sequence[Entry], pairs: Sequence[Pair]) -> tuple[list[Entry], list[str]]:
    """Those between whom time does not decide, and what time says."""
    if len(usable) == 1:
        return list(usable), []
    measured = [entry for entry in usable if entry.times is not None]
    unknown = [entry.label for entry in usable if entry.times is None]
    if len(measured) < 2:
        whose = "of " + _listed(unknown) if measured else "here"
        return list(usable), [f"Speed decides nothing: times {whose} are not measured."]
    beside: dict[str, dict[str, TimeRow]] = {}
    for pair in pairs:
        if pair.time is not None:
            beside.setdefault(pair.first, {})[pair.second] = pair.time
    fastest, rivals = next(iter(beside.items()), (measured[0].label, {}))
    slower: dict[str, str] = {}
    for label, row in rivals.items():
        if row.word == "FASTER" and row.agree:
            slower[label] = f"{fastest} is {row.ratio:.2f} times as fast as {label} ({row.low:.2f} to {row.high:.2f})."
        elif row.word == "SLOWER" and row.agree:
            times = [f"{1.0 / ratio:.2f}" for ratio in (row.ratio, row.high, row.low)]
            slower[fastest] = f"{label} is {times[0]} times as fast as {fastest} ({times[1]} to {times[2]})."
    words = list(slower.values())
    leading = [entry for entry in measured if entry.label not in slower]
    if len(leading) > 1:
        words.append(f"{_listed([entry.label for entry in leading])} are not shown to differ in time.")
    if unknown:
        words.append(f"How fast {_listed(unknown)} would be is not known.")
    return leading, words


def _virtues(entry: Entry, own: str) -> list[tuple[Any, str]]:
    """What speaks for a candidate, the weightiest first: a cost, smaller is better, and the words for whoever has the smaller one."""
    verdict, look = entry.verdict, entry.auditability
    lower = verdict.precision.declared not in ("", own)
    return [
        (lower, f"it computes in {own}, not in less"),
        (len(verdict.state), "it changes less state of its process"),
        (verdict.deterministic is False, "it repeats its bits"),
        (not look.sanitised, "its device code can be sanitised"),
        (not look.readable, "all of its device code can be read"),
        (not look.mutated, "its device code can be mutated"),
        (entry.deciding.launches != "plan", "a plan says what it launches, no host code"),
        (look.kernels, f"it has fewer kernels ({look.kernels})"),
        (look.files, "it is fewer files"),
        (look.lines, f"it has fewer lines ({look.lines})"),
    ]


def _why(chosen: Entry, rivals: Sequence[Entry], own: str) -> str:
    """For each rival the weightiest thing in which the chosen one is better."""
    reasons: dict[str, list[str]] = {}
    for rival in rivals:
        mine, theirs = _virtues(chosen, own), _virtues(rival, own)
        better = next((text for (a, text), (b, _) in zip(mine, theirs, strict=True) if a < b), "")
        reasons.setdefault(better, []).append(rival.label)
    if not rivals:
        return "it is the fastest that was timed"
    return "; ".join(
        f"against {_listed(labels)}, {text}" if text else f"nothing found tells {_listed(labels)} from it"
        for text, labels in reasons.items()
    )


def _alike(chosen: Entry, usable: Sequence[Entry], pairs: Sequence[Pair]) -> list[str]:
    """How far the others' outputs lie from the chosen one's."""
    same, apart = [], []
    for entry in usable:
        pair = next((p for p in pairs if {p.first, p.second} == {chosen.label, entry.label}), None)
        if pair is not None and pair.same_bits:
            same.append(entry.label)
        elif pair is not None and pair.largest is not None:
            apart.append(f"those of {entry.label} lie up to {pair.largest:.2g} error scales away")
    words = [f"{_listed(same)} gave the same bits as {chosen.label} on every case."] if same else []
    return [*words, f"Outputs: {', '.join(apart)}, which both being right allows."] if apart else words


def _warnings(chosen: Entry, own: str) -> list[str]:
    words = []
    declared = chosen.verdict.precision.declared
    if declared not in ("", own):
        words.append(f"It computes in {declared}, as declared, where the problem is {own}.")
    names = list(dict.fromkeys(change.name for change in chosen.verdict.state))
    if names:
        more = f" and {len(names) - MOST_CHANGES} more" if len(names) > MOST_CHANGES else ""
        words.append(f"It changes {', '.join(names[:MOST_CHANGES])}{more}: code beside it will see that.")
    times = chosen.times
    if times is not None and times.word in ("SLOWER", "AMBIGUOUS"):
        how = "slower than" if times.word == "SLOWER" else "not shown to be as fast as"
        words.append(f"But it is {how} the baseline {times.against}: PyTorch alone may do.")
    return words


def _listed(labels: Sequence[str]) -> str:
    return " and ".join((", ".join(labels[:-1]), labels[-1])) if len(labels) > 1 else labels[0]
