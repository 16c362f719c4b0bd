"""Text with exact spans: CUDA (tree-sitter), launch plans (Python's ast), and edits."""

from truekernel.source.edits import apply_edits
from truekernel.source.python_ast import PlanNode, PlanTree, parse_plan
from truekernel.source.tree import Node, Tree, parse_cuda

__all__ = ["Node", "PlanNode", "PlanTree", "Tree", "apply_edits", "parse_cuda", "parse_plan"]
