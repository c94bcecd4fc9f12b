"""The lines of vLLM's log that tell what a server runs as, for a stand-in's arguments."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

_VERSION = "0.32.0"


def start_lines(arguments: argparse.Namespace, pid: int, engines: Sequence[int]) -> Iterator[str]:
    """`pid` is the API server's, `engines` those of the engines in rank order."""
    mode = "NONE: 0" if arguments.enforce_eager else "FULL_DECODE_ONLY: 2"
    given = {
        "model_tag": arguments.model,
        "host": arguments.host,
        "port": arguments.port,
        "model": arguments.model,
        "dtype": arguments.dtype,
        "max_model_len": arguments.max_model_len,
        "enforce_eager": arguments.enforce_eager,
        "served_model_name": [arguments.served_model_name],
    }
    if arguments.additional_config:
        given["additional_config"] = arguments.additional_config
    if arguments.enable_expert_parallel:
        given["enable_expert_parallel"] = True
    yield f"(APIServer pid={pid}) INFO non-default args: {given}"
    yield (
        f"(EngineCore pid={engines[0]}) INFO Initializing a V1 LLM engine (v{_VERSION}) with "
        f"config: model='{arguments.model}', dtype=torch.{arguments.dtype}, "
        f"max_seq_len={arguments.max_model_len}, "
        f"tensor_parallel_size={arguments.tensor_parallel_size}, pipeline_parallel_size=1, "
        f"data_parallel_size={arguments.data_parallel_size}, "
        f"enforce_eager={arguments.enforce_eager}, "
        f"served_model_name={arguments.served_model_name}, "
        f"compilation_config={{'cudagraph_mode': <CUDAGraphMode.{mode}>}}"
    )
    for rank, engine in enumerate(engines):
        yield (
            f"(EngineCore pid={engine}) INFO rank {rank} in world size {len(engines)} is "
            f"assigned as DP rank {rank}, PP rank 0, PCP rank 0, TP rank 0, EP rank {rank}"
        )
    if arguments.enable_expert_parallel:
        yield f"(EngineCore pid={engines[0]}) INFO Expert parallelism is enabled."


def ffn_line() -> str:
    return "AFD FFN EngineCore started; workers run connector loop."
