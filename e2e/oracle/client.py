"""Asks a server all questions, within bounds, and loses no answer to another's failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import aiohttp

from e2e.oracle import dataset
from e2e.oracle.exchange import AnswerLost, NothingGenerated, exchange, open_session
from e2e.oracle.prompts import Prompt, build
from e2e.oracle.reply import Answer, read_answer
from e2e.oracle.request import Endpoint, RequestSettings, request_body

_WATCH_SECONDS = 0.1
_DYING_SECONDS = 1.0


def ask(
    endpoint: Endpoint,
    prompts: Sequence[Prompt],
    settings: RequestSettings,
    alive: Callable[[], None],
    progress: Callable[[int, int], None],
    stalled: Callable[[str], None] = lambda reason: None,
) -> list[Answer]:
    """The answers in the order of the questions, each valid or with the reason why not.

    `alive` is called every 100 ms; what it raises cancels everything and propagates.
    `progress(answered, asked)` is called after each answer. `stalled(reason)` is called once, when
    the server has answered nothing for too long, before the questions that are out are taken back.
    """
    return asyncio.run(_Asking(endpoint, prompts, settings, progress, stalled).run(alive))


def probe(endpoint: Endpoint, seconds: float, alive: Callable[[], None]) -> str | None:
    """Ask for one token. None: it was generated within `seconds`; else what came instead."""
    (question,) = build(dataset.load("bundled"), shots=0, samples=1)
    settings = RequestSettings(
        max_tokens=1,
        request_seconds=seconds,
        stall_seconds=2 * seconds,
        total_seconds=2 * seconds,
    )
    (answer,) = ask(endpoint, [question], settings, alive, lambda answered, asked: None)
    if answer.finish_reason in ("length", "stop") and (answer.text or answer.completion_tokens):
        return None
    return answer.invalid


class _Asking:
    """All questions of one evaluation under way; `_answers` by place in the questions. Progress is
    a reply that has arrived whole, at `_heard`; a question that timed out is none."""

    def __init__(
        self,
        endpoint: Endpoint,
        prompts: Sequence[Prompt],
        settings: RequestSettings,
        progress: Callable[[int, int], None],
        stalled: Callable[[str], None],
    ) -> None:
        self._endpoint = endpoint
        self._prompts = prompts
        self._settings = settings
        self._progress = progress
        self._stalled = stalled
        self._answers: dict[int, Answer] = {}
        self._answer_lost = False
        self._heard = 0.0

    async def run(self, alive: Callable[[], None]) -> list[Answer]:
        count = min(self._settings.concurrency, len(self._prompts))
        async with open_session(self._endpoint, count) as session:
            turn = iter(range(len(self._prompts)))
            workers = {asyncio.create_task(self._work(session, turn)) for _ in range(count)}
            try:
                given_up = await self._watch(workers, alive)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
        return [
            self._answers.get(place, Answer(prompt.doc_id, invalid=given_up))
            for place, prompt in enumerate(self._prompts)
        ]

    async def _watch(
        self, workers: set[asyncio.Task[None]], alive: Callable[[], None]
    ) -> str | None:
        """None when all questions are answered, or why they will not be."""
        now = asyncio.get_running_loop().time
        begin = self._heard = now()
        while workers:
            done, workers = await asyncio.wait(workers, timeout=_WATCH_SECONDS)
            alive()
            for worker in done:
                worker.result()
            if workers and now() - self._heard > self._settings.stall_seconds:
                return self._tell_stall(self._settings.stall_seconds)
            if workers and now() - begin > self._settings.total_seconds:
                return f"not answered within the {self._settings.total_seconds:g} s for all answers"
        if self._answer_lost:
            await _watch_dying(alive)
        elif self._heard == begin:
            self._tell_stall(self._settings.request_seconds)
        return None

    def _tell_stall(self, seconds: float) -> str:
        reason = f"stalled: no answer completed for {seconds:g} s"
        self._stalled(reason)
        return reason

    async def _work(self, session: aiohttp.ClientSession, turn: Iterator[int]) -> None:
        for place in turn:
            self._answers[place] = await self._answer(session, self._prompts[place])
            self._progress(len(self._answers), len(self._prompts))

    async def _answer(self, session: aiohttp.ClientSession, prompt: Prompt) -> Answer:
        now = asyncio.get_running_loop().time
        begin = now()
        retries: list[str] = []
        body = request_body(prompt, self._endpoint, self._settings)
        try:
            async with asyncio.timeout(self._settings.request_seconds):
                status, reply = await exchange(session, self._endpoint.url, body, retries)
            self._heard = now()
            answer = read_answer(prompt.doc_id, status, reply, self._endpoint, self._settings)
        except TimeoutError:
            limit = self._settings.request_seconds
            answer = Answer(prompt.doc_id, invalid=f"no answer within {limit:g} s")
        except (AnswerLost, NothingGenerated) as error:
            self._answer_lost = True
            answer = Answer(prompt.doc_id, invalid=str(error))
        return replace(answer, seconds=round(now() - begin, 3), retries=tuple(retries))


async def _watch_dying(alive: Callable[[], None]) -> None:
    """A server's connections close a little before its exit can be seen: when answers were lost,
    watch on, so that the exit is what is reported."""
    for _ in range(round(_DYING_SECONDS / _WATCH_SECONDS)):
        await asyncio.sleep(_WATCH_SECONDS)
        alive()
