"""Host side of an exported file that runs on the CPU through this package: for evaluators on machines without a GPU."""

from __future__ import annotations

from truekernel.export.subject import Subject
from truekernel.model import Axes, Problem


def cpu_run(subject: Subject, problem: Problem, axes: Axes, text: str) -> str:
    """Statements that define `_tk_run` for a problem of the corpus. `text`: a Python literal of the source."""
    return "\n".join(
        (
            "import torch",
            "",
            "from truekernel import corpus as _tk_corpus",
            "from truekernel import model as _tk_model",
            "from truekernel.model.lengths import lengths as _tk_lengths",
            "from truekernel.trial.run_program import run_program as _tk_execute",
            "",
            f"_tk_problem = _tk_corpus.problems()[{problem.name!r}]",
            f"_tk_axes = {dict(axes)!r}",
            f"_tk_program = _tk_model.Program({subject.id!r}, {problem.name!r}, {text}, {subject.plan_source!r})",
            "",
            "",
            "class _TkKernelError(RuntimeError):",
            '    """The kernel does not compile, or does not run."""',
            "",
            "",
            "def _tk_run(given):",
            "    tensors = {",
            "        spec.name: tensor.to(getattr(torch, spec.dtype)).reshape(_tk_lengths(spec.shape, _tk_axes)).contiguous()",
            "        for spec, tensor in zip(_tk_problem.tensors, given)",
            "    }",
            f"    outcome, outputs = _tk_execute(_tk_program, _tk_problem, _tk_axes, tensors, fma={subject.fma})",
            "    if outputs is None:",
            '        raise _TkKernelError(f"{outcome.status}: {outcome.message}")',
            "    return outputs",
        )
    )
