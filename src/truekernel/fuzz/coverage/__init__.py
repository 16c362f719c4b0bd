"""What a case reached: native functions, dispatched operator overloads, Python lines. One file each, behind `policy.CoverageSource`; never added together."""

from truekernel.fuzz.coverage.lines import PythonLines
from truekernel.fuzz.coverage.native import NativeFunctions
from truekernel.fuzz.coverage.overloads import Overloads

__all__ = ["NativeFunctions", "Overloads", "PythonLines"]
