"""What opts in to a profile, and what must be set once opted in. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from e2e.errors import SetupMissing
from e2e.plan import settings
from e2e.plan.case import first_ports
from e2e.plan.evaluation import plan_evaluation
from e2e.profile.model import Profile

_OFF = ("", "0")
_READ_LATER = ("AFD_E2E_GSM8K", "AFD_E2E_EVIDENCE", "AFD_E2E_CACHE")


def missing_opt_in(profile: Profile, variables: Mapping[str, str]) -> list[str]:
    """What keeps the profile from being opted in, a phrase each; empty when it is."""
    gate = profile.gate
    missing = [
        f"{name}={value}" for name, value in gate.opt_in.items() if variables.get(name) != value
    ]
    missing += [f"{name}=..." for name in gate.opt_in_with if not variables.get(name)]
    missing += [f"{name} unset" for name in gate.unless if variables.get(name, "") not in _OFF]
    return missing


def opt_in_line(profile: Profile) -> str:
    """In one line: what opts in, and what has to be set with it."""
    gate = profile.gate
    words = [f"{name}={value}" for name, value in gate.opt_in.items()]
    words += [f"{name}=..." for name in gate.opt_in_with]
    with_it = [f"{name}=..." for name in _needed(profile) if name not in gate.opt_in_with]
    line = f"set {' '.join(words)} to opt in"
    if with_it:
        line += f", with {' '.join(with_it)}"
    if gate.unless:
        line += f" (and leave {', '.join(gate.unless)} unset)"
    return line


def require(profile: Profile, variables: Mapping[str, str]) -> None:
    """Raises SetupMissing that names every variable that is missing or wrong.

    A profile that is named by its user is wanted, whatever other profiles `unless` speaks for.
    """
    missing = [name for name in _needed(profile) if not variables.get(name, "").strip()]
    problems = [
        _contradiction(name, value, variables)
        for name, value in profile.gate.opt_in.items()
        if variables.get(name) != value
    ]
    problems += [f"{name} is {'empty' if name in variables else 'not set'}" for name in missing]
    mends = [opt_in_line(profile)] if problems else []
    _raise_all(profile, problems, mends, _unusable(profile, variables, missing))


def require_usable(profile: Profile, variables: Mapping[str, str]) -> None:
    """Raises SetupMissing that names every variable that is set and cannot be used; what is not
    set may be missing."""
    not_set = [name for name in _needed(profile) if not variables.get(name)]
    _raise_all(profile, [], [], _unusable(profile, variables, not_set))


def _raise_all(
    profile: Profile, problems: list[str], mends: list[str], more: Iterable[SetupMissing]
) -> None:
    for unusable in more:
        device = f" (device {unusable.device})" if unusable.device else ""
        problems.append(unusable.what + device)
        mends.append(unusable.mend)
    if problems:
        raise SetupMissing(
            f"{profile.profile}: {'; '.join(dict.fromkeys(problems))}",
            mend="; ".join(dict.fromkeys(mends)),
        )


def _needed(profile: Profile) -> list[str]:
    """Variables that must hold something: the checkpoint's, unless a canary stands in for it."""
    gate = profile.gate
    model = [] if profile.model.canary else [profile.model.variable]
    return list(dict.fromkeys([*gate.opt_in_with, *model, *gate.needs]))


def _contradiction(name: str, value: str, variables: Mapping[str, str]) -> str:
    if not variables.get(name):
        return f"{name}={value} is not set"
    return f"{name} is {variables[name]!r}, and this profile takes {value!r}"


def _unusable(
    profile: Profile, variables: Mapping[str, str], missing: list[str]
) -> Iterator[SetupMissing]:
    """What the plan cannot use of the other variables; cases may find the same."""
    yield from _misspelt(profile, variables)
    readers: list[Callable[[], object]] = [
        partial(first_ports, profile, variables),
        partial(settings.limit, variables),
    ]
    if settings.DEVICES not in missing:
        readers.append(partial(settings.devices, profile, variables))
    for case in profile.cases.values():
        own = profile.evaluation_of(case)
        readers.append(partial(settings.threshold, own, variables))
        readers.append(partial(plan_evaluation, profile, case, variables))
    for reader in readers:
        try:
            reader()
        except SetupMissing as unusable:
            yield unusable


def _misspelt(profile: Profile, variables: Mapping[str, str]) -> Iterator[SetupMissing]:
    """Variables of the harness's that differ in a letter or two from one that is read: left alone,
    the default would be used in silence."""
    gate, own = profile.gate, f"AFD_{profile.hardware.backend.upper()}_E2E_"
    read = [settings.DEVICES, settings.PORT_BASE, settings.LIMIT, settings.THRESHOLD, *_READ_LATER]
    read += [f"{own}VLLM_BIN", profile.model.variable, *gate.opt_in]
    read += [*gate.opt_in_with, *gate.unless, *gate.needs]
    for name in variables:
        if name in read or not name.startswith(("AFD_E2E_", "AFD_GSM8K_", own)):
            continue
        for meant in difflib.get_close_matches(name, read, n=1, cutoff=0.9):
            what = f"{name} is set, and is not read; did you mean {meant}?"
            yield SetupMissing(what, mend=f"rename {name} to {meant}, or unset it")
