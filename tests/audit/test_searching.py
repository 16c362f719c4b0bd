"""What the witness search executes."""

from __future__ import annotations

from truekernel import corpus
from truekernel.audit.searching import STALE, STRAY, concerns, search_requests
from truekernel.cases.witness import witness_cases, witness_shapes
from truekernel.model import Configuration
from truekernel.trial.devices import Cpu, Cuda

PROBLEM = corpus.problems()["softmax"]
CASES = witness_cases(PROBLEM)


def test_contents_of_memory_are_those_that_a_device_has() -> None:
    here = {configuration.fill for _, configuration in search_requests(PROBLEM, CASES, Cpu())}
    there = {configuration.fill for _, configuration in search_requests(PROBLEM, CASES, Cuda())}
    assert here == {"poison", "stale", "nan"}
    assert there == {"poison", "stale"}


def test_a_gpu_orders_threads_itself() -> None:
    assert {c.schedule for _, c in search_requests(PROBLEM, CASES, Cuda())} == {"gpu"}
    assert {"reverse", "warp_greedy"} <= {c.schedule for _, c in search_requests(PROBLEM, CASES, Cpu())}


def test_nothing_is_asked_twice() -> None:
    requests = search_requests(PROBLEM, CASES, Cpu())
    assert len(set(requests)) == len(requests)


def test_what_numbers_can_not_show_is_for_other_classes() -> None:
    for configuration in (STALE, STRAY, Configuration("reverse")):
        assert concerns(CASES[0], configuration, "boundary")
        assert not concerns(CASES[0], configuration, "precision")
    assert concerns(CASES[0], Configuration(), "precision")


def test_longest_rows_have_other_orders_of_threads_where_blocks_wait_for_each_other_alone() -> None:
    def ordered(name: str) -> set[str]:
        problem = corpus.problems()[name]
        long = witness_shapes(problem)["long"]
        asked = search_requests(problem, witness_cases(problem), Cpu())
        cases = {case.id: dict(case.lengths) for case in witness_cases(problem)}
        return {c.schedule for case_id, c in asked if cases[case_id] == long}

    assert ordered("cumsum") == {"gpu", "reverse", "warp_greedy"}
    assert ordered("softmax") == {"gpu"}
