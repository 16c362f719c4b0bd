"""Where two devices disagree, on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from truekernel.audit.device_comparison import APART, MEANINGS, DeviceComparison

_MOST = 20


def print_comparison(found: DeviceComparison, out: Console) -> None:
    """Agreement, classes of disagreement with their meaning, and the first disagreements outside the classes that must differ."""
    share = f"{100 * found.agreement:.1f} % of {found.compared}"
    out.print(f"CPU and GPU agree on {share} mutants (witness alone: {100 * found.witness_agreement:.1f} %);")
    out.print(f"{found.mutants - found.compared} more belong to classes that must differ: {', '.join(APART)}.")
    out.print(f"{found.same_bits} of {found.executions} shared executions gave the same bits.")
    if found.classes:
        table = Table("class", "mutants", "what it is", box=None)
        for kind, count in found.classes.items():
            table.add_row(kind, str(count), MEANINGS[kind])
        out.print(table)
    rest = [d for d in found.disagreements if d.kind not in APART]
    if rest:
        table = Table("mutant", "program", "rule", "class", "CPU", "GPU", "verdicts (CPU/GPU)", box=None)
        for d in rest[:_MOST]:
            verdicts = ", ".join(f"{name} {one}/{other}" for name, (one, other) in d.checkers.items())
            table.add_row(d.mutant, d.program, d.rule, d.kind, d.cpu, d.gpu, verdicts or "the same")
        out.print(table)
        if len(rest) > _MOST:
            out.print(f"... and {len(rest) - _MOST} more in comparison.json")
