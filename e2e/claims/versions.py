"""The software of the server's own interpreter, and that it is what wrote the log."""

from __future__ import annotations

import re

from e2e.claims.judgement import Judgement, judge
from e2e.claims.observation import Observation, RoleSeen

_NEEDED = ("vllm", "torch", "transformers")


def claims(seen: Observation) -> list[Judgement]:
    return [_versions(role) for role in seen.roles]


def software(seen: Observation) -> dict[str, str]:
    """Package and version; prefixed with the role where two roles differ."""
    known: dict[str, str] = {}
    for role in seen.roles:
        for package, version in role.packages.versions.items():
            differs = known.get(package, version) != version
            known[f"{role.plan.role} {package}" if differs else package] = version
        for name in role.plan.env_set.get("VLLM_PLUGINS", "").split(","):
            if plugin := role.packages.plugins.get(name):
                known[f"plugin {name}"] = f"{plugin.distribution} ({plugin.value})"
    return known


def _versions(role: RoleSeen) -> Judgement:
    packages = role.packages
    known = {name: packages.versions[name] for name in _NEEDED if name in packages.versions}
    running = _running(role)
    same = running is not None and _base(known.get("vllm", "")) == _base(running)
    return judge(
        f"{role.plan.role} versions",
        held=len(known) == len(_NEEDED) and same,
        expected=f"{', '.join(_NEEDED)} of the interpreter that runs the server",
        seen=packages.problem
        or ", ".join(f"{name} {version}" for name, version in known.items())
        + f"; the log says vLLM {running}",
        where=packages.interpreter or "no interpreter",
        proof="the packages of the live processes' interpreter, vLLM's version as in the log",
    )


def _running(role: RoleSeen) -> str | None:
    line = role.log.first("config")
    found = re.search(r"engine \(v([^)]*)\)", line.text) if line else None
    return found[1] if found else None


def _base(version: str) -> str:
    """Without the local part: the log of a CPU build says 0.32.0, its package 0.32.0+cpu."""
    return version.partition("+")[0]
