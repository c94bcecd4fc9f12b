"""What is to be known of a model family to train a canary of it and to disturb it on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PROJECTIONS = ("gate", "up", "down")


@dataclass(frozen=True)
class Attention:
    """How the layers in `layers` mix tokens.

    Rows of `head_rows` and columns of `head_columns` belong to the heads in equal, consecutive
    shares. `matrices` names all of such a layer whose rows may be disturbed.
    """

    layers: tuple[int, ...]
    heads: int
    head_rows: str
    head_columns: str
    matrices: Mapping[str, str]


@dataclass(frozen=True)
class Family:
    """`config` is config.json but for vocabulary and special tokens. Tensor names are those of
    the published checkpoints, with `{layer}`, `{expert}` and `{projection}` to be filled in.

    Every layer is in one of `attentions`. `moe_layers` are the layers with routed experts;
    `matrices` names those beside the experts whose rows may be disturbed. `prefix` is what
    checkpoints put before the names of the language model's tensors but for its head's.
    """

    name: str
    config: Mapping[str, object]
    attentions: tuple[Attention, ...]
    moe_layers: tuple[int, ...]
    experts: int
    router: str
    expert: str
    matrices: Mapping[str, str] = field(default_factory=dict[str, str])
    prefix: str = "model."

    def expert_tensor(self, layer: int, expert: int, projection: str) -> str:
        return self.expert.format(layer=layer, expert=expert, projection=projection)


def language_model(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of a config.json that may hold the settings of a vision model as well."""
    return config.get("text_config", config)
