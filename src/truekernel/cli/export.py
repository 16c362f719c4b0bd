"""`truekernel export`: a kernel as a file for somebody else's evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from truekernel.cli.output import console

if TYPE_CHECKING:
    from truekernel.export import Subject


def export(
    name: str,
    /,
    *,
    form: Annotated[Literal["kernelbench", "reference"], Parameter(name="--as")] = "kernelbench",
    run: Path | None = None,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    axes: Annotated[list[str] | None, Parameter(negative="")] = None,
    host: Literal["nvrtc", "load_inline", "cpu"] = "nvrtc",
    kernelbench: Path | None = None,
) -> int:
    """Write a mutant, an honest variant or a program as a KernelBench candidate: a Python file with `class ModelNew`.

    Parameters
    ----------
    name
        Name of a program, or id of a mutant or honest variant.
    form
        kernelbench: the candidate. reference: the problem as a file with `Model`, for evaluators that want one; it needs this package.
    run
        Run directory that the id is from. Default: look through all programs and rules, which takes a minute.
    output
        File to write. Default: standard output.
    axes
        Lengths such as rows=16, where they are not the official ones. May be repeated, and hold several with commas.
    host
        nvrtc: compiles in milliseconds when it is imported. load_inline: C++ host code, as candidates usually have. cpu: runs
        on the CPU through this package, for evaluators on machines without a GPU.
    kernelbench
        Your own checkout of KernelBench: draw weights in the order of its problem file, so that its seeds give the same values.
    """
    from truekernel import corpus
    from truekernel.audit.subjects import find_subject
    from truekernel.errors import BadInputError
    from truekernel.export import model, model_new

    if output is not None and output.is_dir():
        raise BadInputError(f"--output {output}: a directory: name a file")
    subject = find_subject(name, run)
    problem = corpus.problems()[subject.problem]
    lengths = _lengths(axes or (), problem.official_axes())
    if form == "reference":
        text = model(problem, lengths)
    elif kernelbench is None:
        text = model_new(subject, problem, lengths, host=host)
    else:
        text = _bound(subject, lengths, host, kernelbench)
    if output is None:
        print(text, end="")
        return 0
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")
    console(error=True).print(f"{subject.title}: {output}", soft_wrap=True)
    return 0


def _bound(subject: Subject, lengths: dict[str, int], host: str, checkout: Path) -> str:
    from truekernel import corpus
    from truekernel.corpus.kernelbench import load
    from truekernel.errors import BadInputError
    from truekernel.export.bound import bound_model_new

    problem = corpus.problems()[subject.problem]
    if not problem.kernelbench:
        raise BadInputError(f"'{problem.name}' is bound to no problem of KernelBench: export it without --kernelbench")
    loaded = load(checkout, ids=[problem.kernelbench])
    if not loaded.adapted:
        why = loaded.refused[0].why if loaded.refused else "the checkout has no such problem"
        raise BadInputError(f"{problem.kernelbench} of {checkout}: {why}")
    return bound_model_new(subject, problem, loaded.adapted[problem.kernelbench], lengths, host=host)


def _lengths(given: list[str] | tuple[str, ...], official: dict[str, int]) -> dict[str, int]:
    from truekernel.errors import BadInputError

    result = dict(official)
    for part in (part.strip() for text in given for part in text.split(",")):
        name, _, value = part.partition("=")
        if name not in official or not value.isdigit():
            raise BadInputError(f"--axes {part}: write NAME=LENGTH with a name of {', '.join(official)}")
        result[name] = int(value)
    return result
