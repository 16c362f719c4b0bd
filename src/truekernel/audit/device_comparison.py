"""Where a CPU and a GPU disagree on what a mutant is: the same mutants on the same cases, each disagreement with its class."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from truekernel import checkers as checker_room
from truekernel.audit.population import fate_of
from truekernel.audit.records import MutantRecord, ProblemRecord
from truekernel.audit.verdicts import Bench, State
from truekernel.errors import RunDirectoryError
from truekernel.model import Execution
from truekernel.store import Store

SYNCHRONISATION, HOST_DIFFERS = "synchronisation", "host differs"
APART = (SYNCHRONISATION, HOST_DIFFERS)
"""Classes in which a CPU must differ: it has orders of threads that a GPU does not show, and meets behaviour that only CUDA defines."""
MEANINGS = {
    SYNCHRONISATION: "threads must wait for each other: a CPU tries orders that the GPU did not happen to take, or the reverse",
    HOST_DIFFERS: "behaviour that C++ on a CPU leaves open and CUDA defines",
    "stray access": "an access out of bounds or misaligned that a GPU does not notice: neighbouring memory answers",
    "fault on the GPU": "the GPU ends the kernel where the CPU goes on: launch limits, watch on addresses, endless loops",
    "slow on the CPU": "it ends in time on the GPU only: the limit is a multiple of the original's time on each device",
    "uninitialised memory": "it reads what nothing wrote, and the devices' memory held other values",
    "nondeterministic": "the GPU does not give the same bits twice",
    "subnormals": "a GPU's float atomics flush subnormal numbers (PTX ISA, red and atom)",
    "rounding": "both are right within a few units in the last place; mathematical functions and the order of sums differ, and a limit lies between",
    "compiler": "one compiler makes the same machine code of mutant and original, or refuses the mutant, the other does not",
    "unexplained": "none of these",
}
_ALIKE = 4.0
"""Largest quotient of two worst errors that rounding explains."""
_LEAVES_UNWRITTEN = frozenset({"zeros-to-empty"})
_TOGETHER = frozenset({"sync", "warp"})
_STRAY = frozenset({"out_of_bounds", "misaligned"})
_WAITING = frozenset({"race", "deadlock", "barrier_divergence"})


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A mutant on which the devices differ. `cpu`, `gpu`: "wrong" (a witness proves it), "not proven", "stillborn", "identical"; `checkers`: those whose
    verdicts differ, as (CPU's, GPU's); `ends`: how its executions ended, on the CPU and on the GPU."""

    mutant: str
    program: str
    rule: str
    kind: str
    cpu: str
    gpu: str
    checkers: dict[str, tuple[str, str]]
    ends: tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class DeviceComparison:
    """`mutants`: those that both runs have; `agreement`: share of those outside `APART` on which witness and all verdicts agree; `witness_agreement`: the same
    for the witness alone. `executions`, `same_bits`: shared executions that ended well on both, and those whose outputs are bit for bit equal."""

    mutants: int
    compared: int
    agreement: float
    witness_agreement: float
    executions: int
    same_bits: int
    classes: dict[str, int]
    disagreements: tuple[Disagreement, ...]

    def document(self) -> dict[str, Any]:
        """As JSON types."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Run:
    records: Mapping[str, MutantRecord]
    problems: Mapping[str, ProblemRecord]
    checkers: Sequence[str]

    @classmethod
    def open(cls, run_dir: Path) -> _Run:
        store = Store.open(run_dir)
        try:
            records = {key: MutantRecord.model_validate(value) for key, value in store.items("mutant")}
            problems = {key: ProblemRecord.model_validate(value) for key, value in store.items("problem")}
            return cls(records, problems, store.meta()["checkers"])
        finally:
            store.close()

    def decided(self, name: str) -> MutantRecord:
        """The record that decides a mutant: its own, or that of the one which it repeats."""
        record = self.records[name]
        return self.records.get(record.duplicate_of, record) if record.status == "duplicate" else record


def compare(cpu_dir: Path, gpu_dir: Path) -> DeviceComparison:
    """Compare two runs of the same mutants under the same checkers. Raises RunDirectoryError when they are not."""
    cpu, gpu = _Run.open(cpu_dir), _Run.open(gpu_dir)
    if cpu.checkers != gpu.checkers:
        raise RunDirectoryError(f"{cpu_dir} and {gpu_dir} were run with other checkers: repeat one of them")
    shared = [name for name in cpu.records if name in gpu.records]
    if not shared:
        raise RunDirectoryError(
            f"{cpu_dir} and {gpu_dir} have no mutant in common: run both with the same sample and seed"
        )
    # The GPU's suites for both: it has one order of threads, and leaves out what it can not represent.
    bench = Bench(checker_room.resolve(gpu.checkers), gpu.problems)
    found = [_difference(name, cpu, gpu, bench) for name in shared]
    differing = [d for d in found if d is not None]
    classes = Counter(d.kind for d in differing)
    compared = len(shared) - sum(classes[kind] for kind in APART)
    rest = [d for d in differing if d.kind not in APART]
    bits = [pair for name in shared for pair in _pairs(cpu.decided(name), gpu.decided(name)) if _both_ok(pair)]
    return DeviceComparison(
        mutants=len(shared),
        compared=compared,
        agreement=1 - len(rest) / max(compared, 1),
        witness_agreement=1 - sum(d.cpu != d.gpu for d in rest) / max(compared, 1),
        executions=len(bits),
        same_bits=sum(one.output_hash == other.output_hash for one, other in bits),
        classes={kind: classes[kind] for kind in MEANINGS if classes[kind]},
        disagreements=tuple(differing),
    )


def _difference(name: str, cpu: _Run, gpu: _Run, bench: Bench) -> Disagreement | None:
    """What differs about a mutant, None when nothing does."""
    one, other = cpu.decided(name), gpu.decided(name)
    states = _state(one), _state(other)
    checkers: dict[str, tuple[str, str]] = {}
    if one.status == other.status == "ran":
        for checker in bench.checkers:
            pair: tuple[State, State] = (bench.verdict(one, checker).state, bench.verdict(other, checker).state)
            if pair[0] != pair[1] and "undetermined" not in pair:
                checkers[checker] = pair
    elif states[0] != states[1] and set(states) == {"identical", "not proven"}:
        return None  # both say: no difference seen
    if states[0] == states[1] and not checkers:
        return None
    record = cpu.records[name]
    return Disagreement(
        mutant=name,
        program=record.program,
        rule=record.made_by[0].rule,
        kind=_kind(one, other, gpu.problems.get(record.problem)),
        cpu=states[0],
        gpu=states[1],
        checkers=checkers,
        ends=(_ends(one), _ends(other)),
    )


def _state(record: MutantRecord) -> str:
    if record.status != "ran":
        return record.status
    return "wrong" if fate_of(record) == "witnessed" else "not proven"


def _kind(one: MutantRecord, other: MutantRecord, problem: ProblemRecord | None) -> str:
    """The first class that explains why the CPU (`one`) and the GPU (`other`) differ."""
    ends, gpu_ends = set(_ends(one)), set(_ends(other))
    schedule = one.witness.schedule if one.witness else "gpu"
    if one.status != "ran" or other.status != "ran":
        return "compiler"
    if one.host_differs:
        return HOST_DIFFERS
    if _TOGETHER & {pair.rule_class for pair in one.made_by} or ends & _WAITING or schedule != "gpu":
        return SYNCHRONISATION
    if any(hazard.outcome in _WAITING for hazard in (*one.hazards, *other.hazards)):
        return SYNCHRONISATION
    if ends & _STRAY and not gpu_ends & _STRAY:
        return "stray access"
    if gpu_ends - {"ok"} - ends:
        return "fault on the GPU"
    if ends - {"ok"} == {"timeout"} and gpu_ends == {"ok"}:
        return "slow on the CPU"
    if any(hazard.outcome == "uninitialised_read" for hazard in (*one.hazards, *other.hazards)) or any(
        pair.rule in _LEAVES_UNWRITTEN for pair in one.made_by
    ):
        return "uninitialised memory"
    if other.survivor_confirmed is False or (other.witness is not None and not other.witness.confirmed):
        return "nondeterministic"
    if any(hazard.outcome in _STRAY for hazard in (*one.hazards, *other.hazards)):
        return "stray access"
    recipes = {case.id: case.recipe for case in problem.cases} if problem else {}
    pairs = _pairs(one, other)
    unlike = [(a, b) for a, b in pairs if _both_ok((a, b)) and not _alike(a, b)]
    if unlike and all(recipes.get(a.case_id, "").startswith("subnormal") for a, _ in unlike):
        return "subnormals"
    return "unexplained" if unlike else "rounding"


def _ends(record: MutantRecord) -> tuple[str, ...]:
    """How executions ended in the order of threads that a GPU takes, that of the witness with them."""
    ends: list[str] = [e.outcome.status for e in record.executions if e.configuration.schedule == "gpu"]
    ends += [record.witness.status] if record.witness else []
    return tuple(dict.fromkeys(ends))


def _pairs(one: MutantRecord, other: MutantRecord) -> list[tuple[Execution, Execution]]:
    """Executions that both have."""
    found = {(e.case_id, e.configuration): e for e in other.executions}
    return [(e, found[e.case_id, e.configuration]) for e in one.executions if (e.case_id, e.configuration) in found]


def _both_ok(pair: tuple[Execution, Execution]) -> bool:
    return all(e.outcome.status == "ok" for e in pair)


def _alike(one: Execution, other: Execution) -> bool:
    """Whether two executions' errors differ by no more than rounding explains."""
    first, second = one.statistics, other.statistics
    if first["nonfinite"] != second["nonfinite"] or first.get("unwritten") != second.get("unwritten"):
        return False
    low, high = sorted((first["worst"], second["worst"]))
    return high <= max(_ALIKE * low, _ALIKE)


def write(comparison: DeviceComparison, path: Path) -> None:
    """Write a comparison as JSON."""
    path.write_text(json.dumps(comparison.document(), indent=1) + "\n")
