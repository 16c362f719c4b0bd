"""Whatever the other side writes, it is an answer or a fault."""

import contextlib
import json
import os
import threading
import time

import pytest

from truekernel.judge.channel import Channel, FaultError, Shared, space
from truekernel.judge.inside import wire


@pytest.fixture
def channel():
    made = Channel()
    yield made
    made.close()
    for descriptor in (made.child_requests, made.child_answers):
        with contextlib.suppress(OSError):
            os.close(descriptor)


def answered(channel, data):
    threading.Timer(0.05, lambda: os.write(channel.child_answers, data)).start()


def framed(text):
    return wire.HEAD.pack(len(text)) + text


def test_an_answer(channel):
    answered(channel, wire.message({"number": 1, "yes": True}) + b"abcd")
    header, deadline = channel.ask({"op": "x"}, 5)
    assert header["yes"] is True
    assert channel.read(4, deadline, 5) == b"abcd"
    assert wire.read_message(channel.child_requests) == {"number": 1, "op": "x"}


@pytest.mark.parametrize(
    "data",
    [
        framed(b"{}"),
        framed(json.dumps({"number": 7}).encode()),
        framed(b"[1]"),
        framed(b"\xff\xfe"),
        framed(b"[" * 100000),
        wire.HEAD.pack(1 << 30),
        framed(b"1e999"),
        framed(json.dumps({"number": "1"}).encode()),
    ],
)
def test_nonsense(channel, data):
    answered(channel, data)
    with pytest.raises(FaultError) as caught:
        channel.ask({"op": "x"}, 5)
    assert caught.value.kind == "garbage"


def test_an_answer_before_the_question(channel):
    os.write(channel.child_answers, wire.message({"number": 1, "correct": True}))
    with pytest.raises(FaultError) as caught:
        channel.ask({"op": "x"}, 5)
    assert caught.value.kind == "garbage"


def test_silence(channel):
    start = time.monotonic()
    with pytest.raises(FaultError) as caught:
        channel.ask({"op": "x"}, 0.2)
    assert caught.value.kind == "timeout"
    assert time.monotonic() - start < 2


def test_half_an_answer(channel):
    answered(channel, wire.HEAD.pack(100) + b"{")
    with pytest.raises(FaultError) as caught:
        channel.ask({"op": "x"}, 0.3)
    assert caught.value.kind == "timeout"


def test_the_end(channel):
    channel.started()
    with pytest.raises(FaultError) as caught:
        channel.ask({"op": "x"}, 5)
    assert caught.value.kind == "ended"
    channel.child_requests = channel.child_answers = -1


def test_a_question_that_nobody_takes(channel):
    with pytest.raises(FaultError) as caught:
        channel.ask({"op": "x" * (1 << 21)}, 0.2)
    assert caught.value.kind == "timeout"


def test_shared_memory_shows_what_was_changed():
    shared = Shared(2)
    shared.reserve(space([5, 5000]))
    first = shared.place(0, [b"abcde", b"x" * 5000])
    assert first == [0, wire.ALIGNMENT]
    assert shared.place(1, [b"abcde"]) == [shared.size]
    assert shared.still(0, b"abcde")
    os.pwrite(shared.descriptor, b"z", 2)
    assert not shared.still(0, b"abcde")
    os.ftruncate(shared.descriptor, 0)
    assert not shared.still(wire.ALIGNMENT, b"x" * 5000)
    shared.close()


def test_texts_from_outside_are_one_printable_line():
    assert wire.safe_text("a\x1b[31m\nb\ud800") == "a?[31m b?"
    assert len(wire.safe_text("x" * 10000)) == wire.LONGEST_TEXT

    class Nasty(Exception):
        def __str__(self):
            raise ValueError

    assert wire.raised(Nasty()) == "an exception that can't be shown"
