"""Where the evidence of a user's own tests goes."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

_TEST = """
import pytest

@pytest.mark.afd_case("canary-cpu/baseline-eager")
def test_same(evidence):
    evidence.note(__name__)
"""


def test_tests_of_one_name_keep_their_evidence_apart(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AFD_E2E_BACKEND", "cpu")
    monkeypatch.delenv("AFD_E2E_EVIDENCE", raising=False)
    for name in ("test_a", "test_b", "test_c"):
        pytester.makepyfile(**{name: _TEST})
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--profile", "canary-cpu")
    result.assert_outcomes(passed=3)
    notes = [path.read_text() for path in pytester.path.glob("runs/*/*/evidence.json")]
    assert sorted(
        name for text in notes for name in ("test_a", "test_b", "test_c") if name in text
    ) == ["test_a", "test_b", "test_c"]
