"""A case's roles, launched and treated as one deployment with one verdict."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from e2e.errors import ResidueLeft, ServerFailed
from e2e.evidence.case import CaseEvidence
from e2e.evidence.record import RoleRecord
from e2e.plan import CasePlan, RolePlan
from e2e.process import Command, OwnedProcess, Owner, ProcessInfo
from e2e.process.guardian.table import is_alive
from e2e.process.log import first_error, message
from e2e.process.signals import current
from e2e.process.stacks import stacks_of
from e2e.systems.environment import role_environment
from e2e.systems.executable import resolve
from e2e.systems.readiness import LogLine, served_models

if TYPE_CHECKING:
    from e2e.oracle.client import Endpoint

_POLL_SECONDS = 0.1
_HTTP_SECONDS = 0.5
_LAST_LINES = 20
_STACK_SECONDS = 10
_MEMBER_TITLE = "VLLM::"
"""How vLLM titles the engines, workers and coordinators that a role cannot do without."""


@dataclass(frozen=True)
class LiveRole:
    plan: RolePlan
    process: OwnedProcess


class Deployment:
    """The live roles of a case, in launch order. Any role's death fails whatever waits for it."""

    def __init__(
        self,
        plan: CasePlan,
        roles: dict[str, LiveRole],
        api_key: str,
        owner: Owner,
        evidence: CaseEvidence,
    ) -> None:
        self.plan = plan
        self._owner = owner
        self.roles = roles
        self._api_key = api_key
        self._evidence = evidence
        self._launched = time.monotonic()
        self._named_dead: set[str] = set()
        self._members: list[tuple[LiveRole, ProcessInfo]] = []
        self._started = False

    @property
    def endpoint(self) -> Endpoint:
        """Where requests go: the native or Attention role's OpenAI API."""
        from e2e.oracle.client import Endpoint

        entry = self.plan.entry_role
        return Endpoint(
            base_url=f"http://127.0.0.1:{entry.ports['http']}",
            served_name=entry.served_name,
            api_key=self._api_key,
        )

    def check_alive(self) -> None:
        """Raises ServerFailed naming the roles that have exited, or the engines and workers that a
        role has lost since it was ready, with the last lines of its log; HarnessError when the
        guardian is gone."""
        self._owner.check()
        dead = [
            (role, _ended(code))
            for role in self.roles.values()
            if (code := role.process.exit_code()) is not None
        ] or [
            (role, f"has lost its process {_named(member)}")
            for role, member in self._members
            if not is_alive(member.identity)
        ]
        if not dead:
            return
        first, _ = dead[0]
        self._named_dead.update(role.plan.role for role, _ in dead)
        raise ServerFailed(
            " and ".join(f"{role.plan.role} {what}" for role, what in dead),
            role=first.plan.role,
            log=first.process.log,
            lines=_why(first.process),
            mend="its log shows why, often at its first error"
            if first.process.last_lines(1)
            else "its log is empty: run its command by hand, as `afd-e2e plan` prints it",
        )

    def wait_until_generating(self) -> None:
        """Until a token has been generated through all roles. Raises ServerFailed at a role's
        exit at once, or at the deadlines `ready` and `probe` with stacks and last lines."""
        with self._evidence.phase("ready"):
            deadline = self._launched + self.plan.limits.ready
            for role in self.roles.values():
                self._wait_for(role, deadline)
            self._generate_one_token()
            for role in self.roles.values():
                self._members += [
                    (role, process)
                    for process in role.process.living()
                    if process.command.startswith(_MEMBER_TITLE)
                ]
                self._record(role, ready_seconds=round(time.monotonic() - self._launched, 2))
            self._started = True

    def _wait_for(self, role: LiveRole, deadline: float) -> None:
        ready = self._is_ready(role)
        while not ready():
            self.check_alive()
            if time.monotonic() > deadline:
                raise self._stuck(
                    f"{role.plan.role} was not ready within {self.plan.limits.ready:g} s", role
                )
            last = role.process.last_lines(1)
            self._evidence.progress(
                f"{role.plan.role} starting, {time.monotonic() - self._launched:.0f} s"
                + (f": {message(last[0])}" if last else "")
            )
            time.sleep(_POLL_SECONDS)

    def _is_ready(self, role: LiveRole):
        if role.plan.ready_line is not None:
            return LogLine(role.process.log, role.plan.ready_line).seen
        port, name = role.plan.ports["http"], role.plan.served_name
        return lambda: name in (served_models(port, self._api_key, _HTTP_SECONDS) or [])

    def _generate_one_token(self) -> None:
        from e2e.oracle.client import probe

        entry = self.roles[self.plan.entry_role.role]
        self._evidence.progress("asking for the first token")
        seen = probe(self.endpoint, self.plan.limits.probe, self.check_alive)
        if seen is not None:
            raise self._stuck(f"{entry.plan.role} generates no token: {seen}", entry)

    def hung(self, what: str) -> ServerFailed:
        """A failure of the entry role, with the last lines of every role; the stacks of all their
        processes are kept beside the logs."""
        entry = self.roles[self.plan.entry_role.role]
        return self._stuck(f"{entry.plan.role} {what}", entry)

    def _stuck(self, what: str, role: LiveRole) -> ServerFailed:
        lines: list[str] = []
        stacks: dict[str, list[str]] = {}
        for other in self.roles.values():
            lines += [
                f"[{other.plan.role}] {line}" for line in other.process.last_lines(_LAST_LINES)
            ]
            stacks[other.plan.role] = other.process.stacks(_STACK_SECONDS)
        stacks["others"] = stacks_of(self._owner.living_of(""), _STACK_SECONDS)
        for name, found in stacks.items():
            if found:
                self._evidence.attach(f"{name}.stacks.txt", "\n".join(found) + "\n")
        return ServerFailed(
            what,
            role=role.plan.role,
            log=role.process.log,
            lines=lines,
            mend="stacks of all processes are in *.stacks.txt beside the log; raise the limit if "
            "it only needs longer",
        )

    def stop(self) -> None:
        """Entry role first, so that nothing is in flight when the others end. What is not a clean
        stop is recorded as a failure: a forced kill, an unexpected exit code of a server that had
        started. How one ends in the midst of its start, which another failure ended, is no news."""
        entry = self.plan.entry_role.role
        for role in sorted(self.roles.values(), key=lambda role: role.plan.role != entry):
            self._name_lost(role)
            self._stop_role(role)

    def _name_lost(self, role: LiveRole) -> None:
        """What a role lost while another was being stopped, unless it may fail with it."""
        lost = [
            _named(member)
            for owner, member in self._members
            if owner is role and not is_alive(member.identity)
        ]
        if lost and set(role.plan.exit_codes) == {0} and not self._named_dead:
            self._named_dead.add(role.plan.role)
            self._evidence.failure(
                ServerFailed(
                    f"{role.plan.role} had lost its process {' and '.join(lost)} before it was "
                    "stopped",
                    role=role.plan.role,
                    log=role.process.log,
                    lines=_why(role.process),
                    mend="its log shows why, often at its first error",
                )
            )

    def _stop_role(self, role: LiveRole) -> None:
        limits = self.plan.limits
        peak = role.process.peak_memory_mib()
        report = role.process.stop(limits.stop, limits.kill)
        self._record(
            role,
            exit_code=report.exit_code,
            forced_kill=report.forced_kill,
            stop_seconds=round(report.seconds, 2),
            peak_memory_mib=round(peak, 1),
            pids_seen=role.process.pids_seen(),
        )
        if report.forced_kill:
            self._evidence.failure(
                ResidueLeft(
                    f"{role.plan.role} had to be killed, {limits.stop:g} s after SIGTERM",
                    role=role.plan.role,
                    log=role.process.log,
                    lines=role.process.last_lines(_LAST_LINES),
                    mend="a server that needs a SIGKILL can leave device memory behind",
                )
            )
        elif (
            self._started
            and report.exit_code not in role.plan.exit_codes
            and role.plan.role not in self._named_dead
        ):
            self._evidence.failure(
                ServerFailed(
                    f"{role.plan.role} {_ended(report.exit_code)} when stopped, expected "
                    + " or ".join(map(str, role.plan.exit_codes)),
                    role=role.plan.role,
                    log=role.process.log,
                    lines=role.process.last_lines(_LAST_LINES),
                )
            )

    def _record(self, role: LiveRole, **seen: object) -> None:
        known = next(r for r in self._evidence.record.roles if r.role == role.plan.role)
        self._evidence.role(known.model_copy(update=seen))


@contextmanager
def launch(plan: CasePlan, owner: Owner, evidence: CaseEvidence) -> Iterator[Deployment]:
    """Spawn every role of the plan in order; stop all of them on exit, whatever happened."""
    api_key = secrets.token_urlsafe(24)
    evidence.secrets.append(api_key)
    roles: dict[str, LiveRole] = {}
    deployment = Deployment(plan, roles, api_key, owner, evidence)
    try:
        with evidence.phase("launch"):
            for role in plan.roles:
                roles[role.role] = _spawn(role, owner, evidence, api_key)
        yield deployment
        with evidence.phase("liveness"):
            deployment.check_alive()
    finally:
        with current().deferred(), evidence.phase("stop"):
            deployment.stop()


def _spawn(role: RolePlan, owner: Owner, evidence: CaseEvidence, api_key: str) -> LiveRole:
    argv = (str(resolve(role.argv[0])), *role.argv[1:])
    log = Path(evidence.folder) / f"{role.role}.log"
    evidence.role(
        RoleRecord(
            role=role.role,
            argv=list(argv),
            env_set=dict(role.env_set),
            env_unset=list(role.env_unset),
            devices=list(role.devices),
            ports=dict(role.ports),
            log=log.name,
            expected_exit_codes=list(role.exit_codes),
        )
    )
    environment = role_environment(role, os.environ, owner.private, api_key)
    process = owner.spawn(
        Command(role=role.role, argv=argv, env=environment, cwd=owner.private, log=log)
    )
    live = LiveRole(role, process)
    evidence.role(evidence.record.roles[-1].model_copy(update={"pid": process.pid}))
    return live


def _why(process: OwnedProcess) -> list[str]:
    """The last lines of a role's log, and its first error before them."""
    last = process.last_lines(_LAST_LINES)
    first = [line for line in first_error(process.log) if line not in last]
    return [*first, "...", *last] if first else last


def _named(member: ProcessInfo) -> str:
    return f"{member.command} (pid {member.pid})"


def _ended(code: int | None) -> str:
    if code is None:
        return "has no exit code"
    return f"was killed by signal {-code}" if code < 0 else f"exited with {code}"
