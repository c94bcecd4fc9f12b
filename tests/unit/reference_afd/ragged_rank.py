"""One rank of two: `ragged_rank.py RANK FOLDER`. Writes what both collectives gave it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from e2e.reference_afd import ragged

SIZES = [3, 1]


def main(rank: int, folder: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    own = torch.full((SIZES[rank], 2), rank + 1, dtype=torch.bfloat16)
    gathered = ragged.all_gather(own, SIZES, None)
    whole = torch.arange(8, dtype=torch.bfloat16).view(4, 2) * (rank + 1)
    scattered = ragged.reduce_scatter(whole, SIZES, None)
    seen = [gathered.tolist(), scattered.tolist(), str(scattered.dtype)]
    (folder / f"{rank}.json").write_text(json.dumps(seen))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
