"""What is to be known of a model family to train a canary of it and to disturb it on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PROJECTIONS = ("gate", "up", "down")


@dataclass(frozen=True)
class Family:
    """`config` is config.json but for vocabulary and special tokens. Tensor names are those of
    the published checkpoints, with `{layer}`, `{expert}` and `{projection}` to be filled in.

    `matrices` names all others of a layer whose rows may be disturbed. Rows of `query`
    and columns of `output` belong to the heads in equal, consecutive shares. `moe_layers` are the
    layers with routed experts.
    """

    name: str
    config: Mapping[str, object]
    moe_layers: tuple[int, ...]
    experts: int
    heads: int
    router: str
    expert: str
    matrices: Mapping[str, str]
    query: str
    output: str

    @property
    def layers(self) -> int:
        count = self.config["num_hidden_layers"]
        assert isinstance(count, int)
        return count

    def expert_tensor(self, layer: int, expert: int, projection: str) -> str:
        return self.expert.format(layer=layer, expert=expert, projection=projection)
