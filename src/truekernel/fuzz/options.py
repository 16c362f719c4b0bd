"""What a fuzzing run is told, and what it tells while it goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_POLICY = "uniform"


@dataclass(frozen=True, slots=True)
class FuzzOptions:
    """`operators`: globs over names, or families; () means all. `weights`: by glob. `budget`: seconds; `processor_time`: of each worker's processor instead of the clock.
    `policy`: a name of `policies.NAMES`; `start_from`: a directory that a policy saved itself in. `tier`: which oracles (`oracles.TIERS`). `coverage`: kinds.
    `knowledge`, `constraints`, `seeds`: what generation may use. `internal`: fuzz operators too that users do not call. `triage`: confirm and minimise failures.
    """

    library: str
    run_dir: Path
    operators: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    budget: float = 600.0
    processor_time: bool = False
    policy: str = DEFAULT_POLICY
    start_from: Path | None = None
    seed: int = 0
    workers: int = 1
    tier: str = "eager"
    coverage: tuple[str, ...] = ("functions", "overloads")
    knowledge: bool = True
    constraints: bool = True
    seeds: bool = True
    internal: bool = True
    triage: bool = True
    most_calls: int = 6
    resume: bool = False


@dataclass(frozen=True, slots=True)
class FuzzProgress:
    """Where a run stands, over all workers. `coverage`: how many things were seen, by kind; kinds are not added. `operators`: called validly at least once."""

    seconds: float
    budget: float
    executed: int = 0
    valid: int = 0
    refused: int = 0
    calls: int = 0
    operators: int = 0
    findings: int = 0
    public: int = 0
    coverage: Mapping[str, int] = field(default_factory=dict)

    @property
    def cases_a_second(self) -> float:
        """Cases a second of the clock."""
        return self.executed / self.seconds if self.seconds else 0.0
