"""The complete environment of a role: inherited, less what the plan unsets, plus what it sets and
what only a run knows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from e2e.plan import RolePlan


def role_environment(
    role: RolePlan, inherited: Mapping[str, str], private: Path, api_key: str
) -> dict[str, str]:
    """`private` is the run's own folder for sockets and temporary files."""
    environment = {
        name: value for name, value in inherited.items() if name not in set(role.env_unset)
    }
    environment.update(role.env_set)
    environment.update(
        VLLM_API_KEY=api_key,
        VLLM_RPC_BASE_PATH=str(private),
        TMPDIR=str(private),
        SPT_NOENV="1",  # setproctitle leaves /proc/<pid>/environ whole: claims are read from it
    )
    return environment
