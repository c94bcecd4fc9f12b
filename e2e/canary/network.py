"""A canary's network: transformers' own modelling, seen under the names of its checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from e2e.canary.families import find
from e2e.canary.families.family import Family, language_model
from e2e.canary.lessons import Lesson
from e2e.canary.recipe import END_OF_TEXT_ID
from e2e.errors import SetupMissing

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS = "model.safetensors"


def require_torch() -> None:
    """Raises SetupMissing naming the packages that are not there."""
    import importlib.util

    needed = ("torch", "transformers", "tokenizers", "safetensors")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise SetupMissing(
            f"a canary is built and audited with {', '.join(missing)}, not installed here",
            mend="make setup, or pip install 'afd-e2e[cpu]'; a canary built on another machine"
            " can be used by setting the profile's model variable to its folder",
        )


@contextmanager
def one_thread() -> Iterator[None]:
    """The same sums in the same order on any machine, and no slower on busy cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Network:
    """The model and its tensors. `settings` are config.json's of the language model. `tensors` are
    views under checkpoint names, one per expert and projection: writing to them changes the model.
    """

    def __init__(self, family: Family, vocabulary: int, seed: int = 0) -> None:
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM

        self.family = family
        self.settings = {
            **language_model(family.config),
            **_special_tokens(),
            "vocab_size": vocabulary,
        }
        settings = dict(self.settings)
        config = AutoConfig.for_model(settings.pop("model_type"), **settings)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model: Any = AutoModelForCausalLM.from_config(
                config, dtype=torch.float32, attn_implementation="sdpa"
            )
        # transformers' grouped matrix multiplication is ten times slower on a CPU.
        self.model.set_experts_implementation("eager")
        self.model.eval()
        self.tensors = {
            name: tensor
            for whole, parameter in self.model.named_parameters()
            for name, tensor in _parts(self._published(whole), parameter.data)
        }

    def gradients(self) -> dict[str, Tensor]:
        """Under the same names as `tensors`, after a backward pass."""
        return {
            name: tensor
            for whole, parameter in self.model.named_parameters()
            if parameter.grad is not None
            for name, tensor in _parts(self._published(whole), parameter.grad)
        }

    def _published(self, name: str) -> str:
        inner = name.removeprefix("model.")
        return name if inner == name else self.family.prefix + inner

    @property
    def layers(self) -> Any:
        return self.model.model.layers

    def routers(self) -> list[Any]:
        """The router modules, in the order of `family.moe_layers`."""
        return [self.layers[layer].mlp.gate for layer in self.family.moe_layers]

    def answer_logits(self, lesson: Lesson) -> Tensor:
        """Teacher-forced: [answer tokens, vocabulary], row i predicts answer token i."""
        import torch

        states = self.model.model(torch.tensor([lesson.context]), use_cache=False)
        return self.model.lm_head(states.last_hidden_state[0, -len(lesson.answer) :])


def save(network: Network, folder: Path) -> None:
    """Weights in bfloat16: float32 weights are rounded here."""
    import torch
    from safetensors.torch import save as serialised

    weights = {
        name: tensor.detach().to(torch.bfloat16).contiguous().clone()
        for name, tensor in network.tensors.items()
    }
    (folder / WEIGHTS).write_bytes(serialised(weights, metadata={"format": "pt"}))
    settings = {**network.settings, "dtype": "bfloat16", "torch_dtype": "bfloat16"}
    config = network.family.config
    config = {**config, "text_config": settings} if "text_config" in config else settings
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    generation = {**_special_tokens(), "do_sample": False}
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")


def load(folder: Path) -> Network:
    """The saved weights, computed in float32. Raises SetupMissing where it is no canary."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        config = json.loads((folder / "config.json").read_text())
        weights = load_file(folder / WEIGHTS)
    except (OSError, ValueError, SafetensorError) as error:
        raise SetupMissing(
            f"{folder} cannot be read as a checkpoint: {error}",
            mend="build it with `afd-e2e canary build`",
        ) from error
    network = Network(find(str(config.get("model_type"))), language_model(config)["vocab_size"])
    with torch.no_grad():
        for name, tensor in network.tensors.items():
            tensor.copy_(weights[name])
    return network


def padded_vocabulary(size: int) -> int:
    """A multiple of 64, as serving kernels like it."""
    return -(-size // 64) * 64


def _special_tokens() -> dict[str, int | None]:
    return {"bos_token_id": None, "eos_token_id": END_OF_TEXT_ID, "pad_token_id": END_OF_TEXT_ID}


def _parts(name: str, tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """transformers keeps the experts of a layer in one tensor, checkpoints one by one."""
    stem, _, last = name.rpartition(".")
    if last == "gate_up_proj":
        for expert, both in enumerate(tensor):
            gate, up = both.chunk(2)
            yield f"{stem}.{expert}.gate_proj.weight", gate
            yield f"{stem}.{expert}.up_proj.weight", up
    elif last == "down_proj":
        for expert, down in enumerate(tensor):
            yield f"{stem}.{expert}.down_proj.weight", down
    else:
        yield name, tensor
