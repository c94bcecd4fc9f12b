"""A server that gives every question the same answer at once. Prints its port."""

from __future__ import annotations

import asyncio
import socket

from aiohttp import web

REPLY = {
    "id": "cmpl-1",
    "object": "text_completion",
    "model": "stub",
    "choices": [{"index": 0, "text": " It is 18.\n#### 18", "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1000, "completion_tokens": 9, "total_tokens": 1009},
}


async def answer(request: web.Request) -> web.Response:
    await request.read()
    return web.json_response(REPLY)


async def serve() -> None:
    application = web.Application()
    application.router.add_post("/v1/completions", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    await web.SockSite(runner, listening).start()
    print(listening.getsockname()[1], flush=True)
    await asyncio.Event().wait()


asyncio.run(serve())
