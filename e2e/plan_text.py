"""A CasePlan as a JSON document, and as commands that can be pasted into a shell."""

from __future__ import annotations

import re
import shlex
from dataclasses import asdict

from e2e.plan import CasePlan, RolePlan
from e2e.plan.checks import checks

_VARIABLE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")


def as_json(plan: CasePlan) -> dict[str, object]:
    """`{profile, case, roles, evaluation, checks}`, and `inherited` where the profile extends
    another: the path of each key that it takes over, and from which profile."""
    document: dict[str, object] = {
        "profile": plan.profile,
        "case": plan.case,
        "roles": [
            {
                "role": role.role,
                "argv": list(role.argv),
                "env": {"set": dict(role.env_set), "unset": list(role.env_unset)},
                "devices": list(role.devices),
                "ports": dict(role.ports),
            }
            for role in plan.roles
        ],
        "evaluation": asdict(plan.evaluation),
        "checks": checks(plan),
    }
    if plan.inherited:
        document["inherited"] = dict(plan.inherited)
    return document


def as_shell(plan: CasePlan) -> str:
    """One command for each role, in launch order, between comments that say the rest."""
    blocks = [f"# {plan.id}"]
    blocks += [_command(role) for role in plan.roles]
    blocks.append("\n".join(f"# {check}" for check in checks(plan)))
    if plan.inherited:
        lines = [f"#   {path}: {source}" for path, source in plan.inherited.items()]
        blocks.append("\n".join(["# inherited:", *lines]))
    return "\n\n".join(blocks) + "\n"


def _command(role: RolePlan) -> str:
    ports = ", ".join(f"{name} {port}" for name, port in role.ports.items())
    devices = f"devices {', '.join(role.devices)}; " if role.devices else ""
    ready = f"\n# ready when it logs: {role.ready_line}" if role.ready_line else ""
    unset = [f"-u {shlex.quote(name)}" for name in role.env_unset]
    settings = [f"{name}={shlex.quote(value)}" for name, value in role.env_set.items()]
    lines = ["env", *unset, *settings, *_flags(role.argv)]
    return f"# {role.role}: {devices}ports {ports}{ready}\n" + " \\\n  ".join(lines)


def _flags(argv: tuple[str, ...]) -> list[str]:
    """`vllm serve MODEL` and then each flag with its values, a line each."""
    lines = [[_quoted(word) for word in argv[:3]]]
    for word in argv[3:]:
        if word.startswith("--"):
            lines.append([])
        lines[-1].append(_quoted(word))
    return [" ".join(words) for words in lines]


def _quoted(word: str) -> str:
    """Quoted for a shell; the variable that stands for an unknown model is left to expand."""
    return f'"{word}"' if _VARIABLE.fullmatch(word) else shlex.quote(word)
