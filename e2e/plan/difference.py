"""The environment of a role, as a difference to the harness's own. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from e2e.plan.settings import VISIBLE
from e2e.profile.model import NEVER_INHERITED, Case, Profile

_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
# vLLM logs the ubatches of a step at this level only, and a live split has to be seen.
_SHOWS_UBATCHES = {"VLLM_LOGGING_LEVEL": "DEBUG"}


def to_set(
    profile: Profile, case: Case, devices: tuple[str, ...], variables: Mapping[str, str]
) -> dict[str, str]:
    """What a role gets beside or instead of what it inherits: the profile's and the case's own,
    its devices, its plugins, and loopback kept from the proxies that are set."""
    return {
        **profile.environment.set,
        **case.environment.set,
        **(_SHOWS_UBATCHES if case.execution.dbo is not None else {}),
        **no_proxy(variables),
        "VLLM_PLUGINS": _plugins(profile, case),
        **({VISIBLE: ",".join(devices)} if profile.hardware.backend == "gpu" else {}),
    }


def _plugins(profile: Profile, case: Case) -> str:
    """Those that the case names, after a split's AFD plugin. Empty has vLLM load none."""
    afd = profile.afd if case.native is None else None
    return ",".join([*([afd.plugin] if afd else []), *case.plugins])


def scrubbed(profile: Profile, case: Case) -> tuple[str, ...]:
    """Names and patterns that are never inherited."""
    own = [*profile.environment.scrub, *case.environment.scrub]
    return tuple(dict.fromkeys([*NEVER_INHERITED, *own]))


def to_unset(
    patterns: Iterable[str], variables: Mapping[str, str], set_anyway: Mapping[str, str]
) -> tuple[str, ...]:
    """Every plain name, and every variable that a pattern matches, in alphabetical order."""
    names: set[str] = set()
    for pattern in patterns:
        if "*" in pattern:
            names.update(name for name in variables if fnmatchcase(name, pattern))
        else:
            names.add(pattern)
    return tuple(sorted(names - set(set_anyway)))


def no_proxy(variables: Mapping[str, str]) -> dict[str, str]:
    """What keeps the proxies that are set, if any, from loopback."""
    proxied = any(value for name, value in variables.items() if name.lower() in _PROXIES)
    if not proxied:
        return {}
    kept = [variables.get("NO_PROXY", ""), variables.get("no_proxy", ""), *_LOOPBACK]
    hosts = [host.strip() for value in kept for host in value.split(",") if host.strip()]
    value = ",".join(dict.fromkeys(hosts))
    return {"NO_PROXY": value, "no_proxy": value}
