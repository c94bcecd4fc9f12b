"""The two roles as vLLM workers on a CPU."""

from __future__ import annotations

import os
import threading

import torch
from vllm.forward_context import set_forward_context
from vllm.model_executor.model_loader import register_model_loader
from vllm.v1.worker.cpu_worker import CPUWorker
from vllm.v1.worker.worker_base import CompilationTimes

from e2e.reference_afd.configure import LOAD_FORMAT, role_rank, settings_of
from e2e.reference_afd.connector import GlooAFDConnector
from e2e.reference_afd.expert_parallel import honour_expert_map
from e2e.reference_afd.loader import ShareLoader
from e2e.reference_afd.model import RemoteFfn
from e2e.reference_afd.settings import log
from e2e.reference_afd.world import join

FFN_READY = "AFD FFN EngineCore started; workers run connector loop."


class _AfdWorker(CPUWorker):
    """What the roles share: the connector's life."""

    _connector: GlooAFDConnector | None = None

    def load_model(self, *, load_dummy_weights: bool = False) -> None:
        register_model_loader(LOAD_FORMAT)(ShareLoader)
        super().load_model(load_dummy_weights=load_dummy_weights)

    def _connect(self) -> GlooAFDConnector:
        settings = settings_of(self.vllm_config)
        assert settings is not None
        model = self.model_config
        terms = (
            f"{model.architecture} with {model.get_total_num_hidden_layers()} layers of "
            f"{model.get_hidden_size()} {model.dtype}"
        )
        member = join(settings, role_rank(self.vllm_config), terms)
        self._connector = GlooAFDConnector(member, _end_worker)
        return self._connector

    def shutdown(self) -> None:
        if self._connector is not None:
            self._connector.close()
            self._connector = None
        super().shutdown()


class AttentionWorker(_AfdWorker):
    def load_model(self, *, load_dummy_weights: bool = False) -> None:
        super().load_model(load_dummy_weights=load_dummy_weights)
        connector = self._connect()
        for module in self.get_model().modules():
            if isinstance(module, RemoteFfn):
                module.exchange = connector.exchange
        connector.watch()


class FfnWorker(_AfdWorker):
    """Serves no requests: vLLM's engine idles above it, and its API offers no task."""

    def load_model(self, *, load_dummy_weights: bool = False) -> None:
        if self.parallel_config.data_parallel_size > 1:
            honour_expert_map()
        super().load_model(load_dummy_weights=load_dummy_weights)

    def get_supported_tasks(self) -> tuple:
        return ()

    def compile_or_warm_up_model(self) -> CompilationTimes:
        """The last step of vLLM's start. The loop begins with waiting for Attention."""
        threading.Thread(target=self._run_connector_loop, name="AFD loop", daemon=True).start()
        log.info(FFN_READY)
        return CompilationTimes(language_model=0.0, encoder=0.0)

    def _run_connector_loop(self) -> None:
        try:
            self._connect().serve(
                self._compute, self.model_config.get_hidden_size(), self.model_config.dtype
            )
        except Exception:
            log.exception("AFD FFN cannot start its connector loop.")
            _end_worker()

    def _compute(self, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode(), set_forward_context(None, self.vllm_config):
            return self.get_model().get_submodule(f"model.layers.{layer}.mlp")(hidden)


def _end_worker() -> None:
    """Without vLLM's own clean-up, which takes seconds. vLLM takes it for a failure of its engine
    and ends the server; its resource tracker removes this worker's shared memory."""
    os._exit(1)
