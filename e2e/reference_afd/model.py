"""vLLM's own model with the other role's parts left out, and the loader that reads the rest."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import safe_open
from torch import nn
from vllm.config import ModelConfig, VllmConfig
from vllm.model_executor.layers.fused_moe.runner.moe_runner import MoERunner
from vllm.model_executor.model_loader import register_model_loader
from vllm.model_executor.model_loader.base_loader import BaseModelLoader
from vllm.model_executor.models.utils import extract_layer_index

from e2e.reference_afd.configure import LOAD_FORMAT, role_rank, settings_of
from e2e.reference_afd.families import FAMILIES, Family
from e2e.reference_afd.settings import AfdRefused, Role
from e2e.reference_afd.share import Share, Tally, local_experts

log = logging.getLogger("vllm.afd_reference")

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


@register_model_loader(LOAD_FORMAT)
class ShareLoader(BaseModelLoader):
    """Builds a role's part of the model, reads that rank's share of the checkpoint and nothing
    else, and logs both."""

    def download_model(self, model_config: ModelConfig) -> None:
        """Nothing to do: the checkpoint is a local folder."""

    def create_model(
        self, vllm_config: VllmConfig, model_config: ModelConfig, prefix: str = ""
    ) -> nn.Module:
        settings = settings_of(vllm_config)
        assert settings is not None
        rank = role_rank(vllm_config)
        self._who = f"{settings.role} rank {rank}"
        self._share = Share(
            settings.role, local_experts(model_config.get_num_experts(), settings.role_ranks, rank)
        )
        with only(settings.role, FAMILIES[model_config.architecture]):
            model = super().create_model(vllm_config, model_config, prefix)
        for module in model.modules():
            if isinstance(module, MoERunner):
                # Every FFN rank gets every token: there is nothing to gather from the others.
                module.moe_config.moe_parallel_config.dp_size = 1
        return model

    def load_weights(self, model: nn.Module, model_config: ModelConfig) -> None:
        """Raises AfdRefused for a checkpoint that is not local safetensors or lacks weights."""
        files = sorted(Path(model_config.model).glob("*.safetensors"))
        if not files:
            raise AfdRefused([f"{model_config.model} is not a folder with *.safetensors"])
        read = Tally()
        loaded = cast(Any, model).load_weights(self._tensors(files, read))
        parameters = dict(model.named_parameters())
        if missing := sorted(parameters.keys() - loaded):
            raise AfdRefused([f"the checkpoint lacks {', '.join(missing)}"])
        held = Tally()
        for name, parameter in parameters.items():
            held.add(name, parameter.nbytes)
        log.info(
            "AFD %s read from the checkpoint: %s of %d bytes on disk.",
            self._who,
            read,
            sum(file.stat().st_size for file in files),
        )
        log.info("AFD %s holds parameters: %s.", self._who, held)

    def _tensors(self, files: list[Path], read: Tally) -> Iterator[tuple[str, torch.Tensor]]:
        for file in files:
            with safe_open(file, "pt") as tensors:
                for name in filter(self._share.holds, tensors.keys()):
                    tensor = tensors.get_tensor(name)
                    read.add(name, tensor.nbytes)
                    yield name, tensor
