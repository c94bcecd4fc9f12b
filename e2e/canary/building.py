"""Data set -> trained, measured, saved canary."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from e2e.canary import bands, families, manifest, network, reference, routing, sensitivity
from e2e.canary.families.family import Family
from e2e.canary.lessons import Lesson, answer_text, lesson, save_tokenizer, train_tokenizer
from e2e.canary.manifest import CanaryManifest
from e2e.canary.recipe import RECIPE
from e2e.canary.training import forward, leads, train
from e2e.errors import HarnessError
from e2e.oracle import prompts
from e2e.oracle.dataset import Dataset
from e2e.oracle.prompts import Prompt


def build(
    family_name: str,
    out: Path,
    dataset: Dataset,
    *,
    shots: int,
    samples: int,
    seed: int,
    progress: Callable[[str], None],
) -> CanaryManifest:
    """Deterministic for a seed. `canary.json` is written last: a folder that has it is whole.

    Raises SetupMissing (packages, family, data set) and HarnessError (not learnt, blind, disk).
    """
    network.require_torch()
    family = families.find(family_name)
    questions = prompts.build(dataset, shots, samples)
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / manifest.FILE).unlink(missing_ok=True)
        with network.one_thread():
            return _build(family, out, dataset, questions, shots, seed, progress)
    except OSError as error:
        raise HarnessError(
            f"the canary cannot be written to {out}: {error.strerror or error}",
            mend="free space there (a canary is a few MB), or choose another folder",
        ) from error


def _build(
    family: Family,
    out: Path,
    dataset: Dataset,
    questions: list[Prompt],
    shots: int,
    seed: int,
    progress: Callable[[str], None],
) -> CanaryManifest:
    tokenizer = train_tokenizer(questions, RECIPE.vocabulary)
    lessons = [lesson(tokenizer, q.doc_id, q.text, answer_text(q)) for q in questions]
    learner = network.Network(
        family, network.padded_vocabulary(tokenizer.get_vocab_size()), seed=seed
    )
    steps = train(learner, lessons, RECIPE, progress)
    save_tokenizer(tokenizer, out)
    network.save(learner, out)

    saved = network.load(out)
    lead, routed = _margins(saved, lessons)
    expectations = reference.expected(saved, lessons)
    noise = reference.noise(saved, lessons, expectations)
    effects = sensitivity.effects(saved, lessons, expectations, progress)
    found = bands.bands(effects, noise)
    made = CanaryManifest(
        family=family.name,
        seed=seed,
        shots=shots,
        dataset_sha256=dataset.sha256,
        steps=steps,
        smallest_lead=lead,
        router_gap=routed.smallest_gap,
        expert_share=routed.smallest_share,
        bands=found,
        sensitivity=tuple(bands.sensitivity(effects, found)),
        answers=tuple(expectations),
    )
    manifest.write(made, out)
    return made


def _margins(saved: network.Network, lessons: list[Lesson]) -> tuple[float, routing.Routing]:
    """Of the saved weights: rounding has moved them."""
    import torch

    with torch.no_grad(), routing.watched(saved) as routers:
        answers, every, own = forward(saved, lessons, routers)
    right = torch.tensor([token for one in lessons for token in one.answer])
    return leads(answers, right).min().item(), routing.summary(every, own, routers.chosen)
