"""A user's own command as checker: verdicts, and what is no verdict."""

import json
import shlex
import sys
import time

import pytest
import torch

from truekernel import corpus
from truekernel.checkers import command_name, resolve
from truekernel.checkers.external_command import load_command
from truekernel.errors import BadInputError
from truekernel.export import Subject
from truekernel.model import Case, Configuration, Execution, Outcome

OK = Execution("c", Configuration(), Outcome("ok"), {"elements": 1.0})
PLACES = "{reference_output} {candidate_output}"


def command(tmp_path, body, places=PLACES, seconds=60.0):
    """A checker whose command is a Python script with this body; `a` and `b` are its two files."""
    script = tmp_path / "my_eval.py"
    script.write_text(f"import json, sys\na, b = sys.argv[1:3]\n{body}\n")
    return load_command(command_name(f"{shlex.quote(sys.executable)} {shlex.quote(str(script))} {places}", seconds))


@pytest.mark.parametrize(
    ("body", "verdict", "why"),
    [
        ("", "accept", ""),
        ("sys.exit(1)", "reject", "status 1"),
        ("print('off by one', file=sys.stderr); sys.exit(1)", "reject", "off by one"),
        ("print(json.dumps({'correct': True})); sys.exit(1)", "accept", ""),
        (
            "print('{\"correct\": true}'); print(json.dumps({'correct': False, 'why': 'row 3'})); print('bye')",
            "reject",
            "row 3",
        ),
        ("print(json.dumps({'compiled': True, 'correctness': False}))", "reject", "the command says no"),
        ("print(json.dumps({'verdict': 'PASSED'}))", "accept", ""),
        ("print(json.dumps({'verdict': 'wrong'}))", "reject", ""),
        ("print(json.dumps({'verdict': 'no idea'}))", "undetermined", "no idea"),
        ("print(json.dumps({'speed': 3})); print('{not json')", "accept", ""),
        ("1 / 0", "undetermined", "ZeroDivisionError"),
        ("sys.exit(2)", "undetermined", "status 2"),
        ("raise RuntimeError('CUDA error: an illegal memory access')", "reject", "illegal memory access"),
        ("import os; os.kill(os.getpid(), 9)", "undetermined", "signal 9"),
    ],
)
def test_verdicts(tmp_path, body, verdict, why):
    checker = command(tmp_path, body)
    judgement = checker.opinion([torch.ones(2)], [torch.ones(2)], OK)
    assert judgement.verdict == verdict
    assert why in judgement.why


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path):
    body = "import subprocess, time\nsubprocess.Popen(['sleep', '60'])\ntime.sleep(60)"
    start = time.monotonic()
    judgement = command(tmp_path, body, seconds=1.0).opinion([torch.ones(2)], [torch.ones(2)], OK)
    assert (judgement.verdict, judgement.why) == ("undetermined", "no end within 1 seconds")
    assert time.monotonic() - start < 20


def test_it_sees_the_outputs(tmp_path):
    body = (
        "import torch\nx, y = torch.load(a), torch.load(b)\nprint(json.dumps({'correct': bool(torch.allclose(x, y))}))"
    )
    checker = command(tmp_path, body)
    right, wrong = torch.arange(3.0), torch.arange(3.0) + 1
    assert checker.opinion([right], [right.clone()], OK).verdict == "accept"
    assert checker.opinion([right], [wrong], OK).verdict == "reject"
    two = command(tmp_path, "import torch\nsys.exit(0 if isinstance(torch.load(a), tuple) else 1)")
    assert two.opinion([right, wrong], [right, wrong], None).verdict == "accept"


def test_faults_reject_without_a_question(tmp_path):
    crashed = Execution("c", Configuration(), Outcome("crash", message="of the kernel"))
    assert command(tmp_path, "").opinion([torch.ones(2)], (), crashed).verdict == "reject"


EVALUATE = """
import torch
names, others = {}, {}
exec(open(a).read(), names)
exec(open(b).read(), others)
given = names["get_inputs"]()
right = torch.allclose(names["Model"]()(*given), others["ModelNew"]()(*given), rtol=1e-4, atol=1e-6)
print(json.dumps({"correct": bool(right)}))
"""


def test_it_judges_files_from_source(tmp_path):
    checker = command(tmp_path, EVALUATE, "{reference} {candidate}")
    program, problem = corpus.programs()["sum_dim"], corpus.problems()["sum_dim"]
    axes = {"B": 2, "R": 40, "S": 3}
    good = Subject.of(program)
    assert checker.needs_files
    assert checker.judge_subject(good, problem, axes, host="cpu").verdict == "accept"
    for before, after, why in (("s0 +=", "s0 -=", "the command says no"), ("s0 +=", "s0 +=;", "the kernel fails")):
        assert before in program.source
        bad = Subject("bad", "bad", "sum_dim", program.source.replace(before, after), program.plan_source)
        judgement = checker.judge_subject(bad, problem, axes, host="cpu")
        assert judgement.verdict == "reject"
        assert why in judgement.why
    assert checker.opinion([torch.ones(2)], [torch.ones(2)], OK).verdict == "undetermined"
    assert len(checker.suite(problem)) == 1


def test_its_name_makes_the_same_checker_in_every_process(tmp_path):
    checker = command(tmp_path, "", seconds=7.5)
    (again,) = resolve([checker.name]).values()
    assert again == checker
    assert again.seconds == 7.5
    assert checker.judge(Case.of("sum_dim", {}, "official", 1), [OK]).verdict == "undetermined"
    assert len(checker.suite(corpus.problems()["sum_dim"])) == 5


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "give a command"),
        ("python eval.py", "gets no kernel"),
        ("python eval.py {kandidate}", "no placeholder {kandidate}"),
        ("python eval.py {candidate} {reference_output}", "not both"),
        ("no_such_program_here {candidate}", "no program 'no_such_program_here'"),
        ("python 'eval.py {candidate}", "can't be read"),
        ("python eval.py {candidate", "can't be read"),
    ],
)
def test_bad_commands(text, why):
    with pytest.raises(BadInputError) as caught:
        load_command(command_name(text))
    assert why in str(caught.value)
    assert json.dumps(str(caught.value)).count("\\n") == 0
