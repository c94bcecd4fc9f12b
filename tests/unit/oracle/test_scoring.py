"""Verdicts: the known quirks, and the rules once more, written down in another way."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from e2e.oracle import dataset
from e2e.oracle.scoring import Verdict, score
from tests.unit.oracle.hostile import PIECES, hostile_answers

GOLD = "She has 3*6=<<3*6=18>>18.\n#### 18"


@pytest.mark.parametrize(
    ("text", "strict", "flexible"),
    [
        ("#### 18", True, True),
        ("#### 18.", True, True),
        ("#### 1,8", True, True),
        ("#### 18%", True, True),
        ("#### 18 dollars", True, True),
        ("#### $18", False, True),
        ("####18", False, True),
        ("#### **18**", False, True),
        ("#### 18.00", False, False),
        ("#### 018", False, False),
        ("#### 17\n#### 18", False, True),
        ("#### 18\n#### 17", True, False),
        ("#### 18 of 20", True, False),
        ("#### -18", False, False),
        ("#### 18..", False, False),
        ("eighteen", False, False),
        ("", False, False),
        ("It is $18.", False, True),
        ("18", False, True),
        ("\uff11\uff18", False, False),
    ],
)
def test_quirks(text: str, strict: bool, flexible: bool) -> None:
    verdict = score(text, GOLD)
    assert (verdict.strict, verdict.flexible) == (strict, flexible)


def test_what_was_read() -> None:
    assert score("#### 1,8. or $20.", GOLD) == Verdict(True, False, "1,8.", "$20.")
    assert score("none", GOLD) == Verdict(False, False, "[invalid]", "[invalid]")


def by_the_rules(text: str, gold_answer: str) -> Verdict:
    """The published rules as regular expressions, applied one by one."""

    def clean(value: str) -> str:
        for pattern in (",", r"\$", r"(?s).*#### ", r"\.$"):
            value = re.sub(pattern, "", value)
        return value.lower()

    first = re.findall(r"#### (\-?[0-9\.\,]+)", text)
    last = re.findall(r"(-?[$0-9.,]{2,})|(-?[0-9]+)", text)
    strict = first[0].strip() if first else "[invalid]"
    flexible = next(filter(None, last[-1])).strip() if last else "[invalid]"
    gold = clean(gold_answer)
    return Verdict(clean(strict) == gold, clean(flexible) == gold, strict, flexible)


pieces = st.one_of(
    st.sampled_from(PIECES), st.text(max_size=4), st.text("$0123456789.,-# \n", max_size=8)
)
texts = st.lists(pieces, max_size=12).map("".join)


@given(texts, st.one_of(st.just(GOLD), st.just("#### 1,234.\n"), texts))
@example("#### 18", "#### [invalid]")
@example("no number", "[INVALID]")
def test_rules(text: str, gold_answer: str) -> None:
    assert score(text, gold_answer) == by_the_rules(text, gold_answer)


def test_rules_on_hostile_answers() -> None:
    for row in dataset.load("bundled").test:
        gold = row.answer.rpartition("#### ")[2]
        for text in hostile_answers(row.answer, gold, count=500, seed=len(row.answer)):
            assert score(text, row.answer) == by_the_rules(text, row.answer)


@pytest.mark.parametrize("text", ["1" * 2_000_000, "#### " * 400_000, "#### " + ".,$-" * 500_000])
def test_time_grows_with_the_length_alone(text: str) -> None:
    begin = time.perf_counter()
    score(text, GOLD)
    assert time.perf_counter() - begin < 5
