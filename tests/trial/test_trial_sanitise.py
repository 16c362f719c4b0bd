from types import SimpleNamespace

import torch

from truekernel.execution import cuda
from truekernel.execution.cuda.sanitiser import Sanitised
from truekernel.execution.cuda.sanitiser_log import Finding
from truekernel.model import BufferArg, BufferSpec, Launch, LaunchPlan
from truekernel.trial.devices import Cpu, Source, Watched, device

PLAN = LaunchPlan(
    (BufferSpec("x", (4,), "float32", "input"), BufferSpec("y", (4,), "float32", "empty")),
    (Launch("k", (1, 1, 1), (4, 1, 1), (BufferArg(0), BufferArg(1))),),
    (1,),
)
INPUTS = {"x": torch.ones(4)}


def watched(text):
    return Watched(Source(text, ("k",)), (PLAN, PLAN), (INPUTS, INPUTS))


def test_findings_become_outcomes_of_their_program(monkeypatch):
    def compile_many(sources, kernels, options, *, processes):
        assert options.checked
        return SimpleNamespace(members={number: text for number, text in sources.items() if text != "broken"})

    def sanitise(jobs):
        assert [job.library for job in jobs] == ["good", "good", "bad", "bad"]
        finding = Finding(3, "memcheck", "out_of_bounds", "Invalid write of size 4", line=7, buffer=1, offset=16)
        racing = Finding(3, "racecheck", "race", "Race reported", line=3)
        return [Sanitised(), Sanitised(), Sanitised(), Sanitised([finding, racing])]

    monkeypatch.setattr(cuda, "compile_many", compile_many)
    monkeypatch.setattr(cuda, "sanitise", sanitise)
    programs = [watched("good"), watched("broken"), watched("bad")]
    good, broken, bad = device("cuda", sanitise=True).by_tool(programs)
    assert good == broken == []
    assert [(o.status, o.message, o.where.line, o.where.buffer, o.where.offset) for o in bad] == [
        ("out_of_bounds", "memcheck: Invalid write of size 4", 7, "y", 16),
        ("race", "racecheck: Race reported", 3, None, None),
    ]


def test_nothing_is_watched_unless_asked_for():
    assert device("cuda").by_tool([watched("any")]) == []
    assert Cpu().by_tool([watched("any")]) == []
