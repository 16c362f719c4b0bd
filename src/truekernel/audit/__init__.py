"""Measure checkers: plan, execute, kill matrix, statistics."""

from truekernel.audit.options import AuditOptions, Progress
from truekernel.audit.replaying import replay
from truekernel.audit.run import run_audit
from truekernel.audit.summarising import summarise
from truekernel.audit.summary import ReplayResult, Summary

__all__ = ["AuditOptions", "Progress", "ReplayResult", "Summary", "replay", "run_audit", "summarise"]
