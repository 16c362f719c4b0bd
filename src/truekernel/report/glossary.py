"""What names in the report stand for: checkers and recipes of inputs."""

from __future__ import annotations

from truekernel.audit.scores import CheckerScore
from truekernel.audit.summary import Summary
from truekernel.cases.grammar import OFFICIAL
from truekernel.cases.recipes import recipes
from truekernel.checkers.external_command import is_command

_CHECKERS = {
    "kernelbench@1e-2": "KernelBench's correctness check in its first versions: five draws of the official inputs, compared by torch.allclose within 1e-2.",
    "kernelbench@1e-4": "KernelBench's check as it is today: the same inputs, within 1e-4 in float32 and 1e-2 in half precision.",
    "kernelbench-verified": "KernelBench-Verified's hidden tests: the official inputs times 1, 3, 0.01 and -1, within 1e-3 in float32 and 1e-2 in half precision.",
    "exact-official": "Ours, for comparison: the official inputs with our strict tolerance, so that the two halves of a checker's gain can be told apart.",
    "truekernel": "Our checker: about ten cases over value recipes and shapes, poisoned outputs, an error bound for each element from float64.",
}
GRAMMAR = (
    "A recipe of inputs reads base[*factor][+offset][&parameters][@place]: values are drawn from the base, times the factor, plus the offset; with &parameters the "
    "problem's parameters (weights, biases) are drawn from the base too, and @place draws the tensor at that place alone from it, counted from 0."
)


def checker(score: CheckerScore) -> str:
    """One line on what a checker is."""
    if is_command(score.name):
        return "A command of the user's, asked for its verdict on every kernel."
    if score.users_own:
        return "A callable of the user's, given the reference's and the candidate's output on the five official cases."
    return _CHECKERS.get(score.name) or f"{score.inputs}; {score.tolerance}."


def bases(summary: Summary) -> dict[str, str]:
    """The base recipes of the checkers' cases and of the survivors' witnesses, with what they draw."""
    texts = [text for column in summary.kill_matrix.columns for text in column.detail.split(" / ")]
    texts += [survivor.witness.recipe for survivor in summary.survivors]
    used = {base(text) for text in texts}
    known = {OFFICIAL: "every tensor as the problem's authors draw it"} | {
        r.name: r.description for r in recipes().values()
    }
    return {name: description for name, description in known.items() if name in used}


def base(recipe: str) -> str:
    """The base of a recipe string."""
    for mark in "*+&@":
        recipe = recipe.partition(mark)[0]
    return recipe
