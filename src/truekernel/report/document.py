"""The summary as a JSON document."""

from __future__ import annotations

from truekernel.audit.summary import Summary


def json_document(summary: Summary) -> str:
    """JSON text, two blanks of indent, newline at the end; `schema_version` says how to read it. `Summary.model_json_schema()` is its schema."""
    return summary.model_dump_json(indent=2) + "\n"
