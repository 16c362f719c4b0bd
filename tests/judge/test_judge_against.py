"""The gauntlet against somebody else's evaluator."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from truekernel.checkers import command_name
from truekernel.cli.application import main
from truekernel.errors import BadInputError
from truekernel.judge.gauntlet.against import run_against
from truekernel.judge.gauntlet.running import chosen

EVALUATOR = f"{sys.executable} {Path(__file__).with_name('naive_eval.py')} {{reference}} {{candidate}}"


def test_a_naive_evaluator_is_fooled_and_its_honest_candidates_pass() -> None:
    attacks = chosen(["zeros", "no_affine", "tf32_inside"])
    found = {asked.attack.name: asked for asked in run_against(command_name(EVALUATOR), attacks)}
    assert {name for name, asked in found.items() if asked.fooled} == {"zeros", "no_affine", "tf32_inside"}
    assert all(asked.cleared for asked in found.values()), found


def test_a_kernel_in_cuda_reaches_the_evaluator() -> None:
    (found,) = run_against(command_name(EVALUATOR), chosen(["stale_shared"]))
    assert found.cleared, found.twin
    assert found.cheat.verdict in ("accept", "reject")


def test_a_cheat_that_ends_the_process_is_no_acceptance() -> None:
    (found,) = run_against(command_name(EVALUATOR), chosen(["nan_wildcard"]))
    assert found.caught
    assert found.cleared


def test_an_evaluator_that_rejects_everything_flags_the_twins() -> None:
    (found,) = run_against(command_name(f"{sys.executable} -c exit(1) {{candidate}}"), chosen(["zeros"]))
    assert found.caught
    assert not found.cleared


def test_a_broken_evaluator_decides_nothing() -> None:
    (found,) = run_against(command_name(f"{sys.executable} -c import(nothing) {{candidate}}"), chosen(["zeros"]))
    assert (found.caught, found.fooled, found.cleared) == (False, False, False)


def test_an_evaluator_of_outputs_is_refused() -> None:
    command = command_name(f"{sys.executable} {{reference_output}} {{candidate_output}}")
    with pytest.raises(BadInputError, match="attacks are files"):
        run_against(command, chosen(["zeros"]))


def test_the_command_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gauntlet", "--attack", "zeros", "--against", EVALUATOR, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["fooled"], said["caught"], said["cleared"], said["of"]) == (1, 0, 1, 1)


def test_a_command_without_a_kernel_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gauntlet", "--attack", "zeros", "--against", sys.executable]) == 2
    assert "--against: the command gets no kernel" in capsys.readouterr().err
