"""Measured effects and noise -> limits, and the table of what is noticed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from e2e.canary.manifest import Band, Sensitivity
from e2e.canary.sensitivity import Effect
from e2e.errors import HarnessError

LEAST_SEPARATION = 3.0
"""Smallest effect guarded against, by the noise."""

LEAST_NOISE = 1e-6
"""float32 sums in another order differ by so much (nats), even if they did not here."""

_GUARDED_IN_BFLOAT16 = (
    "expert zeroed",
    "experts swapped",
    "head zeroed",
    "heads swapped",
    "router row x0",
    "router row x2",
)


def bands(effects: Sequence[Effect], noise: Mapping[str, float]) -> dict[str, Band]:
    """The limit is the geometric mean of noise and smallest effect. In float32 every change that
    was measured is guarded against; in bfloat16 single rows of experts and of the attention, many
    of which change less than rounding does, are not.

    Raises HarnessError where noise and effects are less than a factor 3 apart.
    """
    found = {}
    for dtype, measured in noise.items():
        most = max(measured, LEAST_NOISE)
        guarded = effects_guarded(effects, dtype)
        for effect in guarded:
            if not effect.distance >= LEAST_SEPARATION * most:
                raise HarnessError(
                    f"the canary would not notice {effect.kind} ({effect.name}) on a server in"
                    f" {dtype}: it changes {effect.distance:.3g}, noise is {most:.3g}",
                    mend="try another --seed",
                )
        smallest = min(effect.distance for effect in guarded)
        limit = math.sqrt(most * smallest)
        found[dtype] = Band(noise=most, smallest_effect=smallest, limit=limit)
    return found


def effects_guarded(effects: Iterable[Effect], dtype: str) -> list[Effect]:
    return [e for e in effects if dtype == "float32" or e.kind in _GUARDED_IN_BFLOAT16]


def sensitivity(effects: Iterable[Effect], found: Mapping[str, Band]) -> list[Sensitivity]:
    """One entry a kind, in the order of the effects."""
    kinds: dict[str, list[Effect]] = {}
    for effect in effects:
        kinds.setdefault(effect.kind, []).append(effect)
    return [
        Sensitivity(
            change=kind,
            tried=len(alike),
            smallest_effect=min(effect.distance for effect in alike),
            noticed_by_number=sum(effect.number for effect in alike),
            noticed_by_text=sum(effect.text for effect in alike),
            noticed_by_fingerprint={
                dtype: sum(not effect.distance <= band.limit for effect in alike)
                for dtype, band in found.items()
            },
        )
        for kind, alike in kinds.items()
    ]
