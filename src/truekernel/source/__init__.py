"""Text with exact spans: CUDA (tree-sitter), launch plans (Python's ast), and edits."""

from truekernel.source.c_types import CType, canonical
from truekernel.source.device import DeviceSource, cut_kernels
from truekernel.source.edits import apply_edits
from truekernel.source.python_ast import PlanNode, PlanTree, parse_plan
from truekernel.source.signatures import KernelSignature, Parameter, TemplateParameter, kernel_signatures
from truekernel.source.solve import translate_solve
from truekernel.source.tree import Node, Tree, parse_cuda
from truekernel.source.types import declared_type, expression_type

__all__ = [
    "CType",
    "DeviceSource",
    "KernelSignature",
    "Node",
    "Parameter",
    "PlanNode",
    "PlanTree",
    "TemplateParameter",
    "Tree",
    "apply_edits",
    "canonical",
    "cut_kernels",
    "declared_type",
    "expression_type",
    "kernel_signatures",
    "parse_cuda",
    "parse_plan",
    "translate_solve",
]
