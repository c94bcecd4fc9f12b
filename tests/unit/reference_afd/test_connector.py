"""Worlds over real sockets: ranks are threads of this process, those that die are processes."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from e2e.reference_afd.connector import GlooAFDConnector  # noqa: E402
from e2e.reference_afd.settings import AfdSettings, read  # noqa: E402
from e2e.reference_afd.world import PeerLost, TermsDiffer, World, join  # noqa: E402

HIDDEN = 4
SECONDS = 20
REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="vllm.afd_reference")
    return caplog


def settings(role: str, port: int, attention: int = 1, ffn: int = 1, **extra: float) -> AfdSettings:
    return read(
        {
            "role": role,
            "connector": "GlooAFDConnector",
            "port": port,
            "num_attention_ranks": attention,
            "num_ffn_ranks": ffn,
            "connector_extra_config": {"rendezvous_seconds": float(SECONDS), **extra},
        }
    )


def connect(
    role: str, rank: int, port: int, failed: Callable[[], None], **ranks: int
) -> GlooAFDConnector:
    return GlooAFDConnector(join(settings(role, port, **ranks), rank, "the same"), failed)


@contextmanager
def deployment(
    port: int, attention: int, ffn: int
) -> Iterator[tuple[list[GlooAFDConnector], list[GlooAFDConnector]]]:
    """The connectors of both roles, Attention first; nothing is served yet."""
    places = [("attention", rank) for rank in range(attention)]
    places += [("ffn", rank) for rank in range(ffn)]
    failed = threading.Event()
    with ThreadPoolExecutor(len(places)) as pool:
        ends = list(
            pool.map(
                lambda role, rank: connect(
                    role, rank, port, failed.set, attention=attention, ffn=ffn
                ),
                *zip(*places, strict=True),
            )
        )
    yield ends[:attention], ends[attention:]
    for end in ends:
        end.close()
    assert not failed.is_set()


def tokens(count: int, value: float) -> Any:
    return torch.full((count, HIDDEN), value)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_ffn_ranks_come_first() -> None:
    world = World(attention_ranks=2, ffn_ranks=1)
    names = [world.name(rank) for rank in range(world.size)]
    assert names == ["ffn rank 0", "attention rank 0", "attention rank 1"]
    assert [world.rank("ffn", 0), world.rank("attention", 1)] == [0, 2]
    assert (list(world.peers(0)), list(world.peers(2))) == ([1, 2], [0])


def test_tokens_cross_and_are_counted(port: int, said: pytest.LogCaptureFixture) -> None:
    with deployment(port, 1, 1) as ((attention,), (ffn,)):
        ffn.serve(lambda layer, hidden: hidden * 2 + layer, HIDDEN, torch.float32)
        assert torch.equal(attention.exchange(3, tokens(5, 1.0)), tokens(5, 5.0))
        assert torch.equal(attention.exchange(4, tokens(1, 2.0)), tokens(1, 8.0))
    assert "first exchange: layer 3, 5 tokens, ffn rank 0." in said.text
    assert "first exchange: layer 3, 5 tokens, attention rank 0." in said.text
    assert said.text.count("GlooAFDConnector closed after 2 exchanges of 6 tokens.") == 2


def test_attention_ranks_are_served_each_in_its_own_order(port: int) -> None:
    with deployment(port, 2, 1) as (attention, (ffn,)):
        ffn.serve(lambda layer, hidden: hidden + layer, HIDDEN, torch.float32)

        def steps(rank: int) -> list[float]:
            batch = tokens(3 + 4 * rank, float(rank))
            return [attention[rank].exchange(layer, batch)[-1, -1].item() for layer in range(40)]

        with ThreadPoolExecutor(2) as pool:
            seen = list(pool.map(steps, range(2)))
    assert seen == [[rank + layer for layer in range(40)] for rank in range(2)]


def test_silence_is_no_death(port: int) -> None:
    """Longer than the ranks waited for each other at the start."""
    patience, failed = 2.0, threading.Event()

    def start(role: str) -> GlooAFDConnector:
        member = join(settings(role, port, rendezvous_seconds=patience), 0, "the same")
        return GlooAFDConnector(member, failed.set)

    with ThreadPoolExecutor(2) as pool:
        ffn, attention = pool.map(start, ["ffn", "attention"])
    ffn.serve(lambda _, hidden: hidden, HIDDEN, torch.float32)
    attention.watch()
    assert not failed.wait(patience + 1)
    assert torch.equal(attention.exchange(0, tokens(1, 1.0)), tokens(1, 1.0))
    attention.close()
    ffn.close()


def test_shares_of_several_ffn_ranks_add_up(port: int) -> None:
    with deployment(port, 1, 2) as ((attention,), ffn):
        for rank, end in enumerate(ffn):
            end.serve(lambda _, hidden, rank=rank: hidden * (rank + 1), HIDDEN, torch.float32)
        assert torch.equal(attention.exchange(0, tokens(2, 1.0)), tokens(2, 3.0))


@contextmanager
def lone_rank(role: str, port: int, manner: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("lone_rank.py")), role, str(port), manner],
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_death_of_attention_fails_an_idle_ffn(port: int, said: pytest.LogCaptureFixture) -> None:
    failed = threading.Event()
    with lone_rank("attention", port, "death"):
        connect("ffn", 0, port, failed.set).serve(lambda _, h: h, HIDDEN, torch.float32)
        assert failed.wait(SECONDS)
    assert "ffn rank 0 failed: attention rank 0 is gone: " in said.text


def test_farewell_of_attention_leaves_ffn(port: int, said: pytest.LogCaptureFixture) -> None:
    failed = threading.Event()
    with lone_rank("attention", port, "farewell"):
        ffn = connect("ffn", 0, port, failed.set)
        ffn.serve(lambda _, hidden: hidden, HIDDEN, torch.float32)
        wait_until(lambda: "attention rank 0 has left after 1 exchanges of 1 tokens." in said.text)
    assert not failed.is_set()


@pytest.mark.parametrize(
    ("manner", "why"),
    [("death", "ffn rank 0 is gone"), ("farewell", "ffn rank 0 was stopped")],
)
def test_end_of_ffn_fails_an_idle_attention(
    port: int, manner: str, why: str, said: pytest.LogCaptureFixture
) -> None:
    failed = threading.Event()
    with lone_rank("ffn", port, manner) as process:
        attention = connect("attention", 0, port, failed.set)
        attention.watch()
        assert torch.equal(attention.exchange(0, tokens(1, 1.0)), tokens(1, 1.0))
        assert process.stdin is not None
        process.stdin.close()
        assert failed.wait(SECONDS)
        process.wait(SECONDS)
        with pytest.raises(PeerLost, match="ffn rank 0 is gone"):
            attention.exchange(0, tokens(1, 1.0))
    assert f"attention rank 0 failed: {why}" in said.text


def test_a_computation_that_fails_ends_ffn(port: int, said: pytest.LogCaptureFixture) -> None:
    failed = threading.Event()

    def broken(layer: int, hidden: Any) -> Any:
        raise ZeroDivisionError("no such layer")

    with lone_rank("attention", port, "death"):
        connect("ffn", 0, port, failed.set).serve(broken, HIDDEN, torch.float32)
        assert failed.wait(SECONDS)
    assert "ZeroDivisionError: no such layer" in said.text


def test_roles_that_do_not_belong_together_refuse_each_other(port: int) -> None:
    def joins(role: str, terms: str) -> str:
        with pytest.raises(TermsDiffer) as refused:
            join(settings(role, port), 0, terms)
        return str(refused.value)

    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(joins, ["ffn", "attention"], ["8 layers", "9 layers"]))
    assert said[1].startswith("attention rank 0 serves 9 layers")
    assert "ffn rank 0 serves 8 layers" in said[1]


def test_a_port_that_is_taken_is_named(port: int) -> None:
    taken = f"ffn rank 0 did not meet all 2 ranks at .*{port}: .*Address already in use"
    with socket.create_server(("127.0.0.1", port)), pytest.raises(PeerLost, match=taken):
        join(settings("ffn", port), 0, "the same")


def test_a_world_that_stays_incomplete_is_given_up(port: int) -> None:
    with pytest.raises(PeerLost, match=f"attention rank 0 did not meet all 2 ranks at .*{port}"):
        join(settings("attention", port, rendezvous_seconds=1.0), 0, "the same")
    with pytest.raises(PeerLost, match="ffn rank 0 did not meet all 2 ranks"):
        join(settings("ffn", port, rendezvous_seconds=1.0), 0, "the same")
