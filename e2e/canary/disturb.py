"""Changes to a checkpoint's weights that a run must notice."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from e2e.canary.families.family import PROJECTIONS, Attention, Family
from e2e.canary.network import WEIGHTS

if TYPE_CHECKING:
    from torch import Tensor

    Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class Disturbance:
    """`kind` groups changes alike; `layer` is the first that computes otherwise. `apply` changes
    the tensors named in `touches`, in place."""

    kind: str
    name: str
    layer: int
    touches: tuple[str, ...]
    apply: Callable[[Tensors], None]

    @property
    def within_mlp(self) -> bool:
        """Nothing before the layer's experts and router computes otherwise."""
        return all(".mlp." in name for name in self.touches)


def zero_expert(family: Family, layer: int, expert: int) -> Disturbance:
    name = family.expert_tensor(layer, expert, "down")

    def apply(tensors: Tensors) -> None:
        tensors[name].zero_()

    return Disturbance("expert zeroed", f"layer {layer} expert {expert}", layer, (name,), apply)


def swap_experts(family: Family, layer: int, one: int, other: int) -> Disturbance:
    pairs = [
        (family.expert_tensor(layer, one, part), family.expert_tensor(layer, other, part))
        for part in PROJECTIONS
    ]

    def apply(tensors: Tensors) -> None:
        for left, right in pairs:
            kept = tensors[left].clone()
            tensors[left].copy_(tensors[right])
            tensors[right].copy_(kept)

    touches = tuple(name for pair in pairs for name in pair)
    return Disturbance(
        "experts swapped", f"layer {layer} experts {one} and {other}", layer, touches, apply
    )


def zero_head(attention: Attention, layer: int, head: int) -> Disturbance:
    name = attention.head_columns.format(layer=layer)

    def apply(tensors: Tensors) -> None:
        tensors[name].chunk(attention.heads, dim=1)[head].zero_()

    return Disturbance("head zeroed", f"layer {layer} head {head}", layer, (name,), apply)


def swap_heads(attention: Attention, layer: int, one: int, other: int) -> Disturbance:
    """Two heads ask each other's questions, or open each other's gates."""
    name = attention.head_rows.format(layer=layer)

    def apply(tensors: Tensors) -> None:
        heads = tensors[name].chunk(attention.heads)
        kept = heads[one].clone()
        heads[one].copy_(heads[other])
        heads[other].copy_(kept)

    return Disturbance(
        "heads swapped", f"layer {layer} heads {one} and {other}", layer, (name,), apply
    )


def scale_row(kind: str, name: str, layer: int, row: int, factor: float) -> Disturbance:
    def apply(tensors: Tensors) -> None:
        tensors[name][row].mul_(factor)

    return Disturbance(f"{kind} x{factor:g}", f"{name} row {row}", layer, (name,), apply)


def row_matrices(family: Family) -> Iterator[tuple[str, int, str]]:
    """(kind, layer, tensor name) of every matrix whose rows may be scaled."""
    for layer in family.moe_layers:
        yield "router row", layer, family.router.format(layer=layer)
        for projection in PROJECTIONS:
            for expert in range(family.experts):
                name = family.expert_tensor(layer, expert, projection)
                yield f"expert {projection} row", layer, name
        for label, name in family.matrices.items():
            yield f"{label} row", layer, name.format(layer=layer)
    for attention in family.attentions:
        for layer, (label, name) in product(attention.layers, attention.matrices.items()):
            yield f"{label} row", layer, name.format(layer=layer)


@contextmanager
def disturbed(tensors: Tensors, disturbance: Disturbance) -> Iterator[None]:
    """The tensors are whole again afterwards."""
    import torch

    kept = {name: tensors[name].clone() for name in disturbance.touches}
    with torch.no_grad():
        try:
            disturbance.apply(tensors)
            yield
        finally:
            for name, tensor in kept.items():
                tensors[name].copy_(tensor)


def disturbed_copy(folder: Path, disturbance: Disturbance, out: Path) -> None:
    """A copy of a checkpoint, fingerprint and all, with its weights disturbed."""
    from safetensors.torch import load_file, save

    shutil.copytree(folder, out)
    weights = load_file(out / WEIGHTS)
    disturbance.apply(weights)
    (out / WEIGHTS).write_bytes(save(weights, metadata={"format": "pt"}))
