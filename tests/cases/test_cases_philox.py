import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truekernel.cases.normal_table import CELLS, half_normal_quantiles
from truekernel.cases.philox import philox, words
from truekernel.cases.seeds import SUITE_END, is_witness_seed, suite_seed, witness_seed


@pytest.mark.parametrize(
    ("counter", "key", "wanted"),
    [
        ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_philox_gives_the_known_answers_of_its_authors(counter, key, wanted):
    made = philox(tuple(np.array([word], dtype=np.uint64) for word in counter), key)
    assert " ".join(f"{int(word[0]):08x}" for word in made) == wanted


@given(st.integers(0, 2**64 - 1), st.integers(0, 300), st.integers(0, 300))
def test_a_longer_stream_begins_with_the_shorter(seed, short, more):
    assert np.array_equal(words(seed, "x", short), words(seed, "x", short + more)[:short])


def test_streams_and_seeds_differ():
    assert not np.array_equal(words(1, "x", 8), words(1, "y", 8))
    assert not np.array_equal(words(1, "x", 8), words(1 << 40, "x", 8))
    assert len(set(words(7, "x", 100_000).tolist())) > 99_990
    with pytest.raises(ValueError, match="seed"):
        words(-1, "x", 1)


def test_quantiles_of_the_normal_distribution():
    special = pytest.importorskip("scipy.special")
    knots = half_normal_quantiles()
    assert np.abs(knots[:-1] - special.ndtri(0.5 + np.arange(CELLS) / CELLS / 2)).max() < 1e-12
    assert (np.diff(knots) > 0).all()


@given(st.text(max_size=8), st.text(max_size=8), st.integers(0, 10**6))
def test_suites_and_witnesses_never_share_a_seed(checker, problem, number):
    assert 0 <= suite_seed(checker, problem, number) < SUITE_END
    assert is_witness_seed(witness_seed(problem, number))
    assert not is_witness_seed(suite_seed(checker, problem, number))
