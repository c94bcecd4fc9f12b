from __future__ import annotations

import pytest

from e2e.oracle import client, exchange


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's pauses, shortened."""
    monkeypatch.setattr(exchange, "_FIRST_PAUSE", 0.001)
    monkeypatch.setattr(client, "_DYING_SECONDS", 0.0)
