"""The world of an AFD deployment: its ranks, how they meet, and the line from one to another."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import torch
from torch.distributed import (
    PrefixStore,  # pyright: ignore[reportPrivateImportUsage]
    ProcessGroupGloo,
    TCPStore,  # pyright: ignore[reportPrivateImportUsage]
)

from e2e.reference_afd.settings import AfdSettings

if TYPE_CHECKING:
    from torch.distributed import Work

# A dead peer is told from a silent one by its connection: a message itself has no deadline.
_NO_DEADLINE = timedelta(days=365)


class PeerLost(RuntimeError):
    """A rank of the world is gone, or never came."""


class TermsDiffer(RuntimeError):
    """The roles were started for different models, types or rank counts."""


class Tag(IntEnum):
    """What a message is. Messages of one tag between two ranks arrive in the order sent."""

    HEADER = 1
    HIDDEN = 2
    OUTPUT = 3
    FAREWELL = 4


@dataclass(frozen=True)
class World:
    """FFN ranks first, then Attention."""

    attention_ranks: int
    ffn_ranks: int

    @property
    def size(self) -> int:
        return self.ffn_ranks + self.attention_ranks

    @property
    def ffn(self) -> range:
        return range(self.ffn_ranks)

    @property
    def attention(self) -> range:
        return range(self.ffn_ranks, self.size)

    def rank(self, role: str, role_rank: int) -> int:
        return role_rank if role == "ffn" else self.ffn_ranks + role_rank

    def name(self, rank: int) -> str:
        return f"ffn rank {rank}" if rank in self.ffn else f"attention rank {rank - self.ffn_ranks}"

    def peers(self, rank: int) -> range:
        """The ranks of the other role."""
        return self.attention if rank in self.ffn else self.ffn


class Message:
    """A message on its way. `wait` raises PeerLost when the peer is gone."""

    def __init__(self, work: Work, peer: str) -> None:
        self._work = work
        self._peer = peer

    def wait(self) -> None:
        try:
            self._work.wait(_NO_DEADLINE)
        except RuntimeError as error:
            raise PeerLost(f"{self._peer} is gone: {_brief(error)}") from error


@dataclass(frozen=True)
class Peer:
    """The line to one rank. Both calls return at once and raise PeerLost when it is gone."""

    name: str
    _rank: int
    _group: Any

    def send(self, tag: Tag, tensor: torch.Tensor) -> Message:
        return self._start(self._group.send, tag, tensor)

    def receive(self, tag: Tag, tensor: torch.Tensor) -> Message:
        """Into `tensor`, whose shape and type have to be those of what is sent."""
        return self._start(self._group.recv, tag, tensor)

    def _start(self, call, tag: Tag, tensor: torch.Tensor) -> Message:
        try:
            return Message(call([tensor], self._rank, tag), self.name)
        except RuntimeError as error:
            raise PeerLost(f"{self.name} is gone: {_brief(error)}") from error


@dataclass(frozen=True)
class Member:
    """One rank that has met all others, and its lines to the other role's ranks. `store` has to
    live as long: ffn rank 0 serves it."""

    world: World
    rank: int
    peers: tuple[Peer, ...]
    store: TCPStore

    @property
    def name(self) -> str:
        return self.world.name(self.rank)


def join(settings: AfdSettings, role_rank: int, terms: str) -> Member:
    """Meet all ranks at ffn rank 0's store, then connect to each over gloo.

    `terms` says what this rank computes with and must be the same for all. Raises TermsDiffer, and
    PeerLost when the world is not complete within `rendezvous_seconds`.
    """
    world = World(settings.num_attention_ranks, settings.num_ffn_ranks)
    rank = world.rank(settings.role, role_rank)
    terms = f"{terms}, {world.attention_ranks} attention and {world.ffn_ranks} ffn ranks"
    try:
        store = _store(settings, serve=rank == 0)
        store.set(f"terms/{rank}", terms)
        for other in range(world.size):
            theirs = store.get(f"terms/{other}").decode()
            if theirs != terms:
                raise TermsDiffer(
                    f"{world.name(rank)} serves {terms}, but {world.name(other)} serves {theirs}"
                )
        group = _gloo(store, rank, world.size, settings)
    except TermsDiffer:
        raise
    except (OSError, RuntimeError) as error:
        raise PeerLost(
            f"{world.name(rank)} did not meet all {world.size} ranks at "
            f"{settings.host}:{settings.port}: {_brief(error)}"
        ) from error
    peers = tuple(Peer(world.name(peer), peer, group) for peer in world.peers(rank))
    return Member(world, rank, peers, store)


def _store(settings: AfdSettings, serve: bool) -> TCPStore:
    """Served on the one address that the settings name, where torch itself would take them all."""
    address = (settings.host, settings.port)
    return TCPStore(
        *address,
        is_master=serve,
        timeout=_patience(settings),
        wait_for_workers=False,
        master_listen_fd=socket.create_server(address).detach() if serve else None,
    )


def _gloo(store: TCPStore, rank: int, size: int, settings: AfdSettings) -> Any:
    gloo: Any = ProcessGroupGloo  # torch's stubs lack its options and its messages.
    options = gloo._Options()
    options._devices = [gloo.create_device(hostname=settings.host)]
    options._timeout = _patience(settings)
    return gloo(PrefixStore("gloo", store), rank, size, options)


def _patience(settings: AfdSettings) -> timedelta:
    return timedelta(seconds=settings.connector_extra_config.rendezvous_seconds)


def _brief(error: BaseException) -> str:
    """The first sentence of torch's message, without its place in the source."""
    return re.sub(r"^\[\S+\] ", "", str(error)).partition("\n")[0].partition(". ")[0]
