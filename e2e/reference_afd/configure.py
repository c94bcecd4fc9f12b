"""From vLLM's configuration to a role: what is refused, and what is set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from e2e.reference_afd.families import FAMILIES
from e2e.reference_afd.settings import AfdRefused, AfdSettings, read

if TYPE_CHECKING:
    from vllm.config import VllmConfig

LOAD_FORMAT = "afd_reference"
# Without a shutdown timeout vLLM kills its workers at SIGTERM, often before they say farewell.
FAREWELL_SECONDS = 3
_WORKERS = {
    "attention": "e2e.reference_afd.workers.AttentionWorker",
    "ffn": "e2e.reference_afd.workers.FfnWorker",
}


@dataclass(frozen=True)
class Server:
    """What a `vllm serve` is asked to be, as far as a role cares. `extras` are optional features
    that are on."""

    device: str
    architecture: str
    dtype: str
    dp: int
    tp: int
    pp: int
    expert_parallel: bool
    eager: bool
    quantization: str | None
    load_format: str
    extras: tuple[str, ...] = ()


def refusals(settings: AfdSettings, server: Server) -> list[str]:
    """Everything that keeps the reference from serving this, in words for the user."""
    family = FAMILIES.get(server.architecture)
    counted = f"num_{settings.role}_ranks"
    rules = (
        (server.device != "cpu", f"the device is {server.device!r}; gloo serves 'cpu' alone"),
        (
            family is None,
            f"{server.architecture} cannot be split; known are {', '.join(FAMILIES)}",
        ),
        (
            server.dtype not in ("torch.float32", "torch.bfloat16"),
            f"{server.dtype} is not supported: some families scale float16 across both roles",
        ),
        (server.tp != 1, f"tensor parallel size is {server.tp}, not 1"),
        (server.pp != 1, f"pipeline parallel size is {server.pp}, not 1"),
        (
            server.dp != settings.role_ranks,
            f"{counted} is {settings.role_ranks}, but the data parallel size is {server.dp}",
        ),
        (
            settings.role == "ffn" and settings.num_ffn_ranks > 1 and not server.expert_parallel,
            "several ffn ranks split the experts and need --enable-expert-parallel",
        ),
        (not server.eager, "graph mode is not supported: add --enforce-eager"),
        (server.quantization is not None, f"quantisation ({server.quantization}) is not supported"),
        (
            server.load_format not in ("auto", "safetensors", LOAD_FORMAT),
            f"load format {server.load_format!r}: a share is read from safetensors",
        ),
    )
    reasons = [reason for broken, reason in rules if broken]
    return reasons + [f"{extra} is not supported" for extra in server.extras]


def settings_of(vllm_config: VllmConfig) -> AfdSettings | None:
    """None where `additional_config` does not speak of AFD. Raises AfdRefused."""
    additional = vllm_config.additional_config
    if not isinstance(additional, Mapping) or "afd" not in additional:
        return None
    return read(additional["afd"])


def role_rank(vllm_config: VllmConfig) -> int:
    """This process's rank within its role, which is its data parallel rank."""
    return vllm_config.parallel_config.data_parallel_rank


def install() -> None:
    """Have vLLM's platform, which every configuration passes, choose the role's worker and loader.
    A configuration that cannot be served raises AfdRefused there."""
    from vllm.platforms import current_platform

    platform: Any = type(current_platform)
    native = platform.check_and_update_config

    def check_and_update_config(cls: type, vllm_config: VllmConfig) -> None:
        settings = settings_of(vllm_config)
        if settings is not None:
            if reasons := refusals(settings, _server(vllm_config, cls.device_type)):
                raise AfdRefused(reasons)
            vllm_config.parallel_config.worker_cls = _WORKERS[settings.role]
            vllm_config.load_config.load_format = LOAD_FORMAT
            if vllm_config.shutdown_timeout == 0:
                vllm_config.shutdown_timeout = FAREWELL_SECONDS
            if settings.role == "ffn":  # There is no KV cache to keep prefixes in.
                vllm_config.cache_config.enable_prefix_caching = False
        native(vllm_config)

    platform.check_and_update_config = classmethod(check_and_update_config)


def _server(vllm_config: VllmConfig, device: str) -> Server:
    parallel, model = vllm_config.parallel_config, vllm_config.model_config
    extras = {
        "dual-batch overlap": parallel.enable_dbo,
        "expert load balancing": parallel.enable_eplb,
        "context parallelism": parallel.prefill_context_parallel_size > 1
        or parallel.decode_context_parallel_size > 1,
        "speculative decoding": vllm_config.speculative_config is not None,
        "LoRA": vllm_config.lora_config is not None,
        "KV transfer": vllm_config.kv_transfer_config is not None,
    }
    return Server(
        device=device,
        architecture=model.architecture,
        dtype=str(model.dtype),
        dp=parallel.data_parallel_size,
        tp=parallel.tensor_parallel_size,
        pp=parallel.pipeline_parallel_size,
        expert_parallel=parallel.enable_expert_parallel,
        eager=model.enforce_eager,
        quantization=model.quantization,
        load_format=str(vllm_config.load_config.load_format),
        extras=tuple(name for name, on in extras.items() if on),
    )
