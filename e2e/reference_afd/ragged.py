"""What expert parallelism needs of torch and vLLM lacks on a CPU: collectives over ranks with
different numbers of tokens, and expert ids of one rank. Needs torch alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


def all_gather(own: torch.Tensor, sizes: list[int], group: ProcessGroup | None) -> torch.Tensor:
    """All ranks' tensors one after the other: [sum(sizes), ...] of each [sizes[rank], ...]. Gloo
    gathers equal shapes, so each is padded to the largest on the way."""
    padded = own.new_zeros(max(sizes), *own.shape[1:])
    padded[: len(own)] = own
    gathered = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(gathered, padded, group=group)
    return torch.cat([part[:size] for part, size in zip(gathered, sizes, strict=True)])


def reduce_scatter(
    whole: torch.Tensor, sizes: list[int], group: ProcessGroup | None
) -> torch.Tensor:
    """This rank's part [sizes[rank], ...] of the sum of all ranks' `whole` [sum(sizes), ...]. The
    sum is taken in float32, and whole: gloo scatters no sums."""
    total = whole.float()
    dist.all_reduce(total, group=group)
    return total.split(sizes)[dist.get_rank(group)].to(whole.dtype)


def to_local(
    expert_ids: torch.Tensor, weights: torch.Tensor, expert_map: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """A rank's own ids for the experts [tokens, k] that the router chose, by `expert_map` [experts]
    (-1: another rank's). Another rank's become expert 0 with weight 0."""
    local = expert_map[expert_ids.long()].to(expert_ids.dtype)
    remote = local < 0
    return local.masked_fill(remote, 0), weights.masked_fill(remote, 0)
