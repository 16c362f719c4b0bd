"""All findings of a run, again: still there, mended, or otherwise wrong. For another version of the library this is what changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from truekernel.errors import BadInputError
from truekernel.fuzz import libraries
from truekernel.fuzz.executor import Executor
from truekernel.fuzz.records import Finding, Outcome, document, parsed

Verdict = Literal["fails", "mended", "otherwise"]


@dataclass(frozen=True, slots=True)
class Replayed:
    """One finding replayed. `otherwise`: it fails, but not as it did."""

    finding: Finding
    verdict: Verdict
    outcome: Outcome

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "key": self.finding.key,
            "title": self.finding.title,
            "verdict": self.verdict,
            "outcome": document(self.outcome),
        }


def replay(findings: Sequence[Finding], show: Callable[[Replayed], None] | None = None) -> list[Replayed]:
    """Run every finding's smallest case in a process that the one before has not harmed. Raises BadInputError where the library is not installed."""
    results: list[Replayed] = []
    for name in sorted({finding.case.library for finding in findings}):
        library = libraries.load(name)
        known = {operator.name for operator in library.operators()}
        with Executor(library, oracles=tuple(oracle.name for oracle in library.oracles())) as executor:
            for finding in (one for one in findings if one.case.library == name):
                if any(call.operator not in known for call in finding.case.calls):
                    outcome = Outcome("refused", error="AttributeError", message="this version has no such operator")
                else:
                    outcome = executor.run(
                        finding.case, () if finding.oracle == "execution" else (finding.oracle,)
                    ).worst
                replayed = Replayed(finding, verdict(finding, outcome), outcome)
                results.append(replayed)
                if show:
                    show(replayed)
    return results


def verdict(finding: Finding, outcome: Outcome) -> Verdict:
    """What an outcome says of a finding."""
    if not outcome.failed:
        return "mended"
    return "fails" if outcome.kind == finding.kind and outcome.oracle == finding.oracle else "otherwise"


def load_findings(path: Path) -> list[Finding]:
    """Findings from a run directory, or from the JSON document that a run prints or writes. Raises BadInputError or RunDirectoryError for what is neither."""
    from truekernel.fuzz.campaign import stored_findings

    if path.is_dir():
        return stored_findings(path)
    import json

    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        findings = [parsed(one) for one in table["findings"]]
    except FileNotFoundError:
        raise BadInputError(f"{path} does not exist: give a run directory, or findings.json of a run") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInputError(
            f"{path} holds no findings ({type(error).__name__}): give a run directory, or findings.json of a run"
        ) from None
    if not all(isinstance(one, Finding) for one in findings):
        raise BadInputError(f"{path} holds no findings: give a run directory, or findings.json of a run")
    return findings
