"""One question over HTTP: posted again only where the server cannot have begun an answer."""

from __future__ import annotations

import asyncio

import aiohttp

from e2e.oracle.request import Endpoint
from e2e.oracle.strict_json import excerpt

MOST_ATTEMPTS = 6
LARGEST_REPLY = 16 << 20
_FIRST_PAUSE = 0.1


class NothingGenerated(Exception):
    """The server was not there to answer: the question may be asked again."""


class AnswerLost(Exception):
    """An answer that may have begun did not arrive whole."""


def open_session(endpoint: Endpoint, concurrency: int) -> aiohttp.ClientSession:
    """Never through a proxy; never decompressing (a small reply could become a huge one); and a
    connection for each request, so that a second response which a broken server sends on one
    cannot be taken for the answer to the next question."""
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    if endpoint.api_key:
        headers["Authorization"] = f"Bearer {endpoint.api_key}"
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=concurrency, force_close=True),
        timeout=aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=headers,
        auto_decompress=False,
        trust_env=False,
    )


async def exchange(
    session: aiohttp.ClientSession, url: str, body: bytes, retries: list[str]
) -> tuple[int, bytes]:
    """Status and body of the reply; the reason of each new attempt is appended to `retries`.

    Raises NothingGenerated when no attempt reached a server, AnswerLost when a reply did not
    arrive whole or is larger than LARGEST_REPLY.
    """
    while True:
        try:
            return await _post(session, url, body)
        except NothingGenerated as error:
            if len(retries) + 1 == MOST_ATTEMPTS:
                raise
            retries.append(str(error))
        await asyncio.sleep(_FIRST_PAUSE * 2 ** (len(retries) - 1))


async def _post(session: aiohttp.ClientSession, url: str, body: bytes) -> tuple[int, bytes]:
    try:
        response = await session.post(url, data=body, allow_redirects=False)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise NothingGenerated(f"no connection, or reset before a response: {error}") from error
    except aiohttp.ClientError as error:
        raise AnswerLost(f"not HTTP: {excerpt(str(error))}") from error
    async with response:
        try:
            reply = await _bounded(response)
        except (aiohttp.ClientError, OSError) as error:
            raise AnswerLost(f"closed within the reply: {excerpt(str(error))}") from error
    if response.status == 503:
        raise NothingGenerated(f"HTTP 503: {excerpt(reply)}")
    return response.status, reply


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    reply = bytearray()
    async for chunk in response.content.iter_any():
        reply += chunk
        if len(reply) > LARGEST_REPLY:
            raise AnswerLost(f"a reply of more than {LARGEST_REPLY >> 20} MiB")
    return bytes(reply)
