"""The records of the project: frozen, typed, no I/O."""

from truekernel.model.case import Case
from truekernel.model.execution import (
    FILLS,
    SCHEDULES,
    Configuration,
    Execution,
    Fill,
    Outcome,
    Schedule,
    Status,
    Where,
)
from truekernel.model.mutant import RULE_CLASSES, Edit, MadeBy, Mutant, RuleClass, Site
from truekernel.model.plan import ITEM_BYTES, BufferArg, BufferSpec, Dim3, Launch, LaunchPlan, ScalarArg
from truekernel.model.problem import (
    FAMILIES,
    REAL,
    Axes,
    AxisSpec,
    Domain,
    DType,
    OutputSpec,
    Problem,
    Tensors,
    TensorSpec,
)
from truekernel.model.program import Program

__all__ = [
    "FAMILIES",
    "FILLS",
    "ITEM_BYTES",
    "REAL",
    "RULE_CLASSES",
    "SCHEDULES",
    "Axes",
    "AxisSpec",
    "BufferArg",
    "BufferSpec",
    "Case",
    "Configuration",
    "DType",
    "Dim3",
    "Domain",
    "Edit",
    "Execution",
    "Fill",
    "Launch",
    "LaunchPlan",
    "MadeBy",
    "Mutant",
    "Outcome",
    "OutputSpec",
    "Problem",
    "Program",
    "RuleClass",
    "ScalarArg",
    "Schedule",
    "Site",
    "Status",
    "TensorSpec",
    "Tensors",
    "Where",
]
