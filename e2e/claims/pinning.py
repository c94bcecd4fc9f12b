"""Every rank is on the device of its slot and on no other, by UUID, as NVML lists it."""

from __future__ import annotations

from e2e.claims.judgement import Judgement, judge
from e2e.claims.observation import Observation, RoleSeen
from e2e.claims.parallelism import Rank, live_ranks


def claims(seen: Observation) -> list[Judgement]:
    """None on a CPU."""
    return [_pinned(role) for role in seen.roles] if seen.plan.backend == "gpu" else []


def _pinned(role: RoleSeen) -> Judgement:
    on = {process.pid: process.devices for process in role.processes}
    slots = {rank.pid: _slot(rank, role) for rank in _computing(live_ranks(role))}
    wrong = [
        f"pid {pid} is on {_named(devices)}, not on {_named(slots[pid])}"
        if pid in slots
        else f"pid {pid}, no rank, is on {_named(devices)}"
        for pid, devices in on.items()
        if (devices != slots[pid] if pid in slots else not devices <= set(role.devices))
    ]
    held = not wrong and len(slots) == len(role.devices)
    return judge(
        f"{role.plan.role} pinning",
        held=held,
        expected="one rank on each of " + ", ".join(role.devices),
        seen="; ".join(wrong)
        or ", ".join(f"pid {pid} on {_named(on[pid])}" for pid in slots)
        or "no rank alive",
        where="NVML's processes of each device",
        proof="NVML listing each rank on the device of its slot, and on that alone",
    )


def _computing(ranks: list[Rank]) -> list[Rank]:
    """The workers; the engines where these do their workers' work themselves."""
    return [rank for rank in ranks if rank.kind == "Worker"] or ranks


def _slot(rank: Rank, role: RoleSeen) -> frozenset[str]:
    """vLLM gives each DP rank the next TP devices of the visible ones."""
    position = rank.dp * role.plan.tp + rank.tp
    return frozenset(role.devices[position : position + 1])


def _named(devices: frozenset[str]) -> str:
    return ", ".join(sorted(devices)) or "no device"
