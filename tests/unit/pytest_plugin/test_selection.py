"""What runs, what is skipped and with which words, and that running nothing is no success."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

_TEST = """
def test_case(case_id, case_profile):
    assert str(case_id) == "canary-cpu/baseline-eager"
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("AFD_E2E_BACKEND", raising=False)
    pytester.makepyfile(_TEST)
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return project.runpytest_inprocess(
        "-p", "no:cacheprovider", "-rs", "--profile", "canary-cpu", *arguments
    )


def narrowed(project: pytest.Pytester, pattern: str) -> None:
    project.makepyfile(f"import pytest\n\n@pytest.mark.afd_case({pattern!r}){_TEST}")


def test_every_case_is_one_test(project: pytest.Pytester) -> None:
    result = run(project, "--collect-only", "-q")
    result.stdout.fnmatch_lines(["*::test_case[[]canary-cpu/baseline-eager[]]"])


def test_without_opting_in_it_is_skipped_with_the_variable(project: pytest.Pytester) -> None:
    result = run(project)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["afd-e2e: canary-cpu did not run: set AFD_E2E_BACKEND=cpu*"])


def test_once_opted_in_it_runs(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    narrowed(project, "canary-cpu/baseline-eager")
    monkeypatch.setenv("AFD_E2E_BACKEND", "cpu")
    run(project).assert_outcomes(passed=1)


def test_a_selection_that_runs_nothing_fails(project: pytest.Pytester) -> None:
    result = run(project, "-k", "baseline-eager")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_opting_in_to_another_backend_alone_fails(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AFD_E2E_BACKEND", "gpu")
    assert run(project).ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_mark_that_fits_no_case_is_an_error(project: pytest.Pytester) -> None:
    narrowed(project, "canary-cpu/no-such-case")
    result = run(project)
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*no case is canary-cpu/no-such-case*"])


def test_a_broken_profile_is_named_with_its_place(project: pytest.Pytester) -> None:
    broken = project.makefile(".yaml", broken="profile: broken\nhardwear: {}\n")
    result = project.runpytest_inprocess("-p", "no:cacheprovider", "--profile", str(broken))
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*broken.yaml:2:1*hardwear*hardware*"])
