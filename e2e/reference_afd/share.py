"""Which weights belong to which role, by their names. Needs neither torch nor vLLM."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from e2e.reference_afd.settings import Role

Kind = Literal["expert", "router", "dense MLP", "attention", "other"]
KINDS: tuple[Kind, ...] = ("expert", "router", "dense MLP", "attention", "other")

_EXPERT = re.compile(r"\.mlp\.experts\.(\d+)\.")


def kind(name: str) -> Kind:
    """Of a tensor in the checkpoint or a parameter in vLLM. Shared experts are dense MLPs;
    embeddings, norms and the head are "other"."""
    if ".mlp.experts." in name:
        return "expert"
    if ".mlp.gate." in name:
        return "router"
    if ".mlp." in name:
        return "dense MLP"
    return "attention" if ".self_attn." in name else "other"


@dataclass(frozen=True)
class Share:
    """What one of a role's ranks loads: FFN the MLP and expert blocks, of a layer's experts its
    own; Attention everything else."""

    role: Role
    rank: int
    ranks: int
    experts: int

    @property
    def name(self) -> str:
        return f"{self.role} rank {self.rank}"

    @property
    def own_experts(self) -> range:
        """By vLLM's linear placement: contiguous, the first ranks take what does not divide."""
        each, more = divmod(self.experts, self.ranks)
        start = self.rank * each + min(self.rank, more)
        return range(start, start + each + (self.rank < more))

    def holds(self, name: str) -> bool:
        if ".mlp." not in name:
            return self.role == "attention"
        expert = _EXPERT.search(name)
        return self.role == "ffn" and (expert is None or int(expert[1]) in self.own_experts)


@dataclass
class Tally:
    """Tensors and bytes by kind."""

    tensors: Counter[Kind] = field(default_factory=Counter)
    size: int = 0

    def add(self, name: str, size: int) -> None:
        self.tensors[kind(name)] += 1
        self.size += size

    def __str__(self) -> str:
        return ", ".join(f"{self.tensors[kind]} {kind}" for kind in KINDS) + f" ({self.size} bytes)"
