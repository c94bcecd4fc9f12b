"""Expert parallelism over data parallel ranks, natively in vLLM 0.32 on a CPU.

Its CPU communicator has no collectives for batches of different sizes, and its CPU kernel takes
every expert for its own. The entry point `cpu_expert_parallel` (group `vllm.general_plugins`) adds
both, so that `vllm serve --data-parallel-size 2 --enable-expert-parallel` works there.
"""

from __future__ import annotations

import logging
from typing import Any

import torch
from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator

from e2e.reference_afd import ragged

log = logging.getLogger("vllm.cpu_expert_parallel")


class RaggedCommunicator(CpuCommunicator):
    """vLLM's own, with the two collectives that its expert dispatch and combine call."""

    def all_gatherv(
        self,
        input_: torch.Tensor | list[torch.Tensor],
        dim: int = 0,
        sizes: list[int] | None = None,
    ) -> torch.Tensor | list[torch.Tensor]:
        if isinstance(input_, list):
            return [self._gathered(tensor, dim, sizes) for tensor in input_]
        return self._gathered(input_, dim, sizes)

    def reduce_scatterv(
        self, input_: torch.Tensor, dim: int = -1, sizes: list[int] | None = None
    ) -> torch.Tensor:
        assert dim == 0, "tokens are the first dimension"
        sizes = sizes or [len(input_) // self.world_size] * self.world_size
        return ragged.reduce_scatter(input_, sizes, self.device_group)

    def _gathered(self, own: torch.Tensor, dim: int, sizes: list[int] | None) -> torch.Tensor:
        assert dim == 0, "tokens are the first dimension"
        return ragged.all_gather(own, sizes or [len(own)] * self.world_size, self.device_group)


def register() -> None:
    """The entry point. Without data parallelism it changes nothing that is computed."""
    from vllm.platforms import current_platform

    name = f"{__name__}.{RaggedCommunicator.__name__}"
    platform: Any = type(current_platform)
    platform.get_device_communicator_cls = classmethod(lambda cls: name)
    honour_expert_map()
    log.info("cpu_expert_parallel is active.")


def honour_expert_map() -> None:
    """Have vLLM's CPU kernel compute the experts of its own rank alone."""
    from vllm.model_executor.layers.fused_moe.experts.cpu_moe import CPUUnquantizedExperts

    kernel: Any = CPUUnquantizedExperts
    native = kernel.apply

    def apply(self: CPUUnquantizedExperts, **call: Any) -> None:
        if call["expert_map"] is not None:
            assert not call["apply_router_weight_on_input"], "a weight of 0 has to be applied after"
            call["topk_ids"], call["topk_weights"] = ragged.to_local(
                call["topk_ids"], call["topk_weights"], call["expert_map"]
            )
            call["expert_map"] = None
        native(self, **call)

    kernel.apply = apply
