from synthetic_summary import make_summary

from truekernel.report import hazards


def hazard(**changes):
    plain = {"thread": None, "block": None, "line": None, "buffer": None, "offset": None, "schedule": "gpu"}
    return make_summary(per_rule=1).hazards[0].model_copy(update=plain | changes)


def test_one_group_a_mutant():
    found = make_summary(per_rule=2).hazards
    groups = hazards.by_mutant((*found, *found))
    assert [group.mutant for group in groups] == list(dict.fromkeys(h.mutant for h in found))
    assert sum(hazards.outcomes(groups).values()) == len(groups)


def test_bytes_of_one_buffer_become_one_line():
    same = [
        hazard(outcome="out_of_bounds", message=f"wrote behind buffer 'empty2' at byte {b}") for b in (960, 4, 300, 8)
    ]
    (group,) = hazards.by_mutant(same)
    (proof,) = group.proofs
    assert proof.outcome == "out of bounds" and proof.places == ""
    assert proof.message == "wrote behind buffer 2 of the launch plan at bytes 4, 8, 300 and 1 more"


def test_names_of_the_user_are_kept():
    (group,) = hazards.by_mutant([hazard(message="wrote before buffer 'weights' at byte -4", buffer="weights", line=7)])
    (proof,) = group.proofs
    assert proof.message == "wrote before buffer 'weights' at byte -4" and proof.places == "line 7, weights"


def test_place_of_a_buffer_without_a_name():
    assert hazards.place(hazard(buffer="zeros3", offset=12)) == "buffer 3 of the launch plan at byte 12"
    assert hazards.place(hazard()) == ""


def test_two_kinds_of_one_mutant_are_two_lines():
    groups = hazards.by_mutant([hazard(outcome="race"), hazard(outcome="out_of_bounds")])
    assert hazards.outcomes(groups) == {"out of bounds": 1, "race": 1} and len(groups) == 1
