"""Write the reference pages from the package itself: `python docs/reference/build.py` (or `make docs`)."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rich.console import Console

from truekernel import mutation
from truekernel.audit.summary import SCHEMA_VERSION, ReplayResult, Summary
from truekernel.cli.application import COMMANDS, application

HERE = Path(__file__).parent


def commands() -> str:
    """Every command's help text."""
    parts = [
        "# Commands",
        "",
        "Options come from defaults, then from `[tool.truekernel.COMMAND]` in `pyproject.toml`, then from the command line. "
        "People's output and `--json` documents go to standard output, notes and progress to standard error. Output is plain when it is not a terminal or when "
        "`NO_COLOR` is set.",
        "",
        "| exit code | means |",
        "|---|---|",
        "| 0 | the answer is good |",
        "| 1 | the answer is bad: a miss rate over `--fail-over`, a replay that differs, a machine that can't run audits |",
        "| 2 | the call was wrong; one line says what and how to mend it |",
        "| 3 | the machine failed, never blamed on a kernel |",
    ]
    for command in COMMANDS:
        out = io.StringIO()
        console = Console(file=out, width=110, color_system=None)
        application()([command.__name__, "--help"], console=console)
        text = out.getvalue().split("Exit codes:")[0]
        parts += [
            "",
            f"## truekernel {command.__name__}",
            "",
            "```",
            "\n".join(map(str.rstrip, text.strip().splitlines())),
            "```",
        ]
    return "\n".join(parts) + "\n"


def summary() -> str:
    """The fields of the JSON documents, from the records' docstrings."""
    parts = [
        "# The JSON documents",
        "",
        f"`truekernel audit --json` and `truekernel report RUN --json` print a `Summary`, schema version {SCHEMA_VERSION}; `truekernel replay MUTANT --json` prints a "
        "`ReplayResult`. In Python, `truekernel.Summary.model_validate_json(text)` reads the first, and `truekernel.Summary.model_json_schema()` is its JSON schema. Shares are between 0 and 1.",
    ]
    schemas = [Summary.model_json_schema(), ReplayResult.model_json_schema()]
    shown: dict[str, dict[str, Any]] = {}
    for schema in schemas:
        shown[schema["title"]] = schema
        shown |= schema.get("$defs", {})
    for name, schema in shown.items():
        parts += [
            "",
            f"## {name}",
            "",
            " ".join(schema.get("description", "").split()),
            "",
            "| field | type | meaning |",
            "|---|---|---|",
        ]
        for field, spec in schema["properties"].items():
            meaning = " ".join(spec.get("description", "").split()).replace("|", "\\|")
            parts.append(f"| `{field}` | {_type(spec)} | {meaning} |")
    return "\n".join(parts) + "\n"


def _type(spec: dict[str, Any]) -> str:
    if "$ref" in spec:
        name = spec["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in spec:
        return " or ".join(_type(one) for one in spec["anyOf"])
    if "enum" in spec:
        return " or ".join(f'"{value}"' for value in spec["enum"])
    if spec.get("type") == "array":
        return (
            f"list of {_type(spec['items'])}"
            if "items" in spec
            else f"list of {len(spec['prefixItems'])} {_type(spec['prefixItems'][0])}"
        )
    if spec.get("type") == "object":
        return f"object of {_type(spec['additionalProperties'])}"
    return str(spec.get("type", "any"))


def rules() -> str:
    """All rules by class, with origin."""
    parts = ["# Mutation rules", "", "`truekernel rules NAME` shows a rule with its examples."]
    everything = [*mutation.rules().values(), *mutation.benign_rules().values()]
    seen = ""
    for rule in everything:
        if rule.rule_class != seen:
            seen = rule.rule_class
            parts += ["", f"## {seen}", "", "| rule | what it does | source |", "|---|---|---|"]
        cells = (f"`{rule.name}`", rule.description, rule.source)
        parts.append("| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(parts) + "\n"


PAGES = {"commands.md": commands, "summary.md": summary, "rules.md": rules}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), encoding="utf-8")
