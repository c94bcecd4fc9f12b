"""A plan as a JSON document, and as commands that can be pasted into a shell."""

from __future__ import annotations

import re
import shlex
from dataclasses import asdict

from e2e.plan import CasePlan, LoadPlan, Measurement, RolePlan
from e2e.plan.checks import checks

_VARIABLE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")


def as_json(plan: CasePlan) -> dict[str, object]:
    """`{profile, case, roles, evaluation, checks}`, and `inherited` where the profile extends
    another: the path of each key that it takes over, and from which profile."""
    document = {
        **_servers(plan),
        "evaluation": asdict(plan.evaluation),
        "checks": checks(plan),
    }
    if plan.inherited:
        document["inherited"] = dict(plan.inherited)
    return document


def measurement_as_json(measurement: Measurement) -> dict[str, object]:
    """`{profile, case, roles, load, judged_by}`; `load` has a command for each run."""
    load = measurement.load
    return {
        **_servers(measurement.deployment),
        "load": [
            {
                "seed": seed,
                "counts": seed in load.seeds,
                "argv": list(load.argv(seed)),
                "env": {"set": dict(load.env_set)},
            }
            for seed in (*load.warm_up_seeds, *load.seeds)
        ],
        "judged_by": _judgement(load),
    }


def _servers(plan: CasePlan) -> dict[str, object]:
    return {
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
    }


def as_shell(plan: CasePlan) -> str:
    """One command for each role, in launch order, between comments that say the rest."""
    blocks = [f"# {plan.id}"]
    blocks += [_command(role) for role in plan.roles]
    blocks.append("\n".join(f"# {check}" for check in checks(plan)))
    if plan.inherited:
        lines = [f"#   {path}: {source}" for path, source in plan.inherited.items()]
        blocks.append("\n".join(["# inherited:", *lines]))
    return "\n\n".join(blocks) + "\n"


def measurement_as_shell(measurement: Measurement) -> str:
    """The servers, each for a terminal of its own, and then the load, one run after another."""
    plan, load = measurement.deployment, measurement.load
    blocks = [f"# {plan.id}"]
    blocks += [_command(role) for role in plan.roles]
    blocks.append(_load(load))
    blocks.append("\n".join(f"# {line}" for line in _judgement(load)))
    return "\n\n".join(blocks) + "\n"


def _load(load: LoadPlan) -> str:
    seeds = " ".join(map(str, (*load.warm_up_seeds, *load.seeds)))
    settings = [f"{name}={shlex.quote(value)}" for name, value in load.env_set.items()]
    words = ["env", *settings] if settings else []
    command = " \\\n    ".join([*words, *_flags(load.argv("$seed"))])
    warm_ups = len(load.warm_up_seeds)
    return (
        f"# load: once it answers, {warm_ups} to warm up and {len(load.seeds)} that count\n"
        f"for seed in {seeds}; do\n  {command}\ndone"
    )


def _judgement(load: LoadPlan) -> list[str]:
    return [
        f"void: a run with fewer than {load.requests} completed requests",
        "compared: mean and standard deviation over the runs of request_throughput, "
        "output_throughput, mean_ttft_ms, mean_tpot_ms, mean_itl_ms, mean_e2el_ms",
        "parity, not a win: a difference within one standard deviation",
    ]


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
    """Quoted for a shell; what stands for an unknown model, and for the seed of a run, is left to
    expand."""
    if _VARIABLE.fullmatch(word) or word.endswith("$seed.json"):
        return f'"{word}"'
    return shlex.quote(word)
