"""The random numbers of a decision: Philox, and the normal numbers that are made of its words."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.core.draws import fill_normal, fill_words, normal

Words = NDArray[np.uint64]
WORD = 2**64 - 1
EXTREMES = [0, 1, 2**63 - 1, 2**63, WORD - 1, WORD]
KEYS = [(a, b) for a in EXTREMES for b in EXTREMES]
DRAWS = [low + (high << 64) for low in EXTREMES for high in EXTREMES]
COUNT = 40_000


def key_of(key: tuple[int, int]) -> Words:
    return np.array(key, np.uint64)


def words_of(key: tuple[int, int], draw: int, count: int) -> Words:
    words = np.empty(count, np.uint64)
    fill_words(key_of(key), np.uint64(draw & WORD), np.uint64(draw >> 64), words)
    return words


def normal_of(key: tuple[int, int], draw: int, count: int) -> Array:
    xi = np.empty(count)
    fill_normal(key_of(key), np.uint64(draw & WORD), np.uint64(draw >> 64), xi)
    return xi


def words_of_numpy(key: tuple[int, int], draw: int, count: int) -> Words:
    """The words of the blocks (k, 0, draw, server); NumPy counts on before it makes a block."""
    before = ((draw << 128) - 1) % 2**256
    philox = np.random.Philox(counter=before, key=key[0] + (key[1] << 64))
    return np.asarray(philox.random_raw(count))


def uniform_of(words: Words) -> Array:
    """u = (⌊w / 2^12⌋ + ½) / 2^52, which is exact."""
    return np.array([(2 * (w >> 12) + 1) / 2**53 for w in words.tolist()])


def many_normal(key: tuple[int, int], draws: range, count: int) -> Array:
    return np.array([normal_of(key, draw, count) for draw in draws])


@pytest.mark.parametrize("draw", DRAWS)
def test_the_words_are_those_of_numpy_at_every_extreme(draw: int) -> None:
    for key in KEYS:
        np.testing.assert_array_equal(words_of(key, draw, 9), words_of_numpy(key, draw, 9))


@settings(max_examples=500)
@given(
    st.tuples(st.integers(0, WORD), st.integers(0, WORD)),
    st.integers(0, 2**128 - 1),
    st.integers(0, 70),
)
def test_the_words_are_those_of_numpy(key: tuple[int, int], draw: int, count: int) -> None:
    found = words_of(key, draw, count)
    np.testing.assert_array_equal(found, words_of_numpy(key, draw, count))
    expected = norm.ppf(uniform_of(found))
    np.testing.assert_allclose(normal_of(key, draw, count), expected, rtol=1e-14, atol=1e-14)


def test_the_known_answers_of_the_paper() -> None:
    """Of philox4x64-10 in the authors' Random123 (kat_vectors): nothing here is of NumPy."""
    zeros = words_of((0, 0), 0, 4).tolist()
    assert [f"{word:016x}" for word in zeros] == [
        "16554d9eca36314c",
        "db20fe9d672d0fdc",
        "d7e772cee186176b",
        "7e68b68aec7ba23b",
    ]


def test_a_word_is_the_normal_number_of_its_u() -> None:
    words = np.random.default_rng(0).integers(0, 2**64, 200_000, dtype=np.uint64)
    found = np.array([normal(word) for word in words])
    np.testing.assert_allclose(found, norm.ppf(uniform_of(words)), rtol=1e-14, atol=1e-14)


def test_words_of_every_size_are_normal_numbers() -> None:
    """Near both ends and the middle, and where the formula changes: |u - ½| = 0.425, r = 5."""
    special = [2**k for k in range(64)] + [WORD - 2**k for k in range(64)]
    cuts = [0.075, 0.5, 0.925, np.exp(-25.0), 1 - np.exp(-25.0)]
    for cut in cuts:
        around = int(cut * 2**64)
        special += [min(max(around + k * 2**12, 0), WORD) for k in range(-200, 201)]
    words = np.array([0, WORD, *special], np.uint64)
    found = np.array([normal(word) for word in words])
    np.testing.assert_allclose(found, norm.ppf(uniform_of(words)), rtol=1e-14, atol=1e-14)


def test_the_extreme_words_are_finite_and_opposite() -> None:
    lowest, highest = normal(np.uint64(0)), normal(np.uint64(WORD))
    assert np.isfinite([lowest, highest]).all()
    assert lowest == -highest
    assert lowest == pytest.approx(norm.ppf(2.0**-53), rel=1e-14)
    assert lowest == normal(np.uint64(2**12 - 1))  # the last twelve bits do not matter
    assert lowest < normal(np.uint64(2**12))


def test_larger_words_are_larger_numbers_and_opposite_words_opposite_ones() -> None:
    steps = np.sort(np.random.default_rng(1).integers(0, 2**52, 20_000, dtype=np.uint64))
    numbers = np.array([normal(step << np.uint64(12)) for step in steps])
    assert (np.diff(numbers)[np.diff(steps) > 2**20] > 0).all()
    mirrored = np.array([normal(np.uint64(WORD) - (step << np.uint64(12))) for step in steps])
    np.testing.assert_array_equal(mirrored, -numbers)


@settings(max_examples=100)
@given(
    st.tuples(st.integers(0, WORD), st.integers(0, WORD)),
    st.integers(0, 2**128 - 1),
    st.integers(0, 40),
    st.integers(0, 40),
)
def test_the_numbers_of_a_draw_are_the_same_whatever_their_count(
    key: tuple[int, int], draw: int, few: int, more: int
) -> None:
    few, more = sorted((few, more))
    np.testing.assert_array_equal(
        normal_of(key, draw, few), normal_of(key, draw, more)[:few], strict=True
    )
    np.testing.assert_array_equal(
        words_of(key, draw, few), words_of(key, draw, more)[:few], strict=True
    )


def test_draws_of_different_numbers_servers_and_keys_differ() -> None:
    """No word comes twice: with 128 bits each, no draw is another one shifted or swapped."""
    numbers = [*range(300), *(WORD - k for k in range(300))]
    draws = [low + (high << 64) for low in numbers for high in (0, 1, 2, 2**63, WORD)]
    keys = [(0, 0), (1, 0), (0, 1), (WORD, WORD)]
    seen = {tuple(words_of(key, draw, 2).tolist()) for draw in draws for key in keys}
    assert len(seen) == len(draws) * len(keys)
    words = {word for pair in seen for word in pair}
    assert len(words) == 2 * len(seen)  # 24,000 words: a chance of 10^-11 that two are equal
    swapped = words_of((0, 0), 5, 4).tolist(), words_of((0, 0), 5 << 64, 4).tolist()
    assert not set(swapped[0]) & set(swapped[1])


@pytest.mark.parametrize("key", [(0, 0), (1, 2), (WORD, 0)])
@pytest.mark.parametrize("first", [0, 2**64 - COUNT // 2, 2**127])
def test_the_numbers_are_standard_normal_and_independent(key: tuple[int, int], first: int) -> None:
    """Means, variances, kurtoses, correlations: five standard errors each."""
    xi = many_normal(key, range(first, first + COUNT), 6)
    error = 5 / np.sqrt(COUNT)
    assert (np.abs(xi.mean(axis=0)) < error).all()
    assert (np.abs((xi**2).mean(axis=0) - 1) < np.sqrt(2) * error).all()
    assert (np.abs((xi**3).mean(axis=0)) < np.sqrt(15) * error).all()
    assert (np.abs((xi**4).mean(axis=0) - 3) < np.sqrt(96) * error).all()
    within = np.corrcoef(xi.T)  # between the numbers of one draw
    assert (np.abs(within - np.eye(6)) < error).all()
    for lag in (1, 2, 3, 64):  # between draws that follow each other
        between = xi[:-lag].T @ xi[lag:] / (COUNT - lag)
        assert (np.abs(between) < 5 / np.sqrt(COUNT - lag)).all()
    squares = (xi**2 - 1) / np.sqrt(2)
    assert (np.abs(squares.T @ squares / COUNT - np.eye(6))[~np.eye(6, dtype=bool)] < error).all()


def test_servers_and_keys_next_to_each_other_are_independent() -> None:
    draws = range(COUNT)
    one = many_normal((7, 9), draws, 4)
    server = many_normal((7, 9), range(2**64, 2**64 + COUNT), 4)
    key, other = many_normal((8, 9), draws, 4), many_normal((7, 10), draws, 4)
    groups = [one, server, key, other]
    for k, first in enumerate(groups):
        for second in groups[k + 1 :]:
            assert (np.abs(first.T @ second / COUNT) < 5 / np.sqrt(COUNT)).all()


def test_the_numbers_fill_the_tails_as_the_normal_distribution_does() -> None:
    xi = many_normal((3, 4), range(COUNT), 8).ravel()
    for edge in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5):
        share = float(norm.sf(edge))
        error = 5 * np.sqrt(share * (1 - share) / xi.size)
        assert (xi > edge).mean() == pytest.approx(share, abs=error)
        assert (xi < -edge).mean() == pytest.approx(share, abs=error)


def test_the_draws_of_a_policy_are_a_function_of_its_seed_and_the_decisions_number() -> None:
    """An early decision of a surface is a normal number's place on the middle half of the box."""
    policy: Any = ca.SurfaceSampling(ca.Box.unit(0), ca.Box.unit(3), reach=None, rng=5)
    words = np.random.SeedSequence(5).generate_state(2, np.uint64).tolist()
    for number in range(5):
        xi = normal_of((words[0], words[1]), number, 3)
        expected = 0.25 + 0.5 * norm.cdf(xi)
        np.testing.assert_allclose(policy.ask().value, expected, rtol=1e-12)
