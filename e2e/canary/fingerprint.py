"""How far a server's log-probabilities are from those that a canary was made with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.canary import manifest
from e2e.canary.manifest import Expected
from e2e.errors import SetupMissing

__all__ = ["Expected", "Fingerprint", "compare", "load"]


@dataclass(frozen=True)
class Fingerprint:
    """What a canary expects of a server that runs it."""

    answers: Mapping[str, Expected]
    limits: Mapping[str, float]

    def expected(self, prompt_sha256: str) -> Expected | None:
        """None for a prompt that the canary has not learnt."""
        return self.answers.get(prompt_sha256)

    def limit(self, dtype: str) -> float:
        """The largest distance that is still noise on a server of this dtype.

        Raises SetupMissing for a dtype that the canary was not measured for.
        """
        if dtype not in self.limits:
            raise SetupMissing(
                f"the canary's fingerprint has no limit for dtype {dtype}",
                mend=f"serve it with --dtype {' or '.join(self.limits)}",
            )
        return self.limits[dtype]


def load(folder: Path) -> Fingerprint | None:
    """None where the folder is no canary. Raises SetupMissing where its record is damaged."""
    known = manifest.read(folder)
    if known is None:
        return None
    return Fingerprint(
        answers={answer.prompt_sha256: answer for answer in known.answers},
        limits={dtype: band.limit for dtype, band in known.bands.items()},
    )


def compare(
    expected: Expected,
    token_ids: Sequence[int] | None,
    top_logprobs: Sequence[Mapping[int, float]] | None,
) -> float | None:
    """The largest difference that a token shows: of all compared tokens the largest root mean
    square, over a token's entries, of the differences of log-probabilities (nats).

    Noise differs little from token to token, while most changes to a model show in few tokens: an
    average over an answer would hide them. Compared is up to and including the first token that
    differs: so far both have seen the same text. An entry is a token id in the list of either
    side. Where the other side's list lacks it, its log-probability there is at most that of the
    list's last place, which bounds the difference from below. The end-of-text token may be left
    out by a server.

    None: log-probabilities are missing, which is no agreement. Infinite: a number is not finite,
    or the answer ends early or goes on with no token that differs.
    """
    if not token_ids or not top_logprobs or len(top_logprobs) < len(token_ids):
        return None
    pairs = list(zip(expected.token_ids, token_ids, strict=False))
    differing = next((i for i, (ours, theirs) in enumerate(pairs) if ours != theirs), None)
    if differing is None and len(token_ids) not in (
        len(expected.token_ids),
        len(expected.token_ids) - 1,
    ):
        return math.inf
    compared = len(pairs) if differing is None else differing + 1
    if not all(top_logprobs[:compared]):
        return None
    if not all(math.isfinite(value) for top in top_logprobs[:compared] for value in top.values()):
        return math.inf
    return max(
        _token_distance(dict(ours), theirs)
        for ours, theirs in zip(expected.top_logprobs[:compared], top_logprobs, strict=False)
    )


def _token_distance(ours: Mapping[int, float], theirs: Mapping[int, float]) -> float:
    our_last = min(ours.values())
    their_last = sorted(theirs.values(), reverse=True)[: len(ours)][-1]
    differences = []
    for token in ours.keys() | theirs.keys():
        if token not in theirs:
            differences.append(max(0.0, ours[token] - their_last))
        elif token not in ours:
            differences.append(max(0.0, theirs[token] - our_last))
        else:
            differences.append(theirs[token] - ours[token])
    return math.hypot(*differences) / math.sqrt(len(differences))
