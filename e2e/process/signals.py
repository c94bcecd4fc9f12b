"""Signals to the harness: the first ends the body of a run, the second hurries its teardown."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class SignalReceived(KeyboardInterrupt):
    """A signal ended the run. No `except Exception` on the way, in whatever library, stops it."""


class Interruption:
    """Handler of the signals that end a run.

    The first is raised as SignalReceived, exactly once: at once where that is allowed, else when
    it is allowed again. From the second on a stop in progress goes to SIGKILL at once.
    """

    def __init__(self) -> None:
        self._allowed = True
        self._received: list[signal.Signals] = []
        self._raised = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._received.append(signal.Signals(number))
        self._raise_if_due()

    def hurried(self) -> bool:
        """Whether whoever sends the signals has lost patience."""
        return len(self._received) > 1

    def check(self) -> None:
        """Raise a signal that has come, for whoever polls: what is raised in the midst of a
        destructor or a callback of the garbage collector is lost."""
        if self._allowed and self._received:
            raise self._error()

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """For what must not be broken off: a signal waits until it is over."""
        yield from self._while(allowed=False)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Within something deferred: a part that a signal may end, also one from before."""
        yield from self._while(allowed=True)

    def _while(self, *, allowed: bool) -> Iterator[None]:
        before, self._allowed = self._allowed, allowed
        try:
            self._raise_if_due()
            yield
        finally:
            self._allowed = before
        self._raise_if_due()

    def _raise_if_due(self) -> None:
        if self._allowed and self._received and not self._raised:
            self._raised = True
            raise self._error()

    def _error(self) -> SignalReceived:
        return SignalReceived(f"{self._received[0].name} ended the run")


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Handle SIGINT, SIGTERM and SIGHUP as `Interruption` does, and put the handlers back.

    Python delivers signals to the main thread alone: elsewhere this changes nothing.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        for number in _SIGNALS:
            signal.signal(number, interruption)
        yield interruption
    finally:
        with interruption.deferred():
            for number, handler in before.items():
                signal.signal(number, handler)


def current() -> Interruption:
    """The interruption whose handlers are installed; one that hears of nothing where none is."""
    handler = signal.getsignal(signal.SIGINT)
    return handler if isinstance(handler, Interruption) else Interruption()
