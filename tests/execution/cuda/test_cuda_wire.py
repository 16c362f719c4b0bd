import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truekernel.execution.cuda.device_memory import ZONE, padded, probe_value, zones
from truekernel.execution.cuda.wire import HEAD, MAGIC, Channel, ClosedError, OverdueError, decode, encode

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def pair():
    reader, writer = os.pipe()
    yield Channel(reader, -1), Channel(-1, writer)
    for descriptor in (reader, writer):
        try:
            os.close(descriptor)
        except OSError:
            continue


@given(st.dictionaries(st.text(), JSON, max_size=4), st.lists(st.binary(max_size=50), max_size=4))
def test_what_is_sent_arrives(message, parts):
    reader, writer = os.pipe()
    try:
        Channel(-1, writer).send(message, parts)
        got, payload = Channel(reader, -1).receive(5)
    finally:
        os.close(reader)
        os.close(writer)
    assert got == message
    assert bytes(payload) == b"".join(parts)


@pytest.mark.parametrize("text", [b"[1]", b"NaN", b'{"a": Infinity}', b"{", b"\xff", b"[" * 100_000])
def test_anything_but_strict_json_objects_is_refused(text):
    with pytest.raises(ClosedError):
        decode(text)
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode({"a": float("nan")})


@pytest.mark.parametrize("head", [HEAD.pack(b"XXXX", 2, 0), HEAD.pack(MAGIC, 1 << 31, 0), HEAD.pack(MAGIC, 2, 1 << 60)])
def test_what_is_no_frame_is_refused(pair, head):
    reader, writer = pair
    os.write(writer.writer, head + b"{}")
    with pytest.raises(ClosedError, match="not a frame"):
        reader.receive(5)


def test_silence_and_a_closed_pipe_are_told_apart(pair):
    reader, writer = pair
    with pytest.raises(OverdueError):
        reader.receive(0.05)
    os.write(writer.writer, HEAD.pack(MAGIC, 100, 0)[:7])
    with pytest.raises(OverdueError):
        reader.receive(0.05)
    os.close(writer.writer)
    with pytest.raises(ClosedError, match="closed"):
        reader.receive(5)


@given(st.integers(0, 5000))
def test_red_zones_touch_both_ends_of_a_buffer(nbytes):
    before, behind = zones(1 << 20, nbytes, 0x41)
    start = before.address + before.nbytes
    assert start == (1 << 20) + ZONE
    assert behind.address == start + nbytes
    assert behind.nbytes >= ZONE and before.value == behind.value == 0x41
    assert behind.address + behind.nbytes == (1 << 20) + padded(nbytes)


def test_probe_values_differ():
    assert len({probe_value(block, thread) for block in range(8) for thread in range(256)}) == 8 * 256
