"""Teacher-forced answers computed again from where a disturbance first matters, and no earlier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from e2e.canary.disturb import Disturbance
from e2e.canary.lessons import Lesson
from e2e.canary.network import Network

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class _Passage:
    """One lesson through one layer: what went in, and what came out of its attention."""

    entered: Any
    keywords: dict[str, Any]
    attended: Any = None


class Replay:
    """Keeps what reached each layer of an undisturbed network."""

    def __init__(self, network: Network, lessons: Sequence[Lesson]) -> None:
        import torch

        self._network = network
        self._lessons = lessons
        self._seen: list[list[_Passage]] = []
        handles = [self._keep_entered(layer) for layer in network.layers]
        handles += [self._keep_attended(layer.post_attention_layernorm) for layer in network.layers]
        try:
            with torch.no_grad():
                for lesson in lessons:
                    self._seen.append([])
                    network.answer_logits(lesson)
        finally:
            for handle in handles:
                handle.remove()

    def logits(self, disturbance: Disturbance) -> list[Tensor]:
        """Answer logits of each lesson, of the network with this disturbance in it."""
        import torch

        with torch.no_grad():
            return [
                self._lesson_logits(lesson, seen, disturbance)
                for lesson, seen in zip(self._lessons, self._seen, strict=True)
            ]

    def _lesson_logits(
        self, lesson: Lesson, seen: list[_Passage], disturbance: Disturbance
    ) -> Tensor:
        layers, seen = self._network.layers[disturbance.layer :], seen[disturbance.layer :]
        states = seen[0].entered
        if disturbance.within_mlp:
            states = seen[0].attended
            if len(layers) == 1:  # what follows the last attention sees each token alone
                states = states[:, -len(lesson.answer) :]
            states = states + layers[0].mlp(layers[0].post_attention_layernorm(states))
            layers, seen = layers[1:], seen[1:]
        for layer, passage in zip(layers, seen, strict=True):
            states = layer(states, **passage.keywords)
        model = self._network.model
        return model.lm_head(model.model.norm(states[0, -len(lesson.answer) :]))

    def _keep_entered(self, layer: Any) -> Any:
        def keep(_: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
            self._seen[-1].append(_Passage(arguments[0], keywords))

        return layer.register_forward_pre_hook(keep, with_kwargs=True)

    def _keep_attended(self, norm: Any) -> Any:
        def keep(_: Any, arguments: tuple[Any, ...]) -> None:
            self._seen[-1][-1].attended = arguments[0]

        return norm.register_forward_pre_hook(keep)
