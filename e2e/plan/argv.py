"""The command line of a role: `vllm serve` with what the profile claims, flag by flag."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from pydantic import JsonValue

from e2e.profile.model import Afd, Args, Execution, Layout, RoleName, TimeLimits

LOOPBACK = "127.0.0.1"

# What a native server is called in served model names and reports.
_SERVED_SUFFIX: dict[RoleName, str] = {
    "native": "baseline",
    "attention": "attention",
    "ffn": "ffn",
}


def served_name(prefix: str, role: RoleName) -> str:
    return f"{prefix}-{_SERVED_SUFFIX[role]}"


def head(executable: str, model: str, name: str, limits: TimeLimits) -> list[str]:
    """`vllm serve MODEL`, its name, and what it gives running requests when stopped."""
    shutdown = ["--shutdown-timeout", str(limits.shutdown)]
    return [executable, "serve", model, *shutdown, "--served-model-name", name]


def parallel(layout: Layout, expert_parallel: bool) -> list[str]:
    sizes = ["--data-parallel-size", str(layout.dp), "--tensor-parallel-size", str(layout.tp)]
    return sizes + (["--enable-expert-parallel"] if expert_parallel else [])


def additional_config(
    afd: Afd, role: Literal["attention", "ffn"], port: int, ranks: tuple[int, int]
) -> list[str]:
    """The AFD plugin's configuration. `ranks` are those of Attention and of FFN."""
    config: dict[str, JsonValue] = {
        "role": role,
        "connector": afd.connector,
        "host": LOOPBACK,
        "port": port,
        "num_attention_ranks": ranks[0],
        "num_ffn_ranks": ranks[1],
    }
    if afd.asynchronous:
        config["async"] = True
    if afd.gate_on_attention:
        config["compute_gate_on_attention"] = True
    if afd.connector_extra:
        config["connector_extra_config"] = afd.connector_extra
    return ["--additional-config", _json({"afd": config})]


def execution_mode(execution: Execution, args: Args) -> list[str]:
    """Eager, or full decode graphs of one batch size; with overlap its thresholds.

    `args` that name the largest batch themselves, or leave it out, are not spoken over.
    """
    if execution.mode == "eager":
        return ["--enforce-eager"]
    size = str(execution.capture_size)
    flags: list[str] = []
    for flag in ("max-num-seqs", "max-num-batched-tokens"):
        if flag not in args:
            flags += [f"--{flag}", size]
    flags += ["--max-cudagraph-capture-size", size, "--cudagraph-capture-sizes", size]
    flags += ["--compilation-config", _json({"cudagraph_mode": "FULL_DECODE_ONLY"})]
    if execution.dbo is not None:
        flags += ["--enable-dbo"]
        flags += ["--dbo-decode-token-threshold", str(execution.dbo.decode_threshold)]
        flags += ["--dbo-prefill-token-threshold", str(execution.dbo.prefill_threshold)]
    return flags


def address(port: int) -> list[str]:
    return ["--host", LOOPBACK, "--port", str(port)]


def own_flags(args: Mapping[str, JsonValue]) -> list[str]:
    """A profile's `args`: `--flag`, `--flag=value`, or `--flag a b` for a list."""
    flags: list[str] = []
    for flag, value in args.items():
        match value:
            case None | False:
                continue
            case True:
                flags.append(f"--{flag}")
            case list():
                flags += [f"--{flag}", *map(_text, value)]
            case _:
                flags.append(f"--{flag}={_text(value)}")
    return flags


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: JsonValue) -> str:
    return json.dumps(value, separators=(",", ":"))
