"""What one `vllm serve` of a case is: command, environment, devices, ports. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from e2e.errors import ProfileError
from e2e.plan import argv, difference, settings
from e2e.profile.model import Case, Layout, Profile, RoleName

Role = RoleName

# An FFN server that is told to stop exits with 1, by a KeyboardInterrupt in its connector loop.
_EXIT_CODES: dict[Role, tuple[int, ...]] = {"native": (0,), "attention": (0,), "ffn": (0, 1)}


@dataclass(frozen=True)
class RolePlan:
    """One `vllm serve`. `argv` and the environment difference are complete but for
    what only a run knows: its API key, its private folders and its ownership marker."""

    role: Role
    argv: tuple[str, ...]
    env_set: Mapping[str, str]
    env_unset: tuple[str, ...]
    devices: tuple[str, ...]
    ports: Mapping[str, int]
    served_name: str
    dp: int
    tp: int
    ep: int | None
    ready_line: str | None
    exit_codes: tuple[int, ...]


def plan_role(
    profile: Profile,
    case: Case,
    role: Role,
    model: str,
    first_ports: tuple[int, int],
    variables: Mapping[str, str],
) -> RolePlan:
    layout = _layout(case, role)
    args = {**profile.server.args, **case.args, **layout.args}
    slots = settings.devices(profile, variables)
    devices = tuple(slots[slot] for slot in layout.devices) if slots else ()
    name = argv.served_name(profile.server.name, role)
    ports = _ports(case, role, *first_ports)
    env_set = difference.to_set(profile, case, devices, variables)
    executable = settings.executable(profile.hardware.backend, variables)
    return RolePlan(
        role=role,
        argv=(
            *argv.head(executable, model, name, profile.time_limits),
            *argv.parallel(layout, _expert_parallel(case)),
            *_additional_config(profile, case, role, first_ports[1]),
            *argv.execution_mode(case.execution, args),
            *argv.address(ports["http"]),
            *argv.own_flags(args),
        ),
        env_set=env_set,
        env_unset=difference.to_unset(difference.scrubbed(profile, case), variables, env_set),
        devices=devices,
        ports=ports,
        served_name=name,
        dp=layout.dp,
        tp=layout.tp,
        ep=layout.ep or None,
        ready_line=profile.afd.ffn_ready if role == "ffn" and profile.afd else None,
        exit_codes=tuple(profile.teardown.exit_codes.get(role, _EXIT_CODES[role])),
    )


def _layout(case: Case, role: Role) -> Layout:
    layout = {"native": case.native, "attention": case.attention, "ffn": case.ffn}[role]
    if layout is None:
        raise ProfileError(f"the case has no {role} layout")
    return layout


def _expert_parallel(case: Case) -> bool:
    """Both roles of a split are told: Attention has no experts, but the same parallel groups."""
    return any(layout and layout.ep for layout in (case.native, case.attention, case.ffn))


def ranks(case: Case) -> tuple[int, int]:
    """The numbers of Attention and of FFN ranks; 0 of a role that the case does not have."""
    attention, ffn = (len(layout.devices) if layout else 0 for layout in (case.attention, case.ffn))
    return attention, ffn


def _ports(case: Case, role: Role, http: int, connector: int) -> dict[str, int]:
    """FFN opens the connector's port, and one more for the group of each of its ranks."""
    if role != "ffn":
        return {"http": http}
    groups = {f"afd-group-{rank}": connector + 1 + rank for rank in range(ranks(case)[1])}
    return {"http": http + 1, "afd": connector, **groups}


def _additional_config(profile: Profile, case: Case, role: Role, port: int) -> list[str]:
    if role == "native" or profile.afd is None:
        return []
    return argv.additional_config(profile.afd, role, port, ranks(case))
