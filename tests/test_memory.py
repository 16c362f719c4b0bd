"""Memory that goes back, and garbage that is collected where there is some."""

from __future__ import annotations

import gc
import weakref

from truekernel import memory


class Ring:
    """Something that only the garbage collector frees."""

    def __init__(self) -> None:
        self.self = self


def test_what_a_problem_left_behind_is_collected_and_what_stays_is_not_looked_at_again() -> None:
    left = weakref.ref(Ring())
    memory.begin()
    try:
        assert left() is None
        assert gc.get_freeze_count() > 0
        made_later = weakref.ref(Ring())
        gc.collect()
        assert made_later() is None
    finally:
        gc.unfreeze()


def test_a_set_up_is_not_looked_at_while_it_is_in_use_and_is_collected_afterwards() -> None:
    kept: list[Ring] = [Ring()]
    left = weakref.ref(kept[0])
    with memory.settled():
        kept.clear()
        gc.collect()
        assert left() is not None
    assert left() is None


def test_nothing_is_collected_where_all_is_in_use_and_collection_goes_on_afterwards() -> None:
    with memory.uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with memory.uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
