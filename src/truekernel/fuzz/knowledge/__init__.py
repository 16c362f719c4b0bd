"""Past bugs of deep-learning libraries that are public, and what they suggest trying.

It makes inputs, never judges them: `load(enabled=False)` switches it off.
"""

from truekernel.fuzz.knowledge.base import Knowledge, Pattern, load, tags
from truekernel.fuzz.knowledge.report import REPORT_KINDS, Report, ReportKind

__all__ = ["REPORT_KINDS", "Knowledge", "Pattern", "Report", "ReportKind", "load", "tags"]
