"""Published checkers and our own, one file each: suite + judge."""

from truekernel.checkers.checker import Checker, Judgement, Verdict, accepts, fault
from truekernel.checkers.external import ExternalChecker
from truekernel.checkers.external_command import CommandChecker, command_name
from truekernel.checkers.registry import GROUPS, checkers, resolve

__all__ = [
    "GROUPS",
    "Checker",
    "CommandChecker",
    "ExternalChecker",
    "Judgement",
    "Verdict",
    "accepts",
    "checkers",
    "command_name",
    "fault",
    "resolve",
]
