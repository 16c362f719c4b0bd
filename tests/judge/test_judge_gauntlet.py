import pytest

from truekernel.corpus import problems
from truekernel.errors import UnknownNameError
from truekernel.judge.candidates import load_candidate
from truekernel.judge.gauntlet.catalogue import ATTACKS, FOLDER
from truekernel.judge.gauntlet.classes import CLASSES, NEEDS
from truekernel.judge.gauntlet.running import chosen, run_gauntlet


def test_every_attack_has_its_cheat_and_its_twin():
    assert sorted(attack.name for attack in ATTACKS) == sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
    for attack in ATTACKS:
        files = [load_candidate(attack.file(role), problems()[attack.problem]) for role in ("cheat", "twin")]
        assert files[0].digest != files[1].digest
        assert files[0].form == files[1].form
        assert attack.title and "." not in attack.title


def test_every_class_has_an_attack_or_says_what_one_would_need():
    assert sorted(CLASSES) == list(range(1, 56))
    assert {attack.number for attack in ATTACKS} == set(CLASSES) - set(NEEDS)
    assert ATTACKS[0].document()["class"] == {"number": 1, "name": CLASSES[1]}


def test_choosing():
    assert chosen([]) == list(ATTACKS)
    assert chosen(["zeros", "memory"])[0].name == "zeros"
    assert {attack.group for attack in chosen(["memory"])} == {"memory"}
    with pytest.raises(UnknownNameError, match="zeros"):
        chosen(["zeroes"])


def test_attacks_of_each_kind_are_caught_and_their_twins_cleared():
    tried = run_gauntlet(chosen(["identity", "beyond_the_end", "changed_and_right", "worn_kernel"]))
    assert [one.caught for one in tried] == [True] * 4, [one.document() for one in tried]
    assert [one.cleared for one in tried] == [True] * 4, [one.document() for one in tried]
    reasons = {one.attack.name: one.cheat.word for one in tried}
    assert reasons == {
        "identity": "wrong",
        "beyond_the_end": "hazard",
        "changed_and_right": "wrong",
        "worn_kernel": "wrong",
    }
