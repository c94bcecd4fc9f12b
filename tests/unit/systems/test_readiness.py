"""Steps of readiness: a growing log, and a served model."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from e2e.systems.readiness import LogLine, served_models


def test_a_line_is_seen_when_it_has_been_written(tmp_path: Path) -> None:
    log = tmp_path / "ffn.log"
    line = LogLine(log, "workers run connector loop.")
    assert not line.seen()
    log.write_bytes(b"\xff\xfe starting\nworkers run conn")
    assert not line.seen()
    with log.open("ab") as file:
        file.write(b"ector loop.\n")
    assert line.seen()


@contextmanager
def server(health: int, models: bytes) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b"" if self.path == "/health" else models
            self.send_response(health if self.path == "/health" else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield httpd.server_port
        finally:
            httpd.shutdown()
            thread.join()


def test_models_are_listed_once_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with server(200, json.dumps({"data": [{"id": "canary-native"}]}).encode()) as port:
        assert served_models(port, "key", 2) == ["canary-native"]


@pytest.mark.parametrize(
    ("health", "models"),
    [(503, b'{"data": []}'), (200, b"not json"), (200, b'{"data": 3}'), (200, b'{"x": []}')],
)
def test_anything_else_is_not_ready(health: int, models: bytes) -> None:
    with server(health, models) as port:
        assert served_models(port, "key", 2) is None


def test_a_closed_port_is_not_ready() -> None:
    with server(200, b"{}") as port:
        pass
    assert served_models(port, "key", 0.5) is None
