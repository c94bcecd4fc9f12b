"""A stand-in for `vllm serve`, native or one of an Attention/FFN pair: the same command line, the
same signs of life, no model.

It logs and answers as vLLM does where the harness looks, keeps worker processes that outlive a
killed leader, and misbehaves as AFD_STANDIN tells it (see `faults`). It answers the questions of
the file that it is given with the answers in there, and any other with "#### 42".
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

import link
import replies
from acts import act, start_python
from faults import Orders
from vllm_log import ffn_line, start_lines

_WORKER = "import time; time.sleep(600)"
_KILL_SECONDS = 2.0
_PEER_SECONDS = 60.0
_LATE_SECONDS = 0.3


class StandIn:
    """One role. `held` keeps open what a fault has opened; `others` are children of faults.
    `listener` is the socket that others reach it at."""

    def __init__(self, arguments: argparse.Namespace, orders: Orders) -> None:
        self.arguments = arguments
        self.orders = orders
        self.workers: list[subprocess.Popen[bytes]] = []
        self.others: list[subprocess.Popen[bytes]] = []
        self.held: list[IO[bytes] | Any] = []
        self.ready = threading.Event()
        self.stopping = threading.Event()
        self.listener: socket.socket
        self.afd: dict[str, Any] = arguments.additional_config.get("afd", {})
        self.role: str = self.afd.get("role", "native")
        self._connection: link.Connection | None = None
        self._met = {"token": 0, "evaluation": 0}
        self._meeting = threading.Lock()
        self._answers = _answers(orders.answers)

    def run(self) -> int:
        """The exit code, once SIGTERM has been obeyed."""
        signal.signal(signal.SIGTERM, lambda *_: self.stopping.set())
        if self.orders.told("other_mode", self.role):
            self.arguments.enforce_eager = not self.arguments.enforce_eager
        ranks = self.arguments.data_parallel_size
        for rank in range(ranks):
            title = f"VLLM::EngineCore_DP{rank}" if ranks > 1 else "VLLM::EngineCore"
            self.workers.append(start_python(_WORKER, title))
        for line in start_lines(self.arguments, os.getpid(), [w.pid for w in self.workers]):
            print(line, flush=True)
        self._strike("start")
        if not self.stopping.wait(self.orders.start_seconds):
            self._serve()
            self.stopping.wait()
        self._strike("stop")
        self.end_workers()
        print("stopped", flush=True)
        self._strike("stopped")
        return 1 if self.role == "ffn" else 0

    def _serve(self) -> None:
        if self.role == "ffn":
            self.listener = link.listen(self.afd, self._crossed)
            self._join()
            self._strike("ready")
            if not self.orders.told("no_link", self.role):
                print(ffn_line(), flush=True)
            return
        if self.role == "attention":
            self._join()
        handler = type("Handler", (_Handler,), {"standin": self})
        server = ThreadingHTTPServer((self.arguments.host, self.arguments.port), handler)
        server.daemon_threads = True
        self.listener = server.socket
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        self._strike("ready")
        self.ready.set()
        print("Application startup complete.", flush=True)

    def _join(self) -> None:
        """Attention waits for FFN, which may start later."""
        deadline = time.monotonic() + _PEER_SECONDS
        while not self.orders.told("no_link", self.role) and not self.stopping.is_set():
            try:
                self._connection = link.Connection(self.afd)
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
            self.stopping.wait(0.05)

    def cross(self, word: str) -> None:
        """Wait for FFN, where there is one."""
        if self._connection and not self.orders.told("bypass", self.role):
            self._connection.cross(word, self.stopping.wait)

    def _crossed(self, word: str) -> None:
        when, _, nth = word.partition(" ")
        for fault in self.orders.due(when, self.role, int(nth)):
            act(fault, self)

    def met(self, token: bool) -> tuple[str, int]:
        """What a request is, and the how manieth of its kind. A pair is asked for tokens twice."""
        with self._meeting:
            kind = "token" if token else "evaluation"
            self._met[kind] += 1
            nth = self._met[kind]
        if not token:
            return kind, nth
        return "probe" if nth == 1 or self.role == "native" else "claims", nth

    def _strike(self, when: str) -> None:
        for fault in self.orders.due(when, self.role):
            act(fault, self)

    def end_workers(self) -> None:
        for worker in self.workers:
            worker.terminate()
        for worker in self.workers:
            worker.wait(_KILL_SECONDS)

    def answer(self, prompt: str) -> str:
        question = prompt.rpartition("Question: ")[2].partition("\nAnswer:")[0]
        return self._answers.get(question, " I do not know.\n#### 42")


class _Handler(BaseHTTPRequestHandler):
    """/health, /v1/models and /v1/completions."""

    standin: StandIn
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        print("INFO:    ", format % args, flush=True)

    def do_GET(self) -> None:
        if not self.standin.ready.is_set():
            self._say(503, {})
        elif self.path == "/v1/models":
            self._say(200, {"object": "list", "data": [{"id": self._name, "object": "model"}]})
        else:
            self._say(200 if self.path == "/health" else 404, {})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        standin, token = self.standin, request.get("max_tokens") == 1
        when, nth = standin.met(token)
        text = standin.answer(request.get("prompt", ""))
        good = replies.completion(request, text.split()[0] if token else text)
        for fault in standin.orders.due(when, standin.role, nth):
            if fault.what == "status":
                self._say(fault.code, {"error": {"message": fault.text, "code": fault.code}})
                return
            if fault.what in ("reset", "reply"):
                self.close_connection = True
                if fault.what == "reply":
                    self._send(replies.broken(fault.name, good))
                return
            if fault.what == "late":
                standin.stopping.wait(_LATE_SECONDS if nth % 2 else 0)
            act(fault, standin)
        if any(worker.poll() is not None for worker in standin.workers):
            standin.stopping.wait()
        standin.cross(f"{when} {nth}")
        standin.stopping.wait(0 if token else standin.orders.answer_seconds)
        self._say(200, good)

    @property
    def _name(self) -> str:
        return self.standin.arguments.served_model_name or self.standin.arguments.model

    def _say(self, status: int, body: dict[str, Any]) -> None:
        self._send(replies.whole(replies.as_json(body), status))
        self.close_connection = True

    def _send(self, response: bytes) -> None:
        """Whoever asked may have gone."""
        try:
            self.wfile.write(response)
        except ConnectionError:
            self.close_connection = True


def _answers(path: str) -> dict[str, str]:
    if not path:
        return {}
    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    return {row["question"]: " " + row["answer"] for row in rows}


def parse(argv: list[str]) -> argparse.Namespace:
    """The arguments that matter here; vLLM's others are let through."""
    parser = argparse.ArgumentParser("vllm")
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--served-model-name")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--max-model-len", type=int, default=2048)
    parser.add_argument("--tensor-parallel-size", type=int, default=1)
    parser.add_argument("--data-parallel-size", type=int, default=1)
    parser.add_argument("--enable-expert-parallel", action="store_true")
    parser.add_argument("--enforce-eager", action="store_true")
    parser.add_argument("--additional-config", type=json.loads, default={})
    return parser.parse_known_args(argv)[0]


if __name__ == "__main__":
    sys.exit(StandIn(parse(sys.argv[1:]), Orders.read(os.environ)).run())
