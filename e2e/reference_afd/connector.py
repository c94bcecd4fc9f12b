"""GlooAFDConnector: hidden states to FFN, block outputs back.

One exchange of an Attention rank with an FFN rank is three messages: a header (layer, tokens), the
hidden states, the output. Each Attention rank is served in its own order by a thread of its own, so
that batches of different ranks never wait for each other; the computations take turns.

A rank that ends in order says farewell first. A connection that closes without one is a peer that
died.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import torch

from e2e.reference_afd.settings import CONNECTOR, log
from e2e.reference_afd.world import Member, Peer, PeerLost, Tag

Compute = Callable[[int, torch.Tensor], torch.Tensor]
OnFailure = Callable[[], None]


class GlooAFDConnector:
    """One rank's end. `on_failure` is called from a thread, after the error has been logged, when a
    peer is lost or a computation fails; it has to end the process."""

    def __init__(self, member: Member, on_failure: OnFailure) -> None:
        self._member = member
        self._on_failure = on_failure
        # Asked for at once, so that a peer's farewell never waits for this rank.
        self._farewells = {peer: peer.receive(Tag.FAREWELL, _flag()) for peer in member.peers}
        self._turn = threading.Lock()
        self._exchanges = 0
        self._tokens = 0
        log.info(
            "%s connected: %s is rank %d in a world of %d, FFN ranks first.",
            CONNECTOR,
            member.name,
            member.rank,
            member.world.size,
        )

    def exchange(self, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        """Attention: the output [tokens, hidden] of a layer's block, the FFN ranks' shares added
        up. Raises PeerLost."""
        hidden = hidden.contiguous()
        header = torch.tensor([layer, len(hidden)], dtype=torch.int64)
        shares = [torch.empty_like(hidden) for _ in self._member.peers]
        messages = []
        for peer, share in zip(self._member.peers, shares, strict=True):
            messages.append(peer.receive(Tag.OUTPUT, share))
            messages.append(peer.send(Tag.HEADER, header))
            messages.append(peer.send(Tag.HIDDEN, hidden))
        for message in messages:
            message.wait()
        self._count(layer, len(hidden), ", ".join(peer.name for peer in self._member.peers))
        return sum(shares[1:], start=shares[0])

    def watch(self) -> None:
        """Attention: notice at once, even when idle, that an FFN rank is gone."""
        for peer in self._member.peers:
            self._in_thread(self._until_gone, peer)

    def serve(self, compute: Compute, hidden_size: int, dtype: torch.dtype) -> None:
        """FFN: answer every Attention rank until it leaves. Returns at once."""
        for peer in self._member.peers:
            self._in_thread(self._answer, peer, compute, hidden_size, dtype)

    def close(self) -> None:
        """Say farewell to every peer that is still there."""
        for peer in self._member.peers:
            try:
                peer.send(Tag.FAREWELL, _flag()).wait()
            except PeerLost as lost:
                log.debug("%s: no farewell: %s", CONNECTOR, lost)
        log.info("%s closed after %s.", CONNECTOR, self._so_far())

    def _answer(self, peer: Peer, compute: Compute, hidden_size: int, dtype: torch.dtype) -> None:
        header = torch.empty(2, dtype=torch.int64)
        try:
            while True:
                peer.receive(Tag.HEADER, header).wait()
                layer, tokens = header.tolist()
                hidden = torch.empty(tokens, hidden_size, dtype=dtype)
                peer.receive(Tag.HIDDEN, hidden).wait()
                with self._turn:
                    output = compute(layer, hidden)
                    self._count(layer, tokens, peer.name)
                peer.send(Tag.OUTPUT, output.contiguous()).wait()
        except PeerLost:
            self._farewells[peer].wait()
            log.info("%s: %s has left after %s.", CONNECTOR, peer.name, self._so_far())

    def _until_gone(self, peer: Peer) -> None:
        self._farewells[peer].wait()
        raise PeerLost(f"{peer.name} was stopped, and attention cannot serve without it")

    def _in_thread(self, work: Callable[..., None], *arguments: object) -> None:
        def guarded() -> None:
            try:
                work(*arguments)
            except Exception as error:
                unexpected = not isinstance(error, PeerLost)
                who = self._member.name
                log.error("%s of %s failed: %s", CONNECTOR, who, error, exc_info=unexpected)
                self._on_failure()

        threading.Thread(target=guarded, name=CONNECTOR, daemon=True).start()

    def _count(self, layer: int, tokens: int, peers: str) -> None:
        if not self._exchanges:
            log.info("%s first exchange: layer %d, %d tokens, %s.", CONNECTOR, layer, tokens, peers)
        self._exchanges += 1
        self._tokens += tokens

    def _so_far(self) -> str:
        return f"{self._exchanges} exchanges of {self._tokens} tokens"


def _flag() -> torch.Tensor:
    return torch.zeros(1, dtype=torch.int64)
