"""Reports of an audit: on the terminal, as one HTML page, as JSON. All are made from a `Summary` alone."""

from truekernel.report.document import json_document
from truekernel.report.html import html, write_html
from truekernel.report.replay import print_replay
from truekernel.report.terminal import print_summary

__all__ = ["html", "json_document", "print_replay", "print_summary", "write_html"]
