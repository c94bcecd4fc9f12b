"""A distance is never small by accident: nothing missing, cut or not finite agrees."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.canary.fingerprint import Fingerprint, compare, load
from e2e.canary.manifest import Expected
from e2e.errors import SetupMissing

END = 0
IDS = (11, 12, 13, END)
TOPS = (
    ((11, -0.1), (21, -3.0), (22, -4.0)),
    ((12, -0.2), (21, -2.0), (23, -5.0)),
    ((13, -0.1), (24, -3.0), (25, -3.5)),
    ((END, -0.3), (24, -2.0), (26, -6.0)),
)
EXPECTED = Expected(
    doc_id=0, prompt="p", prompt_sha256="s", text="t", token_ids=IDS, top_logprobs=TOPS
)


def server(changes: dict[tuple[int, int], float | None] | None = None) -> list[dict[int, float]]:
    """The expected lists but for `changes`: (place, token) to a value, None to leave it out."""
    lists = [dict(top) for top in TOPS]
    for (place, token), value in (changes or {}).items():
        if value is None:
            del lists[place][token]
        else:
            lists[place][token] = value
    return lists


def test_the_same_numbers_have_no_distance():
    assert compare(EXPECTED, IDS, server()) == 0.0


def test_it_is_the_root_mean_square_of_the_token_that_differs_most():
    changed = server({(0, 11): -0.2, (2, 13): -0.4, (2, 25): -3.1})
    assert compare(EXPECTED, IDS, changed) == pytest.approx(math.sqrt((0.3**2 + 0.4**2) / 3))


def test_the_order_of_a_list_does_not_matter():
    turned = [dict(reversed(top.items())) for top in server()]
    assert compare(EXPECTED, IDS, turned) == 0.0


def test_an_entry_that_a_server_does_not_list_is_at_most_its_last_place():
    changed = server({(0, 21): None, (0, 99): -3.9})
    # 21 is at most -4.0 there, so at least 1.0 off; 99 is at most -4.0 here, at least 0.1 off.
    assert compare(EXPECTED, IDS, changed) == pytest.approx(math.sqrt((1.0 + 0.1**2) / 4))


def test_an_entry_below_what_is_kept_of_both_sides_says_nothing():
    assert compare(EXPECTED, IDS, server({(0, 99): -9.0})) == 0.0


def test_a_sampled_token_beyond_the_last_place_does_not_weaken_the_bound():
    """Servers list it after the most likely ones, however unlikely it is."""
    changed = server({(0, 21): None, (0, 98): -4.5, (0, 99): -9.0})
    # 21 is at most -4.5 there, not -9.0: at least 1.5 off.
    assert compare(EXPECTED, IDS, changed) == pytest.approx(math.sqrt(1.5**2 / 5))


def test_compared_is_up_to_and_including_the_first_other_token():
    changed = server({(1, 21): -0.1, (1, 12): -2.1, (2, 13): -40.0, (3, END): -40.0})
    assert compare(EXPECTED, (11, 21, 7, 8), changed) == pytest.approx(
        math.sqrt((1.9**2 + 1.9**2) / 3)
    )


def test_an_other_first_token_is_compared_at_that_token():
    changed = server({(0, 11): -3.0, (0, 21): -0.1})
    assert compare(EXPECTED, (21,), changed[:1]) == pytest.approx(math.sqrt(2 * 2.9**2 / 3))


def test_the_end_of_text_may_be_left_out():
    assert compare(EXPECTED, IDS[:-1], server()[:-1]) == 0.0


@pytest.mark.parametrize("ids", [IDS[:1], IDS[:2], (*IDS, 5), (*IDS, END, END)])
def test_an_answer_that_ends_early_or_goes_on_never_agrees(ids: tuple[int, ...]):
    lists = [*server(), {5: -0.1}, {5: -0.1}][: len(ids)]
    assert compare(EXPECTED, ids, lists) == math.inf


@pytest.mark.parametrize(
    ("ids", "lists"),
    [
        (None, server()),
        (IDS, None),
        ((), server()),
        (IDS, []),
        (IDS, server()[:-1]),
        (IDS, [{}, *server()[1:]]),
        (IDS, [*server()[:-1], {}]),
    ],
)
def test_missing_log_probabilities_are_no_agreement(ids, lists):
    assert compare(EXPECTED, ids, lists) is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("entry", [(0, 11), (0, 22), (3, END), (1, 99)])
def test_what_is_not_finite_is_never_within_a_limit(value: float, entry: tuple[int, int]):
    assert compare(EXPECTED, IDS, server({entry: value})) == math.inf


def test_what_is_not_finite_after_the_first_other_token_is_not_compared():
    changed = server({(3, END): math.nan})
    assert compare(EXPECTED, (11, 21), changed) == 0.0


def test_huge_numbers_are_far_away():
    distance = compare(EXPECTED, IDS, server({(0, 11): -1e300}))
    assert distance is not None and distance > 1e100


def test_a_shift_of_all_log_probabilities_is_its_own_distance():
    shifted = [{token: value - 0.25 for token, value in top.items()} for top in server()]
    assert compare(EXPECTED, IDS, shifted) == pytest.approx(0.25)


@given(
    st.lists(
        st.dictionaries(st.integers(0, 40), st.floats(-50, 0), min_size=1, max_size=6),
        min_size=4,
        max_size=4,
    )
)
def test_only_equal_numbers_have_no_distance(lists: list[dict[int, float]]):
    distance = compare(EXPECTED, IDS, lists)
    assert distance is not None and distance >= 0.0
    bound = [sorted(top.values(), reverse=True)[:3][-1] for top in lists]
    hidden = all(
        top.get(token, min(value, last)) == value
        for top, ours, last in zip(lists, TOPS, bound, strict=True)
        for token, value in ours
    )
    if not hidden:
        assert distance > 0.0


def test_a_limit_is_known_for_what_was_measured_alone():
    known = Fingerprint(answers={"s": EXPECTED}, limits={"float32": 1e-4})
    assert known.limit("float32") == 1e-4
    assert known.expected("s") is EXPECTED
    assert known.expected("another prompt") is None
    with pytest.raises(SetupMissing, match="float16"):
        known.limit("float16")


def test_a_folder_without_a_record_is_no_canary(tmp_path):
    assert load(tmp_path) is None
    assert load(tmp_path / "not there") is None
