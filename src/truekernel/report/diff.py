"""A unified diff as HTML."""

from __future__ import annotations

from markupsafe import Markup, escape

_KINDS = (("+++", "file"), ("---", "file"), ("@@", "hunk"), ("+", "add"), ("-", "del"))


def diff_html(diff: str) -> Markup:
    """A `<pre>` in which each line says by its class, and by its own first character, what it is."""
    lines = []
    for line in diff.rstrip("\n").split("\n"):
        kind = next((name for prefix, name in _KINDS if line.startswith(prefix)), "")
        lines.append(Markup('<span class="{}">{}</span>').format(kind, line) if kind else escape(line))
    return Markup('<pre class="diff" tabindex="0">{}</pre>').format(Markup("\n").join(lines))
