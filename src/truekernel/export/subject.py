"""What can be exported."""

from __future__ import annotations

from dataclasses import dataclass

from truekernel.model import Program


@dataclass(frozen=True, slots=True)
class Subject:
    """Source and launch plan of a program, a mutant or an honest variant. `title`: one line that says what it is; `flags`: compile options ("fma=off")."""

    id: str
    title: str
    problem: str
    source: str
    plan_source: str
    flags: tuple[str, ...] = ()

    @classmethod
    def of(cls, program: Program) -> Subject:
        """A program as written."""
        title = f"program {program.name} of problem {program.problem}"
        return cls(program.name, title, program.problem, program.source, program.plan_source)

    @property
    def fma(self) -> bool:
        """Whether a * b + c may be contracted."""
        return "fma=off" not in self.flags
