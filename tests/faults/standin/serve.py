"""A stand-in for `vllm serve`: the same command line, the same signs of life, no model.

It logs and answers as vLLM does where the harness looks, keeps worker processes that outlive a
killed leader, and misbehaves as AFD_E2E_STANDIN tells it (see `faults`). It answers the questions
of the file that it is given with the answers in there, and any other with "#### 42".
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

from acts import act, start_python
from faults import Orders
from vllm_log import ffn_line, start_lines

_WORKER = "import time; time.sleep(600)"
_KILL_SECONDS = 2.0


class StandIn:
    """One role. `held` keeps open what a fault has opened; `others` are children of faults."""

    def __init__(self, arguments: argparse.Namespace, orders: Orders) -> None:
        self.arguments = arguments
        self.orders = orders
        self.workers: list[subprocess.Popen[bytes]] = []
        self.others: list[subprocess.Popen[bytes]] = []
        self.held: list[IO[bytes] | Any] = []
        self.asked = 0
        self.ready = threading.Event()
        self.stopping = threading.Event()
        self.server: ThreadingHTTPServer
        afd = arguments.additional_config.get("afd", {})
        self.role: str = afd.get("role", "native")
        self._answers = _answers(orders.answers)

    def run(self) -> int:
        """The exit code, once SIGTERM has been obeyed."""
        signal.signal(signal.SIGTERM, lambda *_: self.stopping.set())
        for line in start_lines(self.arguments, os.getpid()):
            print(line, flush=True)
        ranks = self.arguments.data_parallel_size
        for rank in range(ranks):
            title = f"VLLM::EngineCore_DP{rank}" if ranks > 1 else "VLLM::EngineCore"
            self.workers.append(start_python(_WORKER, title))
        self._strike("start")
        if not self.stopping.wait(self.orders.start_seconds):
            self._serve()
            self.stopping.wait()
        self._strike("stop")
        self.end_workers()
        print("stopped", flush=True)
        return 1 if self.role == "ffn" else 0

    def _serve(self) -> None:
        if self.role == "ffn":
            print(ffn_line(), flush=True)
            return
        handler = type("Handler", (_Handler,), {"standin": self})
        self.server = ThreadingHTTPServer((self.arguments.host, self.arguments.port), handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self._strike("ready")
        self.ready.set()
        print("Application startup complete.", flush=True)

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
        self.standin.asked += 1
        for fault in self.standin.orders.due("request", self.standin.role, self.standin.asked):
            if fault.what == "status":
                self._say(fault.code, {"error": {"message": fault.text, "code": fault.code}})
                return
            if fault.what == "reset":
                self.close_connection = True
                return
            act(fault, self.standin)
        if any(worker.poll() is not None for worker in self.standin.workers):
            self.standin.stopping.wait()
        time.sleep(self.standin.orders.answer_seconds)
        self._say(200, self._completion(request))

    @property
    def _name(self) -> str:
        return self.standin.arguments.served_model_name or self.standin.arguments.model

    def _completion(self, request: dict[str, Any]) -> dict[str, Any]:
        text = self.standin.answer(request.get("prompt", ""))
        if request.get("max_tokens") == 1:
            text = text.split()[0]
        count = len(text.split())
        choice: dict[str, Any] = {"index": 0, "text": text, "finish_reason": "stop"}
        if request.get("logprobs"):
            names = [f"token_id:{number}" for number in range(count)]
            choice["logprobs"] = {
                "tokens": names,
                "token_logprobs": [-0.1] * count,
                "top_logprobs": [{name: -0.1} for name in names],
            }
        return {
            "id": "cmpl-1",
            "object": "text_completion",
            "model": request["model"],
            "choices": [choice],
            "usage": {"prompt_tokens": 9, "completion_tokens": count},
        }

    def _say(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


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
