"""Answers that a scorer can get wrong: made from the right one, and from nothing."""

from __future__ import annotations

import random

PIECES = (
    *("#### ", "####", "##### ", "#### #### ", "\n#### ", "### ", "#### \n", "####\u00a0", "#"),
    *("$", "-", "--", ",", ".", "..", ".,", "$$", "%", "[invalid]", "\\$", "-$", "$-", "+", "**"),
    *("0", "1", "18", "18.", "18.0", "1,8", "018", "-18", "$18", "1e3", "3/4", "70,000", "7 0"),
    *("\u0661\u0668", "\uff11\uff18", "\u00b2", "\u221218", "\u221218", "\u2028", "\u0085", "\x00"),
    *(" ", "\n", "\r\n", "\t", "\ufeff", "\ud83d", "\U0001f600", "\u0130", "\u00df", "e\u0301"),
    *("Answer:", "Question:", "<<1+1=2>>", "\\boxed{18}", "dollars", "The answer is ", ".\n", ". "),
)


def hostile_answers(gold_answer: str, gold: str, count: int, seed: int) -> list[str]:
    """`count` texts around a right answer, the same for the same seed."""
    chance = random.Random(seed)
    return [_answer(gold_answer, gold, chance) for _ in range(count)]


def _answer(gold_answer: str, gold: str, chance: random.Random) -> str:
    kind = chance.randrange(5)
    if kind == 0:
        return "".join(chance.choices((*PIECES, gold), k=chance.randrange(9)))
    if kind == 1:
        place = chance.randrange(len(gold_answer) + 1)
        return gold_answer[:place] + chance.choice(PIECES) + gold_answer[place:]
    if kind == 2:
        place = chance.randrange(len(gold_answer) + 1)
        return gold_answer[:place] + gold_answer[place + chance.randrange(4) :]
    if kind == 3:
        before, after = (chance.choice(PIECES) for _ in range(2))
        return f"{before}#### {chance.choice(PIECES)}{gold}{after}"
    return gold_answer + "".join(chance.choices((*PIECES, gold), k=3))
