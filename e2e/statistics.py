"""What a number of right answers can show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, comb, sqrt
from statistics import NormalDist

CONFIDENCE = 0.95
_LARGEST_GAP = 0.05


def wilson(correct: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Two-sided score interval of the accuracy (Wilson 1927), without continuity correction.

    It stays within 0..1 and is of use for small n and for all answers right, where the normal
    interval has no width. Raises ValueError unless 0 <= correct <= n and n > 0.
    """
    if n <= 0 or not 0 <= correct <= n:
        raise ValueError(f"{correct} of {n} is no score")
    z2 = _z(confidence) ** 2
    middle = (correct + z2 / 2) / (n + z2)
    half = sqrt(z2 * (correct * (n - correct) / n + z2 / 4)) / (n + z2)
    low = 0.0 if correct == 0 else middle - half
    return low, 1.0 if correct == n else middle + half


def samples_needed(accuracy: float, confidence: float = CONFIDENCE) -> int:
    """The fewest questions that, all answered right, show at least this accuracy (0..1)."""
    if not 0 <= accuracy < 1:
        raise ValueError(f"no number of questions shows an accuracy of {accuracy}")
    needed = max(1, ceil(_z(confidence) ** 2 * accuracy / (1 - accuracy)))
    # The formula is exact but for rounding, which can put it one off.
    while needed > 1 and wilson(needed - 1, needed - 1, confidence)[0] >= accuracy:
        needed -= 1
    while wilson(needed, needed, confidence)[0] < accuracy:
        needed += 1
    return needed


@dataclass(frozen=True)
class Paired:
    """Two cases on the same questions. `p` is the exact two-sided McNemar test: how likely so
    unequal a split of the questions that only one got right is, were both equally good."""

    both: int
    only_first: int
    only_second: int
    neither: int
    p: float


def mcnemar(pairs: Iterable[tuple[bool, bool]]) -> Paired:
    """Each pair is one question: whether the first and whether the second case was right."""
    counts = {(a, b): 0 for a in (True, False) for b in (True, False)}
    for first, second in pairs:
        counts[first, second] += 1
    only_first, only_second = counts[True, False], counts[False, True]
    unequal = only_first + only_second
    tail = sum(comb(unequal, k) for k in range(min(only_first, only_second) + 1))
    return Paired(
        both=counts[True, True],
        only_first=only_first,
        only_second=only_second,
        neither=counts[False, False],
        p=min(1.0, 2 * tail / 2**unequal),
    )


def what_n_shows(correct: int, n: int) -> str:
    """`7 of 7: at least 65% with 95% confidence` (the lower end of the Wilson interval). From a
    hundred answers on with one decimal, so that no rounding shows certainty."""
    least, digits = wilson(correct, n)[0], 1 if n >= 100 else 0
    return f"{correct} of {n}: at least {least:.{digits}%} with {CONFIDENCE:.0%} confidence"


def warning(required: int, n: int) -> str | None:
    """Where `required` of `n` demands an accuracy that n answers cannot show: what they show, and
    how many would do. None where the lower bound is within five percentage points."""
    demanded, shown = required / n, wilson(required, n)[0]
    if demanded - shown <= _LARGEST_GAP:
        return None
    enough = samples_needed(demanded - _LARGEST_GAP)
    said = f"{required} of {n} demands {demanded:.0%}, and {what_n_shows(required, n)}"
    if enough <= n:
        return said
    return f"{said}; to show {demanded - _LARGEST_GAP:.0%} takes {enough} questions, all right"


def _z(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)
