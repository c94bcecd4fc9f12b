"""Signals to the harness: raised once, where that is allowed; the second one hurries."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

from e2e.process.signals import SignalReceived, current, interruptible


def send(number: int = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_is_raised_at_once(number: int) -> None:
    with pytest.raises(SignalReceived, match=signal.Signals(number).name), interruptible():
        send(number)
        raise AssertionError("went on")


def test_it_is_raised_once_and_the_second_hurries() -> None:
    with interruptible() as interruption:
        with pytest.raises(SignalReceived):
            send()
        assert not interruption.hurried()
        send()
        assert interruption.hurried()


def test_a_deferred_signal_is_raised_when_that_is_over() -> None:
    done = []
    with pytest.raises(SignalReceived), interruptible() as interruption:
        with interruption.deferred():
            send()
            done.append("teardown")
        done.append("what follows")
    assert done == ["teardown"]


def test_a_deferred_signal_ends_a_part_that_allows_it() -> None:
    done = []
    with interruptible() as interruption, interruption.deferred():
        send()
        with pytest.raises(SignalReceived), interruption.allowed():
            done.append("body")
        done.append("teardown")
    assert done == ["teardown"]


def test_it_does_not_replace_what_ends_a_teardown() -> None:
    """The failure is what the signal was raised on top of: both are found."""
    with (
        pytest.raises(SignalReceived) as caught,
        interruptible() as interruption,
        interruption.deferred(),
    ):
        send()
        raise ValueError("a failure of the body")
    assert isinstance(caught.value.__context__, ValueError)


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with interruptible() as interruption:
        assert current() is interruption
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert current() is not interruption


def test_no_library_on_the_way_swallows_it() -> None:
    async def careless() -> None:
        for _ in range(100):
            try:
                await asyncio.sleep(0.01)
                send()
            except Exception:
                continue

    with pytest.raises(SignalReceived), interruptible():
        asyncio.run(careless())


def test_what_a_destructor_swallows_is_raised_by_the_next_check() -> None:
    class Careless:
        def __del__(self) -> None:
            send()

    with interruptible() as interruption:
        Careless()
        with interruption.deferred():
            interruption.check()
        with pytest.raises(SignalReceived):
            interruption.check()


def test_in_another_thread_nothing_is_changed() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def work() -> None:
        with interruptible():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
