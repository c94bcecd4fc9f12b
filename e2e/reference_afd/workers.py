"""The two roles as vLLM workers on a CPU."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

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
from e2e.reference_afd.world import Member, join

FFN_READY = "AFD FFN EngineCore started; workers run connector loop."


class _AfdWorker(CPUWorker):
    """What the roles share: the connector's life. It meets the other ranks in a thread, so that
    neither a server's start nor its end ever waits for the other role."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._connector: Future[GlooAFDConnector] = Future()

    def load_model(self, *, load_dummy_weights: bool = False) -> None:
        register_model_loader(LOAD_FORMAT)(ShareLoader)
        super().load_model(load_dummy_weights=load_dummy_weights)

    def connect(self, then: Callable[[GlooAFDConnector], None]) -> None:
        """`then` is done once all ranks have met; the process ends if they do not."""

        def meet() -> None:
            try:
                connector = GlooAFDConnector(self._join(), _end_process)
                then(connector)
                self._connector.set_result(connector)
            except Exception:
                log.exception("AFD connector cannot start.")
                _end_process()

        threading.Thread(target=meet, name="AFD rendezvous", daemon=True).start()

    def shutdown(self) -> None:
        if self._connector.done():
            self._connector.result().close()
        super().shutdown()

    def _join(self) -> Member:
        settings = settings_of(self.vllm_config)
        assert settings is not None, "this worker is chosen by an AFD configuration"
        model = self.model_config
        terms = (
            f"{model.architecture} with {model.get_total_num_hidden_layers()} layers of "
            f"{model.get_hidden_size()} {model.dtype}"
        )
        return join(settings, role_rank(self.vllm_config), terms)


class AttentionWorker(_AfdWorker):
    """Computes a model whose MLP and expert blocks are exchanges with FFN."""

    def load_model(self, *, load_dummy_weights: bool = False) -> None:
        super().load_model(load_dummy_weights=load_dummy_weights)
        for module in self.get_model().modules():
            if isinstance(module, RemoteFfn):
                module.exchange = self._exchange
        self.connect(then=GlooAFDConnector.watch)

    def _exchange(self, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        return self._connector.result().exchange(layer, hidden)


class FfnWorker(_AfdWorker):
    """Serves no requests: vLLM's engine idles above it, and its API offers no task."""

    def load_model(self, *, load_dummy_weights: bool = False) -> None:
        if self.parallel_config.data_parallel_size > 1:
            honour_expert_map()
        super().load_model(load_dummy_weights=load_dummy_weights)

    def get_supported_tasks(self) -> tuple:
        return ()

    def compile_or_warm_up_model(self) -> CompilationTimes:
        """The last step of vLLM's start."""
        self.connect(then=self._serve)
        log.info(FFN_READY)
        return CompilationTimes(language_model=0.0, encoder=0.0)

    def _serve(self, connector: GlooAFDConnector) -> None:
        model = self.model_config
        connector.serve(self._compute, model.get_hidden_size(), model.dtype)

    def _compute(self, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode(), set_forward_context(None, self.vllm_config):
            return self.get_model().get_submodule(f"model.layers.{layer}.mlp")(hidden)


def _end_process() -> None:
    """Without vLLM's own clean-up, which takes seconds. vLLM takes it for a failure of its engine
    and ends the server; its resource tracker removes this worker's shared memory."""
    os._exit(1)
