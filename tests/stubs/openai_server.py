"""An OpenAI server that answers, or misbehaves, exactly as it is told: a reply is raw bytes."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

MODEL = "stub"


class Act(Enum):
    """What a server can do instead of sending bytes."""

    HANG = "say nothing more until the client goes away"
    RESET = "reset the connection"


# An event is waited for; `respond` runs in the server's own loop and may set it.
Part = bytes | Act | asyncio.Event
Respond = Callable[[dict[str, Any]], list[Part]]


def http(body: bytes | dict[str, Any], status: str = "200 OK", length: int | None = None) -> bytes:
    """A whole HTTP response; `length` tells another length than the body has."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    size = len(data) if length is None else length
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    return head.encode() + data


def completion(text: object, **changes: object) -> dict[str, Any]:
    """The JSON of a completion; `changes` replace keys of its only choice."""
    choice = {"index": 0, "text": text, "finish_reason": "stop", "logprobs": None, **changes}
    usage = {"prompt_tokens": 9, "completion_tokens": 3}
    return {"id": "cmpl-1", "model": MODEL, "choices": [choice], "usage": usage}


@dataclass
class Stub:
    """A running stub: where it is, and every request it has got, in order of arrival."""

    base_url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0


@contextmanager
def stub_server(respond: Respond) -> Iterator[Stub]:
    """Serve on a free port of 127.0.0.1, in a thread of its own, until the block ends."""
    loop = asyncio.new_event_loop()
    stub = Stub("")
    server = loop.run_until_complete(_listen(stub, respond))
    stub.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield stub
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(server: asyncio.Server) -> None:
    server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _listen(stub: Stub, respond: Respond) -> asyncio.Server:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stub.at_once += 1
        stub.most_at_once = max(stub.most_at_once, stub.at_once)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await _serve(stub, respond, reader, writer)
        finally:
            stub.at_once -= 1
            writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)


async def _serve(
    stub: Stub, respond: Respond, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    size = next(
        int(line.split(":")[1])
        for line in head.split("\r\n")
        if line.lower().startswith("content-length:")
    )
    request = json.loads(await reader.readexactly(size))
    stub.headers.append(head)
    stub.requests.append(request)
    for part in respond(request):
        if part is Act.RESET:
            writer.transport.abort()
            return
        if part is Act.HANG:
            await reader.read()
            return
        if isinstance(part, asyncio.Event):
            await part.wait()
        elif isinstance(part, bytes):
            writer.write(part)
            await writer.drain()
