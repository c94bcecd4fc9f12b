"""What joins the two stand-ins of a pair: no token without FFN.

FFN listens on the connector's port, as its rank 0 does, and holds a connection to itself. Attention
sends it a word for each token that is asked for, and waits for the echo: for ever, if FFN is gone.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

_WORD = 16


def listen(config: dict[str, Any], met: Callable[[str], None]) -> socket.socket:
    """FFN's side; `met` is called with each word before its echo is sent."""
    listener = socket.create_server((config["host"], config["port"]), backlog=16)

    def serve(peer: socket.socket) -> None:
        while word := peer.recv(_WORD, socket.MSG_WAITALL):
            met(word.decode().strip())
            peer.sendall(word)

    def accept() -> None:
        while True:
            peer, _ = listener.accept()
            threading.Thread(target=serve, args=(peer,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener


class Connection:
    """Attention's side, and FFN's own."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._socket = socket.create_connection((config["host"], config["port"]))
        self._lock = threading.Lock()

    def cross(self, word: str, gone: Callable[[], object]) -> None:
        """Returns when FFN has answered; calls `gone`, which waits, when it cannot any more."""
        with self._lock:
            try:
                self._socket.sendall(word.ljust(_WORD).encode())
                whole = len(self._socket.recv(_WORD, socket.MSG_WAITALL)) == _WORD
            except OSError:
                whole = False
        if not whole:
            gone()
