"""From a failure to a finding: confirmed in fresh processes, made small, named by its root cause."""

from __future__ import annotations

import re
import resource
from dataclasses import replace

from truekernel.fuzz.executor import Executor, Limits
from truekernel.fuzz.library import Library
from truekernel.fuzz.minimising import candidates, plainest
from truekernel.fuzz.records import Finding, Operator, Outcome, Severity, TensorValue, TestCase
from truekernel.fuzz.showing import shows

REPRODUCTIONS = 3
ATTEMPTS = 220
SLOW_ATTEMPTS = 4
"""For a hang, where each costs seconds."""
INTERNAL = "INTERNAL ASSERT"
FAR = 1 << 24
"""Whole numbers beyond this are no sizes that users give."""


def stem(name: str) -> str:
    """What variants of an operator share: `conv2d` for `torch.ops.aten.conv2d.padding`; without the mark of in-place, the namespace's prefix and `_backward`."""
    parts = name.split(".")
    base = parts[3] if ".ops." in name and len(parts) > 3 else parts[-1]
    base = base.strip("_")
    for prefix in ("linalg_", "fft_", "special_", "nn_"):
        base = base.removeprefix(prefix)
    return base


def _category(message: str) -> str:
    """What kind of mismatch a message tells, without its numbers: values, classes of values and whole numbers are one."""
    text = message.split(":", 1)[0]
    if text.startswith(("values", "class of values", "whole numbers")):
        return "values"
    return re.sub(r" of output \d+|\d+", "", text)[:60].strip()


def signature(case: TestCase, outcome: Outcome) -> str:
    """A cheap name of a failure before triage: failures of one signature are examined once."""
    operator = case.calls[min(outcome.call, len(case.calls) - 1)].operator
    what = (
        outcome.location
        if outcome.kind == "assert" and outcome.location
        else _category(outcome.message)
        if outcome.kind in ("mismatch", "extreme")
        else outcome.error
    )
    if outcome.kind == "assert" and ":" in what:
        return f"assert|{what}"
    return f"{outcome.kind}|{outcome.oracle}|{operator}|{what}"


class Triage:
    """Examines failures in processes of its own."""

    def __init__(self, library: Library, limits: Limits | None = None) -> None:
        self.library = library
        self.operators = {operator.name: operator for operator in library.operators()}
        self._by_stem: dict[str, list[Operator]] = {}
        for operator in self.operators.values():
            if operator.public:
                self._by_stem.setdefault(stem(operator.name), []).append(operator)
        names = tuple(oracle.name for oracle in library.oracles())
        self.why = ""
        """Why the last failure became no finding: `not again`, or `script passes`."""
        self._scripts = 0.0
        self._limits = limits or Limits()
        self._executor = Executor(library, limits=self._limits, oracles=names)
        self._fresh = Executor(library, limits=self._limits, oracles=names, fresh=True)

    def processor_seconds(self) -> float:
        """Processor time that triage has used in other processes."""
        return self._executor.processor_seconds() + self._fresh.processor_seconds() + self._scripts

    def close(self) -> None:
        """End its processes."""
        self._executor.close()
        self._fresh.close()

    def examine(self, case: TestCase, outcome: Outcome, seconds: float = 0.0) -> Finding | None:
        """The finding behind a failure; None where it does not fail again 3 times of 3 in fresh processes, or its script does not show it."""
        self.why = "not again"
        if not all(self._fails(case, outcome, self._fresh) for _ in range(2)):
            return None
        smallest = self._minimised(case, outcome)
        smallest = self._public(smallest, outcome)
        smallest = self._literal(smallest, outcome)
        seen = [self._shown(smallest, outcome) for _ in range(REPRODUCTIONS)]
        confirmed = [one for one in seen if one is not None]
        if len(confirmed) < REPRODUCTIONS:
            smallest = case
            confirmed = [one for one in (self._shown(case, outcome) for _ in range(REPRODUCTIONS)) if one is not None]
            if len(confirmed) < REPRODUCTIONS:
                return None
        for shown in dict.fromkeys((smallest, case)):  # what is small may show by chance alone
            found = self._finding(case, shown, confirmed[-1], len(confirmed), seconds)
            if self._in_script(found):
                self.why = ""
                return found
        self.why = "script passes"
        return None

    def _in_script(self, found: Finding) -> bool:
        """Whether the script shows it; no other child ends meanwhile, so that its processor time is known."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        shown = shows(found, self.library)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._scripts += after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return shown

    def _shown(self, case: TestCase, outcome: Outcome) -> Outcome | None:
        oracles = () if outcome.oracle == "execution" else (outcome.oracle,)
        found = self._fresh.run(case, oracles)
        worst = found.worst
        if not _same(worst, outcome):
            return None
        where = frames(found.stack) if found.stack else ""
        return replace(worst, location=where or worst.location)

    def _fails(self, case: TestCase, outcome: Outcome, executor: Executor) -> bool:
        oracles = () if outcome.oracle == "execution" else (outcome.oracle,)
        return _same(executor.run(case, oracles).worst, outcome)

    def _minimised(self, case: TestCase, outcome: Outcome) -> TestCase:
        """Greedy: take the first smaller case that still fails, until none does."""
        attempts = ATTEMPTS if outcome.kind != "hang" else SLOW_ATTEMPTS
        tried: set[str] = set()
        again = True
        while again and attempts > 0:
            again = False
            for smaller in candidates(case):
                key = smaller.key()
                if key in tried:
                    continue
                tried.add(key)
                attempts -= 1
                if attempts <= 0:
                    break
                if self._fails(smaller, outcome, self._executor):
                    case, again = smaller, True
                    break
        return case

    def _public(self, case: TestCase, outcome: Outcome) -> TestCase:
        """The same arguments through a public function of that name, where that fails too."""
        if len(case.calls) != 1 or self.operators[case.calls[0].operator].public:
            return case
        for operator in self._by_stem.get(stem(case.calls[0].operator), ()):
            lifted = replace(case, calls=(replace(case.calls[0], operator=operator.name),))
            if self._fails(lifted, outcome, self._executor):
                return lifted
        return case

    def _literal(self, case: TestCase, outcome: Outcome) -> TestCase:
        """The case with values written out, where that changes nothing."""
        written = plainest(case, self.library.literal)
        return written if written != case and self._fails(written, outcome, self._fresh) else case

    def _finding(
        self, original: TestCase, case: TestCase, outcome: Outcome, reproduced: int, seconds: float
    ) -> Finding:
        call = case.calls[min(outcome.call, len(case.calls) - 1)]
        operator = self.operators[call.operator]
        proper = _proper(case) and not self.library.violation(case)
        return Finding(
            key=key_of(call.operator, outcome),
            oracle=outcome.oracle,
            operator=call.operator,
            kind=outcome.kind,
            severity=_severity(operator, outcome, proper),
            title=_title(call.operator, outcome),
            case=case,
            original=original,
            expected=EXPECTED[outcome.kind]
            if outcome.kind != "mismatch"
            else EXPECTED_OF.get(outcome.oracle, "both agree"),
            observed=f"{outcome.error}: {outcome.message}" if outcome.error else outcome.message,
            location=outcome.location,
            public=operator.public,
            backward=operator.backward,
            valid_input=proper,
            reproduced=reproduced,
            versions=self.library.versions(),
            seconds=seconds,
        )


EXPECTED = {
    "crash": "a result, or an exception that says what is wrong with the arguments",
    "assert": "a result, or an exception that says what is wrong with the arguments, not an internal assertion",
    "hang": "a result or an exception within seconds for arguments of this size",
    "memory": "memory in proportion to arguments and result",
}
EXPECTED_OF = {
    "determinism": "the same every time, but for roundings",
    "metadata": "the shape and dtype that the meta device tells",
    "neighbours": "a result that memory beside the arguments does not change, and no write outside of them",
    "layout": "the same values for contiguous and strided arguments",
    "in_place": "the in-place variant gives what the plain call gives",
    "out": "out= receives what the plain call gives",
    "precision": "the float64 result, within the error of honest arithmetic",
    "batching": "a batch gives what its members give alone",
    "gradient": "reverse mode, forward mode and finite differences agree",
    "compile": "torch.compile gives what eager mode gives",
}


def _same(found: Outcome, wanted: Outcome) -> bool:
    """Whether two failures are of one kind."""
    if found.kind != wanted.kind or found.oracle != wanted.oracle:
        return False
    if wanted.kind == "mismatch":
        return _category(found.message) == _category(wanted.message)
    return wanted.kind != "assert" or not wanted.location or found.location == wanted.location


def key_of(operator: str, outcome: Outcome) -> str:
    """Oracle, kernel and place: one root cause, one key. Addresses and numbers that inputs decide are no part of it."""
    if outcome.kind == "assert" and ":" in outcome.location:
        return f"assert:{outcome.location}"
    if outcome.kind == "crash" and outcome.location:
        return f"crash:{outcome.location}"
    what = _category(outcome.message) if outcome.kind == "mismatch" else outcome.error
    return f"{outcome.oracle if outcome.kind == 'mismatch' else outcome.kind}:{stem(operator)}:{what}".replace(" ", "_")


_FRAME = re.compile(r"frame #\d+: (.+?) \+ 0x[0-9a-f]+ \(0x[0-9a-f]+ in \S*/(\S+?)\)")
_PLUMBING = re.compile(
    r"FatalSignal|<unknown function>|^c10::(impl|detail|Dispatcher|BoxedKernel|KernelFunction|guts|function_ref)|^torch::(jit|autograd|PythonArgs|impl)|^at::(_ops|internal)::|"
    r"^void c10::function_ref|^std::|^__|^_Py|^Py|wrapper_|_call_|cpython|THPVariable|^at::TensorIteratorBase"
)


def frames(stack: str) -> str:
    """The innermost function of the library that a native stack names, without templates and arguments; "" where it names none."""
    for name, file in _FRAME.findall(stack):
        plain = name.replace("(anonymous namespace)::", "")
        if file.startswith(("libc.so", "libpthread", "libstdc++", "python")) or _PLUMBING.search(plain):
            continue
        return re.sub(r"^(void|int|long|bool|at::Tensor&?|float|double) ", "", re.split(r"[<(]", plain, maxsplit=1)[0])[
            :120
        ].strip()
    return ""


def _proper(case: TestCase) -> bool:
    """Whether arguments are ones that users give: no whole number far beyond any size, no view whose elements overlap."""
    for call in case.calls:
        for leaf in call.leaves():
            if isinstance(leaf, int) and not isinstance(leaf, bool) and abs(leaf) > FAR:
                return False
            if isinstance(leaf, TensorValue) and leaf.layout in ("overlapping", "huge_stride"):
                return False
    return True


def _severity(operator: Operator, outcome: Outcome, proper: bool) -> Severity:
    if not operator.public or operator.backward:
        return "low"
    if outcome.oracle == "neighbours" and outcome.kind == "mismatch":
        return "critical"
    if outcome.kind == "crash":
        return "critical" if proper else "high"
    if outcome.kind == "mismatch":
        if outcome.oracle == "metadata":
            return "low"
        return (
            "high"
            if outcome.message.startswith("values") or outcome.oracle in ("gradient", "determinism")
            else "medium"
        )
    if outcome.kind == "assert" and INTERNAL not in outcome.message:
        return "low"
    return "medium" if proper else "low"


def _title(operator: str, outcome: Outcome) -> str:
    if outcome.kind == "mismatch":
        return f"{operator}: {outcome.message[:140]} ({outcome.oracle})"
    if outcome.kind == "assert" and INTERNAL not in outcome.message:
        return f"{operator} raises {outcome.error} whose text tells of its inside: {' '.join(outcome.message.split())[:120]}"
    words = {
        "crash": f"ends the process with {outcome.error}",
        "assert": "fails an internal assertion",
        "hang": "does not return",
        "memory": "takes memory out of proportion",
    }
    return f"{operator} {words[outcome.kind]}" + (f" in {outcome.location}" if outcome.location else "")
