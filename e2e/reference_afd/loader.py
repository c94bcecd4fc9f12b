"""vLLM's model loader for one rank's share of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import safe_open
from torch import nn
from vllm.config import ModelConfig, VllmConfig, get_current_vllm_config
from vllm.model_executor.layers.fused_moe.runner.moe_runner import MoERunner
from vllm.model_executor.model_loader.base_loader import BaseModelLoader

from e2e.reference_afd.configure import role_rank, settings_of
from e2e.reference_afd.families import FAMILIES
from e2e.reference_afd.model import only
from e2e.reference_afd.settings import AfdRefused, log
from e2e.reference_afd.share import Share, Tally


class ShareLoader(BaseModelLoader):
    """Builds a role's part of the model, reads that rank's share of the checkpoint and nothing
    else, and logs both."""

    def download_model(self, model_config: ModelConfig) -> None:
        """Nothing to do: the checkpoint is a local folder."""

    def create_model(
        self, vllm_config: VllmConfig, model_config: ModelConfig, prefix: str = ""
    ) -> nn.Module:
        with only(share_of(vllm_config).role, FAMILIES[model_config.architecture]):
            model = super().create_model(vllm_config, model_config, prefix)
        for module in model.modules():
            if isinstance(module, MoERunner):
                # Every FFN rank gets every token: there is nothing to gather from the others.
                module.moe_config.moe_parallel_config.dp_size = 1
        return model

    def load_weights(self, model: nn.Module, model_config: ModelConfig) -> None:
        """Raises AfdRefused for a checkpoint that is not local safetensors or lacks weights, or
        whose blocks several FFN ranks cannot compute in shares."""
        share = share_of(get_current_vllm_config())
        files = sorted(Path(model_config.model).glob("*.safetensors"))
        if not files:
            raise AfdRefused([f"{model_config.model} is not a folder with *.safetensors"])
        read, held = Tally(), Tally()
        loaded = cast(Any, model).load_weights(_tensors(files, share, read))
        parameters = dict(model.named_parameters())
        if missing := sorted(parameters.keys() - loaded):
            raise AfdRefused([f"the checkpoint lacks {', '.join(missing)}"])
        for name, parameter in parameters.items():
            held.add(name, parameter.nbytes)
        if held.tensors["dense MLP"] and share.ranks > 1:
            raise AfdRefused(["several ffn ranks split routed experts alone; it has dense MLPs"])
        on_disk = sum(file.stat().st_size for file in files)
        log.info("AFD %s read from the checkpoint: %s of %d bytes.", share.name, read, on_disk)
        log.info("AFD %s holds parameters: %s.", share.name, held)


def share_of(vllm_config: VllmConfig) -> Share:
    """What this process's rank loads."""
    settings = settings_of(vllm_config)
    assert settings is not None, "the loader is chosen by an AFD configuration"
    return Share(
        role=settings.role,
        rank=role_rank(vllm_config),
        ranks=settings.role_ranks,
        experts=vllm_config.model_config.get_num_experts(),
    )


def _tensors(files: list[Path], share: Share, read: Tally) -> Iterator[tuple[str, torch.Tensor]]:
    for file in files:
        with safe_open(file, "pt") as tensors:
            for name in filter(share.holds, tensors.keys()):
                tensor = tensors.get_tensor(name)
                read.add(name, tensor.nbytes)
                yield name, tensor
