"""vLLM's own model of a family, built without the other role's parts."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn
from vllm.model_executor.models.utils import extract_layer_index

from e2e.reference_afd.families import Family
from e2e.reference_afd.settings import Role

Exchange = Callable[[int, torch.Tensor], torch.Tensor]


class RemoteFfn(nn.Module):
    """Stands in Attention where an MLP or expert block was. Has no weights and no experts: vLLM's
    models ask their blocks for these numbers."""

    experts = None
    n_routed_experts = n_shared_experts = n_redundant_experts = 0
    n_logical_experts = n_physical_experts = n_local_physical_experts = 0

    def __init__(self, *_: object, prefix: str, **__: object) -> None:
        super().__init__()
        self._layer = extract_layer_index(prefix)
        self.exchange: Exchange | None = None

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        assert self.exchange is not None, "the connector is given to the model once it is loaded"
        return self.exchange(self._layer, hidden_states)


class Absent(nn.Module):
    """Stands in FFN where a part of Attention was. Is never computed."""

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__()

    def tie_weights(self, _: nn.Module) -> Absent:
        return self


@contextmanager
def only(role: Role, family: Family) -> Iterator[None]:
    """While it lasts, vLLM builds models of the family without the other role's parts."""
    module = importlib.import_module(family.module)
    left_out = family.ffn_blocks if role == "attention" else family.attention_parts
    stand_in = RemoteFfn if role == "attention" else Absent
    own = {name: getattr(module, name) for name in left_out}
    try:
        for name in left_out:
            setattr(module, name, stand_in)
        yield
    finally:
        for name, part in own.items():
            setattr(module, name, part)
