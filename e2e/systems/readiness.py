"""Steps by which a role becomes ready, each cheap to ask: a log line, HTTP, the served model."""

from __future__ import annotations

import http.client
import json
from pathlib import Path

_BLOCK = 1 << 20
_BLOCKS = 16


class LogLine:
    """Whether a line has appeared in a growing log; reads only what is new."""

    def __init__(self, log: Path, line: str) -> None:
        self._log = log
        self._line = line.encode()
        self._offset = 0

    def seen(self) -> bool:
        """Reads at most 16 MiB a call, a MiB at a time."""
        try:
            with self._log.open("rb") as file:
                for _ in range(_BLOCKS):
                    file.seek(self._offset)
                    block = file.read(_BLOCK)
                    if self._line in block:
                        return True
                    self._offset += max(0, len(block) - len(self._line))
                    if len(block) < _BLOCK:
                        break
        except OSError:
            return False
        return False


def served_models(port: int, api_key: str, seconds: float) -> list[str] | None:
    """The model ids that /v1/models lists once /health says 200; None while it does not.

    Speaks to 127.0.0.1 directly, never through a proxy.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request("GET", "/health")
        health = connection.getresponse()
        health.read(4096)
        if health.status != 200:
            return None
        connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {api_key}"})
        reply = connection.getresponse()
        body = reply.read(1 << 20)
        if reply.status != 200:
            return None
        return [str(model["id"]) for model in json.loads(body)["data"]]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None
    finally:
        connection.close()
