"""Limits lie between noise and effects, or there is no canary."""

import math

import pytest

from e2e.canary import bands
from e2e.canary.sensitivity import Effect
from e2e.errors import HarnessError


def effect(kind: str, distance: float, name: str = "layer 0") -> Effect:
    return Effect(kind=kind, name=name, distance=distance, number=False, text=distance > 1)


EFFECTS = [
    effect("expert zeroed", 0.4),
    effect("expert zeroed", 2.0),
    effect("router row x2", 0.16),
    effect("expert gate row x0", 1e-3),
]
NOISE = {"float32": 1e-5, "bfloat16": 0.04}


def test_a_limit_is_the_geometric_mean_of_noise_and_smallest_effect():
    found = bands.bands(EFFECTS, NOISE)
    assert found["float32"].limit == pytest.approx(1e-4)
    assert found["bfloat16"].limit == pytest.approx(0.08)
    assert found["bfloat16"].separation == pytest.approx(4)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("distance", [0.0, 2.9, math.nan])
def test_what_a_canary_would_not_notice_is_named(dtype, distance):
    blind = effect("expert zeroed", distance * NOISE[dtype], "layer 1 expert 3")
    with pytest.raises(HarnessError, match=f"layer 1 expert 3.*{dtype}"):
        bands.bands([*EFFECTS, blind], {dtype: NOISE[dtype]})


def test_noise_that_is_not_finite_is_no_noise():
    for odd in (math.nan, math.inf):
        with pytest.raises(HarnessError):
            bands.bands(EFFECTS, {"float32": odd})


def test_no_noise_at_all_is_not_believed():
    assert bands.bands(EFFECTS, {"float32": 0.0})["float32"].noise == bands.LEAST_NOISE


def test_the_table_counts_what_each_dtype_notices():
    found = bands.bands(EFFECTS, NOISE)
    zeroed, router, row = bands.sensitivity(EFFECTS, found)
    assert (zeroed.change, zeroed.tried, zeroed.smallest_effect) == ("expert zeroed", 2, 0.4)
    assert zeroed.noticed_by_text == 1
    assert zeroed.noticed_by_fingerprint == {"float32": 2, "bfloat16": 2}
    assert router.noticed_by_fingerprint == {"float32": 1, "bfloat16": 1}
    assert row.noticed_by_fingerprint == {"float32": 1, "bfloat16": 0}


def test_an_infinite_or_undefined_distance_is_noticed():
    found = bands.bands(EFFECTS, NOISE)
    odd = [effect("odd", math.inf), effect("odd", math.nan)]
    assert bands.sensitivity(odd, found)[0].noticed_by_fingerprint["bfloat16"] == 2
