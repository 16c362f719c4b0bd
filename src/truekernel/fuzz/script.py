"""A finding as a script that a maintainer can paste, and as the text of an issue."""

from __future__ import annotations

from pathlib import Path

from truekernel.fuzz.library import Library
from truekernel.fuzz.records import Finding


def script(finding: Finding, library: Library) -> str:
    """A Python script that needs only the library. It fails (signal, exception, assertion) where the finding does, and ends with 0 where it is mended."""
    head = [
        f"# {finding.title}",
        f"# {', '.join(f'{name} {value}' for name, value in finding.versions.items() if name in (library.name, 'python', 'capability'))}",
    ]
    head += [
        f"# expected: {finding.expected}",
        f"# observed: {' '.join(finding.observed.split())[:300]}",
        f"import {library.name}",
    ]
    if library.name == "torch":
        head.append("torch.set_num_threads(1); torch.manual_seed(20210)")
    head += getattr(library, "preamble", ())
    if finding.oracle == "execution":
        return "\n".join([*head, *library.script(finding.case)]) + "\n"
    oracle = next(one for one in library.oracles() if one.name == finding.oracle)
    return "\n".join([*head, *oracle.script(finding.case)]) + "\n"


def issue(finding: Finding, library: Library) -> str:
    """Markdown for an issue tracker."""
    versions = "\n".join(f"- {name}: {value}" for name, value in finding.versions.items())
    return f"""# {finding.title}

### What is wrong

{finding.observed.strip()[:1500]}

Expected: {finding.expected}.

### How to see it

```python
{script(finding, library).strip()}
```

{_input(finding)} It failed in {finding.reproduced} of {finding.reproduced} fresh processes.

### Versions

{versions}
"""


def _input(finding: Finding) -> str:
    where = "a public function" if finding.public else "an operator of the dispatcher that users do not call directly"
    kind = (
        "arguments of ordinary size" if finding.valid_input else "arguments that should be refused with a clear message"
    )
    return f"This is {where}, with {kind}."


def file_name(finding: Finding) -> str:
    """A name for the files of a finding: letters, digits, dots and dashes."""
    return "".join(sign if sign.isalnum() or sign in "-._" else "-" for sign in finding.key)[:120]


def export(findings: list[Finding], library: Library, folder: Path, *, issues: bool = False) -> list[Path]:
    """Write a script for each finding, or an issue's text; what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for finding in findings:
        path = folder / f"{file_name(finding)}.{'md' if issues else 'py'}"
        path.write_text(issue(finding, library) if issues else script(finding, library), encoding="utf-8")
        written.append(path)
    return written
