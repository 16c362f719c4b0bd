from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truekernel.audit.options import AuditOptions
from truekernel.audit.plan import make_plan, select_programs, stratified_sample
from truekernel.errors import BadInputError, UnknownNameError
from truekernel.model import MadeBy, Mutant, Site


def mutant(program: str, number: int, rule_class: str) -> Mutant:
    pair = MadeBy("some-rule", rule_class, Site("cu", number, number + 1, 1, 1), "x")
    return Mutant(f"{program}-{rule_class}-{number}", program, "cu", (), (pair,), "", "", "")


strata = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.dictionaries(st.sampled_from(["sync", "index", "precision"]), st.integers(1, 40), min_size=1),
    min_size=1,
)


def population(sizes):
    return {
        program: tuple(mutant(program, n, c) for c, size in classes.items() for n in range(size))
        for program, classes in sizes.items()
    }


@given(sizes=strata, size=st.integers(1, 100), seed=st.integers(0, 3))
def test_sample_has_its_size_and_follows_the_strata(sizes, size, seed):
    everything = population(sizes)
    total = sum(len(m) for m in everything.values())
    sample = stratified_sample(everything, size, seed)
    assert sum(len(m) for m in sample.values()) == min(size, total)
    for program, classes in sizes.items():
        for rule_class, members in classes.items():
            taken = sum(m.made_by[0].rule_class == rule_class for m in sample[program])
            assert abs(taken - min(size, total) * members / total) < 1 + 1e-9


def test_same_seed_same_sample_and_other_seed_another():
    everything = population({"a": {"sync": 40, "index": 40}})
    ids = [{m.id for m in stratified_sample(everything, 30, seed)["a"]} for seed in (0, 0, 1)]
    assert ids[0] == ids[1] != ids[2]


def options(**more):
    return AuditOptions(run_dir=Path("unused"), **more)


def test_patterns_name_programs_problems_and_families():
    assert {p.problem for p in select_programs(["softmax"])} >= {"softmax"}
    one = select_programs(())[0]
    assert select_programs([one.name]) == (one,)
    with pytest.raises(UnknownNameError, match="did you mean"):
        select_programs(["softmaxx"])


def test_a_plan_is_the_same_every_time_and_refuses_unknown_rules():
    family = options(problems=("scan",), sample=20)
    assert make_plan(family).mutants == make_plan(family).mutants
    with pytest.raises(UnknownNameError):
        make_plan(options(rules=("no-such-rule",)))
    with pytest.raises(BadInputError, match="no rule applies"):
        make_plan(options(problems=("elementwise",), rules=("ptx-fence-removed",)))


@pytest.mark.parametrize("bad", [{"sample": 0}, {"workers": 0}, {"fail_over": 1.5}, {"checkers": ()}])
def test_values_that_cannot_be_meant_are_refused(bad):
    with pytest.raises(BadInputError):
        options(**bad)
