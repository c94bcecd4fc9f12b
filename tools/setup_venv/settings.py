"""What is to be installed: read from pyproject.toml, and condensed to a key."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.setup_venv.errors import SetupError

CPU = "cpu"


@dataclass(frozen=True)
class StandIn:
    """A distribution installed as metadata alone."""

    name: str
    version: str

    @property
    def dist_info(self) -> str:
        """The folder that pip makes for it; gone once something replaced the stand-in."""
        return f"{self.name.replace('-', '_')}-{self.version}.dist-info"


@dataclass(frozen=True)
class Settings:
    """`torch` and `stand_ins` are there with the cpu extra alone. `disk_gib` is what it all takes.
    `key` changes with anything that asks for another environment."""

    extras: tuple[str, ...]
    torch: str | None
    stand_ins: tuple[StandIn, ...]
    cpu_index: str
    disk_gib: float
    key: str


def read(root: Path, extras: str | None = None) -> Settings:
    """Settings of the project at `root`; `extras` (comma-separated) replaces its default ones.

    Raises SetupError for an extra that the project does not have.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    setup = project["tool"]["afd-e2e"]["setup"]
    offered: Mapping[str, list[str]] = project["project"]["optional-dependencies"]
    wanted = setup["extras"] if extras is None else re.findall(r"[^,\s]+", extras)
    chosen = tuple(sorted(set(wanted)))
    if unknown := [name for name in chosen if name not in offered]:
        raise SetupError(
            f"AFD_E2E_EXTRAS names {', '.join(unknown)}: this project has no such extra",
            f"choose among {', '.join(offered)}",
        )
    cpu = CPU in chosen
    return Settings(
        extras=chosen,
        torch=requirement(offered[CPU], "torch") if cpu else None,
        stand_ins=tuple(StandIn(*item) for item in setup["stand-ins"].items()) if cpu else (),
        cpu_index=setup["cpu-index"],
        disk_gib=setup["disk"]["base"] + (setup["disk"][CPU] if cpu else 0),
        key=_key(project, chosen, sorted(Path(__file__).parent.glob("*.py"))),
    )


def requirement(requirements: list[str], name: str) -> str:
    """The one requirement of this distribution. Raises KeyError."""
    for candidate in requirements:
        if re.split(r"[\s\[=<>!~;@]", candidate, maxsplit=1)[0].lower() == name:
            return candidate
    raise KeyError(name)


def _key(project: Mapping[str, Any], extras: tuple[str, ...], sources: list[Path]) -> str:
    asked = {
        "build": [project["build-system"], project["tool"]["hatch"]],
        "project": project["project"],
        "setup": project["tool"]["afd-e2e"]["setup"],
        "extras": extras,
        "sources": [source.read_text(encoding="utf-8") for source in sources],
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
