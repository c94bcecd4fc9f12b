"""pytest front: one test per profile and case, and fixtures for a user's own tests.

A test that takes `case_plan`, `evidence` or `deployment` runs once per profile and case, with the
id `<profile>/<case>`; `@pytest.mark.afd_case("canary-cpu/baseline-eager", ...)` narrows it.
Nothing runs without its profile's opt-in variables; once opted in, missing set-up fails.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from e2e.evidence.case import CaseEvidence
    from e2e.plan import CasePlan
    from e2e.profile.model import Profile
    from e2e.systems.deployment import Deployment

_MARK = "afd_case"
_RAN = pytest.StashKey["Ran"]()
_CALL = pytest.StashKey[pytest.CallInfo[None]]()
_LOST = pytest.StashKey[list[str]]()


class CaseId(NamedTuple):
    """`source` is the name or file that the profile is loaded from."""

    profile: str
    case: str
    source: str

    def __str__(self) -> str:
        return f"{self.profile}/{self.case}"


@dataclass
class Ran:
    """What a session ran, and what it skipped because it was not opted in."""

    tests: int = 0
    cases: int = 0
    opt_in_lines: dict[str, str] = field(default_factory=dict)
    named: dict[str, None] = field(default_factory=dict)
    half_opted_in: bool = False
    not_judged: dict[str, str] = field(default_factory=dict)

    def amiss(self, narrowed: bool) -> str | None:
        """Why a session without failures is a failure: it was asked for what did not run. A
        session is `narrowed` where it was told which tests to run."""
        if self.named:
            return f"asked for by name, and did not run: {', '.join(self.named)}"
        if self.half_opted_in and not self.cases:
            return "variables that opt in are set, and no case ran"
        if narrowed and self.opt_in_lines and not self.tests:
            return "the selection ran no test"
        return None


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("afd-e2e")
    group.addoption(
        "--evidence",
        metavar="DIR",
        help="where afd-e2e keeps its runs (AFD_E2E_EVIDENCE, default runs/)",
    )
    group.addoption(
        "--profile",
        action="append",
        metavar="PROFILE",
        help="name or YAML file of a profile; default: all that are shipped",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{_MARK}(*ids): run for these `<profile>/<case>` ids only (patterns allowed)"
    )
    config.stash[_RAN] = Ran()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case_id" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker(_MARK)
        ids = _case_ids(_sources(metafunc.config))
        if mark is not None:
            ids = [case for case in ids if _matches(case, mark.args)]
            if not ids:
                pytest.fail(f"no case is {', '.join(mark.args)}", pytrace=False)
        metafunc.parametrize("case_id", ids, ids=str, scope="function")


def _sources(config: pytest.Config) -> tuple[str, ...]:
    """What --profile names; a path in a project's own settings is meant from its root."""
    names: list[str] = config.getoption("--profile") or []
    at_root = {name: config.rootpath / name for name in names}
    return tuple(
        str(at_root[name]) if at_root[name].is_file() and not Path(name).exists() else name
        for name in names
    )


def _matches(case: CaseId, patterns: tuple[str, ...]) -> bool:
    from fnmatch import fnmatchcase

    return any(fnmatchcase(str(case), pattern) for pattern in patterns)


@cache
def _load(name: str) -> Profile:
    from e2e import profile

    return profile.load(profile.find(name))


def _case_ids(names: tuple[str, ...]) -> list[CaseId]:
    from e2e import profile
    from e2e.errors import ProfileError

    try:
        loaded = {name: _load(name) for name in names or profile.names()}
    except ProfileError as error:
        failure = str(error)
    else:
        return [
            CaseId(profile.profile, case, source)
            for source, profile in loaded.items()
            for case in profile.cases
        ]
    pytest.fail(failure, pytrace=False)


@pytest.fixture
def case_id() -> CaseId:
    """The profile and case that this test runs for."""
    raise AssertionError("parametrised by pytest_generate_tests")


@pytest.fixture
def case_profile(case_id: CaseId, request: pytest.FixtureRequest) -> Profile:
    """The case's profile, opted in; skips with the variables to set otherwise."""
    from e2e import gate

    profile, ran = _load(case_id.source), request.config.stash[_RAN]
    if gate.missing_opt_in(profile, os.environ):
        line = ran.opt_in_lines[case_id.profile] = gate.opt_in_line(profile)
        opting = (*profile.gate.opt_in, *profile.gate.opt_in_with)
        ran.half_opted_in |= any(os.environ.get(name) for name in opting)
        if _is_named(case_id, request.config):
            ran.named[str(case_id)] = None
        pytest.skip(line)
    ran.cases += 1
    return profile


def _is_named(case: CaseId, config: pytest.Config) -> bool:
    """Its profile was asked for, or it by its node id."""
    return _typed(config, "--profile") or any(one.endswith(f"[{case}]") for one in config.args)


def _typed(config: pytest.Config, *options: str) -> bool:
    """An option is on the command line itself; in a project's own settings it asks for nothing."""
    return any(str(one).startswith(options) for one in config.invocation_params.args)


@pytest.fixture(scope="session")
def _run_ids() -> dict[str, str]:
    return {}


def _folder_names(case: str, test: str) -> Iterator[str]:
    """Several tests of one case, of one name even, each keep their own evidence."""
    yield case
    yield f"{case}-{test}"
    yield from (f"{case}-{test}-{number}" for number in count(2))


@pytest.fixture
def evidence(
    case_id: CaseId,
    case_profile: Profile,
    request: pytest.FixtureRequest,
    _run_ids: dict[str, str],
) -> Iterator[CaseEvidence]:
    """The record of this case, in `<evidence>/<run id>/<case>/`."""
    from e2e import session
    from e2e.errors import SetupMissing
    from e2e.process import reap

    if _LOST not in request.config.stash:
        request.config.stash[_LOST] = reap.tell_lost_runs()
    run_id = _run_ids.setdefault(case_id.profile, session.new_run_id(case_profile.profile))
    root = session.evidence_root(request.config.getoption("--evidence"), os.environ)
    names = _folder_names(case_id.case, request.node.originalname)
    folder_name = next(name for name in names if not (root / run_id / name).exists())
    try:
        opened = session.open_evidence(root, run_id, case_profile.profile, folder_name)
    except SetupMissing as error:
        failure = str(error)
    else:
        yield opened
        parity = opened.record.parity
        if parity is not None and parity.not_judged is not None:
            request.config.stash[_RAN].not_judged[str(case_id)] = parity.not_judged
        return
    pytest.fail(failure, pytrace=False)


@pytest.fixture
def case_plan(case_id: CaseId, case_profile: Profile, evidence: CaseEvidence) -> CasePlan:
    """What will be launched and checked, exactly. Missing set-up fails by name."""
    from e2e import doctor, session
    from e2e.errors import HarnessError

    try:
        with evidence.phase("prepare"):
            return session.prepare(
                case_profile,
                case_id.case,
                os.environ,
                evidence.progress,
                lambda plan: doctor.require(plan, evidence),
            )
    except HarnessError as error:
        evidence.failure(error)
    evidence.conclude()
    pytest.fail(explain(evidence), pytrace=False)


@pytest.fixture
def deployment(
    case_plan: CasePlan, evidence: CaseEvidence, request: pytest.FixtureRequest
) -> Iterator[Deployment]:
    """A running deployment that has generated a token and proven its claims; after the test it is
    stopped and every proof runs. `deployment.endpoint` is its OpenAI API."""
    from e2e.errors import Outcome, TestFailed
    from e2e.run import proven_deployment, recorded

    with recorded(evidence), proven_deployment(case_plan, evidence) as running:
        yield running
        call = request.node.stash.get(_CALL, None)
        if call is not None and call.excinfo is not None:
            evidence.failure(TestFailed(f"{request.node.nodeid}: {call.excinfo.exconly()}"))
    if evidence.conclude() not in (Outcome.PASSED, Outcome.TEST_FAILED):
        pytest.fail(explain(evidence), pytrace=False)


def explain(evidence: CaseEvidence) -> str:
    """The failures of a concluded case, and where its evidence is."""
    from e2e.evidence.explain import explain_failure

    lines = [explain_failure(failure) for failure in evidence.record.failures]
    return "\n".join([*lines, f"evidence: {evidence.folder}"])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call":
        item.stash[_CALL] = call
        item.config.stash[_RAN].tests += not report.skipped
    return report


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A session that was asked for tests or cases and did not run them is a failure."""
    if exitstatus == 0 and _amiss(session.config):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    for line in config.stash.get(_LOST, []):
        terminalreporter.write_line(f"afd-e2e: lost before: {line}", yellow=True)
    for profile, line in config.stash[_RAN].opt_in_lines.items():
        terminalreporter.write_line(f"afd-e2e: {profile} did not run: {line}")
    for case, why in config.stash[_RAN].not_judged.items():
        terminalreporter.write_line(f"afd-e2e: {case}: parity not judged: {why}", yellow=True)
    if exitstatus == 0 and (amiss := _amiss(config)):
        terminalreporter.write_line(f"afd-e2e: a failure, for {amiss}", red=True)


def _amiss(config: pytest.Config) -> str | None:
    narrowed = _typed(config, "-k", "-m") or any("::" in one for one in config.args)
    return config.stash[_RAN].amiss(narrowed)
