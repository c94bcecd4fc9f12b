"""A rank in a process of its own: `lone_rank.py ROLE PORT MANNER`. Attention exchanges once and
ends; FFN serves until its standard input closes. MANNER is how it ends: farewell or death."""

from __future__ import annotations

import os
import sys

import torch

from e2e.reference_afd.connector import GlooAFDConnector
from e2e.reference_afd.settings import read
from e2e.reference_afd.world import join


def main(role: str, port: str, manner: str) -> None:
    raw = {"role": role, "connector": "GlooAFDConnector", "port": int(port)}
    connector = GlooAFDConnector(join(read(raw), 0, "the same"), lambda: os._exit(9))
    if role == "ffn":
        connector.serve(lambda _, hidden: hidden, 4, torch.float32)
        sys.stdin.read()
    else:
        connector.exchange(0, torch.ones(1, 4))
    if manner == "farewell":
        connector.close()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
