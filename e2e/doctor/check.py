"""All checks of a case, as a list or as a requirement."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from e2e import gate, session
from e2e.devices.model import DeviceDriver, Inventory
from e2e.devices.nvml import NvmlDriver
from e2e.doctor import accelerators, machine, model, questions, server
from e2e.doctor.result import CheckResult, failed, passed
from e2e.errors import HarnessError, SetupMissing
from e2e.evidence.case import CaseEvidence
from e2e.plan import CasePlan
from e2e.profile.model import Profile


def check(
    plan: CasePlan,
    profile: Profile,
    variables: Mapping[str, str],
    open_driver: Callable[[], DeviceDriver] = NvmlDriver,
) -> list[CheckResult]:
    """Opt-in and everything else that the case needs; takes about a second, imports neither torch
    nor vLLM, downloads nothing and changes nothing."""
    there = _inventory(plan, open_driver)
    evidence = session.evidence_root(None, variables)
    return [_opted_in(profile, variables), *_checks(plan, variables, evidence, there)]


def require(
    plan: CasePlan,
    evidence: CaseEvidence,
    open_driver: Callable[[], DeviceDriver] = NvmlDriver,
) -> None:
    """The checks of a case that is about to be launched; the hardware goes into the evidence.

    Raises SetupMissing with every check that fails and its mend.
    """
    there = _inventory(plan, open_driver)
    if isinstance(there, Inventory):
        evidence.record.hardware.update(there.facts())
        evidence.save()
    results = _checks(plan, os.environ, evidence.folder.absolute(), there)
    missing = [result for result in results if not result.held]
    if missing:
        raise SetupMissing(
            f"{len(missing)} of {len(results)} checks before the launch fail: "
            + ", ".join(result.name for result in missing),
            lines=[f"{result.name}: {result.seen}" for result in missing],
            mend="; ".join(dict.fromkeys(result.mend for result in missing)),
        )


def _checks(
    plan: CasePlan,
    variables: Mapping[str, str],
    folder: Path,
    there: Inventory | HarnessError,
) -> list[CheckResult]:
    return [
        *server.checks(plan, variables),
        *accelerators.checks(plan, variables, there),
        *model.checks(plan),
        questions.check(plan, variables),
        *questions.shown(plan),
        *machine.checks(plan, variables, folder),
    ]


def _opted_in(profile: Profile, variables: Mapping[str, str]) -> CheckResult:
    try:
        gate.require(profile, variables)
    except SetupMissing as missing:
        return failed("opt-in", missing.what, missing.mend)
    opted = ", ".join(f"{name}={value}" for name, value in profile.gate.opt_in.items())
    return passed("opt-in", opted or "no variable is needed")


def _inventory(plan: CasePlan, open_driver: Callable[[], DeviceDriver]) -> Inventory | HarnessError:
    try:
        return accelerators.inventory(plan, open_driver)
    except HarnessError as problem:
        return problem
