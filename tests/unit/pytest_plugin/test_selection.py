"""What runs, what is skipped and with which words, and that running nothing is no success."""

from __future__ import annotations

import pytest

from e2e import profile

pytest_plugins = ["pytester"]

_TEST = """
def test_case(case_id, case_profile):
    assert str(case_id) == "canary-cpu/baseline-eager"
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    for name in ("BACKEND", "LARGE_MODEL", "CANARY"):
        monkeypatch.delenv(f"AFD_E2E_{name}", raising=False)
    monkeypatch.delenv("AFD_GPU_E2E_FP8_MODEL", raising=False)
    pytester.makepyfile(_TEST)
    return pytester


def run_any(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return project.runpytest_inprocess("-p", "no:cacheprovider", "-rs", *arguments)


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return run_any(project, "--profile", "canary-cpu", *arguments)


def narrowed(project: pytest.Pytester, pattern: str) -> None:
    project.makepyfile(f"import pytest\n\n@pytest.mark.afd_case({pattern!r}){_TEST}")


def test_every_case_is_one_test(project: pytest.Pytester) -> None:
    result = run(project, "--collect-only", "-q")
    result.stdout.fnmatch_lines(["*::test_case[[]canary-cpu/baseline-eager[]]"])


def test_without_opting_in_it_is_skipped_with_the_variable(project: pytest.Pytester) -> None:
    result = run_any(project)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["afd-e2e: canary-cpu did not run: set AFD_E2E_BACKEND=cpu*"])
    lines = [line for line in result.outlines if line.startswith("afd-e2e: ")]
    assert [line.split()[1] for line in lines] == profile.names()


def test_once_opted_in_it_runs(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    narrowed(project, "canary-cpu/baseline-eager")
    monkeypatch.setenv("AFD_E2E_BACKEND", "cpu")
    run(project).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    "selection",
    [
        ["-k", "baseline-eager"],
        ["-m", "not slow"],
        ["--profile", "canary-4gpu"],
        ["{file}::test_case"],
        ["{file}::test_case[canary-cpu/baseline-eager]"],
    ],
    ids=["expression", "mark", "profile", "test", "case"],
)
def test_a_selection_that_runs_nothing_fails(
    project: pytest.Pytester, selection: list[str]
) -> None:
    file = next(project.path.glob("test_*.py"))
    result = run_any(project, *(word.format(file=file) for word in selection))
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["afd-e2e: a failure, for *"])


@pytest.mark.parametrize("selection", [["-k", "test_"], ["-m", "not slow"], ["{file}::test_plain"]])
def test_a_selection_that_runs_tests_of_other_kinds_passes(
    project: pytest.Pytester, selection: list[str]
) -> None:
    project.makepyfile(test_plain="def test_plain(): pass\n")
    result = run_any(project, *(word.format(file="test_plain.py") for word in selection))
    assert result.ret == 0


def test_what_a_projects_settings_say_asks_for_nothing(project: pytest.Pytester) -> None:
    profile = (
        'profile: mine\nextends: canary-cpu\ndescription: Mine.\ngate: {opt_in: {MINE: "1"}}\n'
    )
    project.makefile(".yaml", mine=profile)
    project.makeini("[pytest]\naddopts = --profile ./mine.yaml -m 'not slow'\n")
    folder = project.mkdir("below")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = project.runpytest_inprocess("-p", "no:cacheprovider", "..")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["afd-e2e: mine did not run: set MINE=1 to opt in"])


def test_a_case_that_was_named_and_did_not_run_fails_beside_one_that_ran(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AFD_E2E_BACKEND", "cpu")
    file = next(project.path.glob("test_*.py"))
    cases = ["canary-cpu/baseline-eager", "canary-4gpu/baseline-eager"]
    result = run_any(project, *(f"{file}::test_case[{case}]" for case in cases))
    result.assert_outcomes(passed=1, skipped=1)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["*by name, and did not run: canary-4gpu/baseline-eager"])


def test_missing_set_up_is_said_once_without_a_traceback(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AFD_E2E_BACKEND", "gpu")
    monkeypatch.delenv("AFD_GPU_E2E_MODEL", raising=False)
    project.makepyfile("def test_case(case_plan): pass\n")
    result = run_any(project, "-k", "qwen3-30b-4gpu and baseline-graph")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert str(result.stdout).count("AFD_GPU_E2E_MODEL is not set") == 1
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*another exception*")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AFD_E2E_BACKEND", "npu"),
        ("AFD_E2E_LARGE_MODEL", "1"),
        ("AFD_E2E_CANARY", "9gpu"),
        ("AFD_GPU_E2E_FP8_MODEL", "/fp8"),
    ],
)
def test_opting_in_by_half_runs_nothing_and_fails(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert run_any(project).ret == pytest.ExitCode.NO_TESTS_COLLECTED


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
