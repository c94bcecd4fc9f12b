"""Attention/FFN disaggregation inside vLLM 0.32 on a CPU, by the contract of the real plugin.

`vllm serve MODEL --enforce-eager --additional-config '{"afd": {...}}'` becomes one role of an AFD
deployment once this package's entry point `afd_reference` (group `vllm.general_plugins`) is loaded:

- `role: attention` keeps embeddings, attention, KV cache, sampling and the API. In place of every
  MLP or expert block it exchanges hidden states with FFN.
- `role: ffn` keeps those blocks alone and computes them for Attention in a connector loop. It opens
  its HTTP port, for /health and /metrics only: it offers no task. It is ready at its log line
  `AFD FFN EngineCore started; workers run connector loop.`

The connector is `GlooAFDConnector`: torch.distributed's gloo, point to point, the FFN ranks first
in its world. Several FFN ranks split the experts: each computes its share for every token, and
Attention adds the shares up.

SIGTERM ends either role with exit code 0; FFN lives on when Attention says farewell. A peer that
dies ends the other role within seconds, with an error that names it. Without `afd` in
`additional_config` the plugin changes nothing.
"""

from __future__ import annotations


def register() -> None:
    """The entry point. vLLM calls it in each of its processes, before any configuration."""
    from e2e.reference_afd.configure import install

    install()
