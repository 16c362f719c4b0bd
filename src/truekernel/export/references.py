"""A reference in the form of a KernelBench problem file, for evaluators that want one: it calls ours, so it needs this package."""

from __future__ import annotations

from truekernel.errors import BadInputError
from truekernel.export.weights import weights_of
from truekernel.model import Axes, Case, Problem


def model(problem: Problem, axes: Axes, *, recipe: str = "official", seed: int = 0) -> str:
    """Text of a file with `Model`, `get_inputs` and `get_init_inputs` for a problem of the corpus at sizes `axes`.

    Inputs are those of our generator; each call of get_inputs draws the next seed, starting from `seed`. Weights are drawn as exported candidates draw theirs. Raises BadInputError for a
    problem that is not of the corpus.
    """
    from truekernel import corpus

    if problem.name not in corpus.problems():
        raise BadInputError(f"'{problem.name}' is not a problem of the corpus: its own file is its reference")
    case = Case.of(problem.name, axes, recipe, seed)
    drawn = weights_of(problem, axes)
    names = [spec.name for spec in problem.parameters]
    lines = [
        f'"""Reference of the problem {problem.name}: {problem.summary}"""',
        "",
        "import itertools",
        "",
        "import torch",
        "",
        "from truekernel import cases, corpus, model",
        "",
        f"_problem = corpus.problems()[{problem.name!r}]",
        f"_axes = {dict(case.axes)!r}",
        f"_seeds = itertools.count({seed})",
        "",
        "",
        "class Model(torch.nn.Module):",
        "    def __init__(self):",
        "        super().__init__()",
        *(f"        {weight.statement()}" for weight in drawn),
        "",
        "    def forward(self, *given):",
        "        tensors = dict(zip((spec.name for spec in _problem.inputs), given))",
        *(
            f"        tensors[{name!r}] = self.{weight.name}.detach()"
            for name, weight in zip(names, drawn, strict=True)
        ),
        "        outputs = _problem.reference(tensors, _axes)",
        "        return outputs[0] if len(outputs) == 1 else outputs",
        "",
        "",
        "def get_inputs():",
        f"    case = model.Case.of(_problem.name, _axes, {recipe!r}, next(_seeds))",
        "    made = cases.make_inputs(_problem, case)",
        "    return [made[spec.name] for spec in _problem.inputs]",
        "",
        "",
        "def get_init_inputs():",
        "    return []",
    ]
    return "\n".join(lines) + "\n"
