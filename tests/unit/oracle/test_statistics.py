"""Intervals and tests against values known from the literature or counted by hand."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e import statistics


def test_seven_of_seven() -> None:
    low, high = statistics.wilson(7, 7)
    assert (round(low, 4), high) == (0.6457, 1.0)
    assert statistics.what_n_shows(7, 7) == "7 of 7: at least 65% with 95% confidence"


def test_no_rounding_shows_certainty() -> None:
    assert statistics.what_n_shows(1319, 1319) == "1319 of 1319: at least 99.7% with 95% confidence"


@pytest.mark.parametrize(
    ("correct", "n", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (81, 263, 0.2553, 0.3662),  # Newcombe 1998, table I
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson(correct: int, n: int, low: float, high: float) -> None:
    assert statistics.wilson(correct, n) == pytest.approx((low, high), abs=1e-4)


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_score(score: tuple[int, int]) -> None:
    correct, n = score
    low, high = statistics.wilson(correct, n)
    assert 0 <= low <= correct / n <= high <= 1


@pytest.mark.parametrize(("correct", "n"), [(1, 0), (-1, 3), (4, 3)])
def test_no_score(correct: int, n: int) -> None:
    with pytest.raises(ValueError, match="is no score"):
        statistics.wilson(correct, n)


@given(st.floats(0, 0.999))
def test_samples_needed_is_the_fewest(accuracy: float) -> None:
    n = statistics.samples_needed(accuracy)
    assert statistics.wilson(n, n)[0] >= accuracy
    assert n == 1 or statistics.wilson(n - 1, n - 1)[0] < accuracy


def test_samples_needed() -> None:
    assert statistics.samples_needed(0.9) == 35
    with pytest.raises(ValueError, match="shows an accuracy of 1"):
        statistics.samples_needed(1)


def pairs(both: int, only_first: int, only_second: int, neither: int) -> list[tuple[bool, bool]]:
    return (
        [(True, True)] * both
        + [(True, False)] * only_first
        + [(False, True)] * only_second
        + [(False, False)] * neither
    )


@pytest.mark.parametrize(
    ("only_first", "only_second", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (6, 0, 0.03125), (2, 10, 0.03857421875)],
)
def test_mcnemar(only_first: int, only_second: int, p: float) -> None:
    found = statistics.mcnemar(pairs(100, only_first, only_second, 3))
    assert found == statistics.Paired(100, only_first, only_second, 3, p)


def test_mcnemar_is_the_enumerated_binomial() -> None:
    n, worse = 9, 2
    unequal = [sum(split) for split in product((0, 1), repeat=n)]
    as_unequal = sum(min(k, n - k) <= worse for k in unequal) / len(unequal)
    assert statistics.mcnemar(pairs(0, worse, n - worse, 0)).p == pytest.approx(as_unequal)


def test_mcnemar_on_the_whole_set() -> None:
    assert statistics.mcnemar(pairs(0, 600, 719, 0)).p == pytest.approx(0.00115, abs=2e-4)


def test_a_profile_that_demands_too_much_is_warned_of() -> None:
    said = statistics.warning(7, 7)
    assert said is not None
    assert "7 of 7 demands 100%" in said
    assert "to show 95% takes 73 questions" in said
    assert statistics.warning(1250, 1319) is None
