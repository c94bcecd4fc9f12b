"""What was seen of a live deployment, gathered once; claims judge it and look at nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from e2e.claims import log, processes
from e2e.claims.packages import Packages
from e2e.claims.processes import SeenProcess
from e2e.devices import DeviceDriver, Inventory, look, resolve
from e2e.plan import CasePlan, RolePlan

if TYPE_CHECKING:
    from e2e.oracle.request import Endpoint


class HasPid(Protocol):
    @property
    def pid(self) -> int: ...


class Process(Protocol):
    @property
    def log(self) -> Path: ...

    def living(self) -> Sequence[HasPid]: ...

    def stopped(self) -> AbstractContextManager[None]: ...


class LiveRole(Protocol):
    @property
    def plan(self) -> RolePlan: ...

    @property
    def process(self) -> Process: ...


class Deployment(Protocol):
    @property
    def roles(self) -> Mapping[str, LiveRole]: ...

    @property
    def endpoint(self) -> Endpoint: ...

    def check_alive(self) -> None: ...


@dataclass(frozen=True)
class RoleSeen:
    """One role: its log, its living processes, and the packages of its own interpreter.

    `devices` are the UUIDs of the planned devices, in the order of the slots.
    """

    plan: RolePlan
    log: log.LogFacts
    processes: tuple[SeenProcess, ...]
    packages: Packages
    devices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Observation:
    """The whole deployment. `config` is the config.json of the plan's checkpoint, None where it
    could not be read."""

    plan: CasePlan
    roles: tuple[RoleSeen, ...]
    config: Mapping[str, Any] | None = field(default=None)


def observe(
    plan: CasePlan, deployment: Deployment, open_driver: Callable[[], DeviceDriver]
) -> Observation:
    """Everything at once. Raises SetupMissing and HarnessError where devices cannot be asked."""
    there = None if plan.backend == "cpu" else look(open_driver)
    return Observation(
        plan=plan,
        roles=tuple(_observe_role(role, there) for role in deployment.roles.values()),
        config=read_config(Path(plan.model)),
    )


def read_config(model: Path) -> Mapping[str, Any] | None:
    """What config.json says; None where it cannot be read, or is no mapping."""
    try:
        config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return config if isinstance(config, dict) else None


def _observe_role(role: LiveRole, there: Inventory | None) -> RoleSeen:
    on: dict[int, set[str]] = {}
    for device in there.devices if there else ():
        for holder in () if device.identity.partitioned else device.holders:
            on.setdefault(holder.pid, set()).add(device.uuid)
    pids = [process.pid for process in role.process.living()]
    living = tuple(processes.observe(pids, {pid: frozenset(uuids) for pid, uuids in on.items()}))
    return RoleSeen(
        plan=role.plan,
        log=log.read(role.process.log).signed_by({p.pid: p.title for p in living}),
        processes=living,
        packages=Packages.of(processes.interpreter_of(living)),
        devices=tuple(d.uuid for d in resolve(role.plan.devices, there)) if there else (),
    )
