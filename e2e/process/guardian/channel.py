"""JSON messages, one a line, over a socket between the harness and its guardian."""

from __future__ import annotations

import json
import socket
from typing import Any

Message = dict[str, Any]
_CHUNK = 1 << 16


class Channel:
    """One end. `closed` turns true when the other end is gone."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._rest = b""
        self.closed = False

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Message) -> None:
        """Raises OSError when the other end is gone."""
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, seconds: float = 0.0) -> list[Message]:
        """The messages at hand, waiting up to `seconds` for bytes to come.

        Empty when there is none as yet, and when the other end is gone.
        """
        self._socket.settimeout(seconds)
        try:
            data = self._socket.recv(_CHUNK)
        except (BlockingIOError, TimeoutError):
            return []
        except ConnectionResetError:
            data = b""
        finally:
            self._socket.settimeout(None)
        self.closed = self.closed or not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        self.closed = True
        self._socket.close()
