"""Versions and plugins of a server's own interpreter, asked of that interpreter."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from e2e.claims.processes import SeenProcess

PLUGIN_GROUP = "vllm.general_plugins"
_SECONDS = 30
_QUESTION = Path(__file__).with_name("ask_packages.py")


@dataclass(frozen=True)
class Plugin:
    """An entry point: `value` is `module:function`, `distribution` its name and version."""

    value: str
    distribution: str


@dataclass(frozen=True)
class Packages:
    """`versions` by distribution, of those whose module can be found. `modules`: packages of the
    plugins that can be found. `problem` says why nothing is known."""

    interpreter: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    plugins: Mapping[str, Plugin] = field(default_factory=dict)
    modules: frozenset[str] = frozenset()
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
                [interpreter, "-c", _QUESTION.read_text(encoding="utf-8"), PLUGIN_GROUP],
                env=dict(environ),
                cwd="/",
                capture_output=True,
                timeout=_SECONDS,
                check=True,
            )
            versions, plugins, modules = json.loads(answer.stdout.splitlines()[-1])
        except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
            return cls(interpreter=interpreter, problem=f"{interpreter} did not answer: {error}")
        points = {name: Plugin(*point) for name, point in plugins.items()}
        return cls(interpreter, versions, points, frozenset(modules))
