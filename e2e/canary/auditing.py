"""Measure what a saved canary notices of changes to its weights, against its stored limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from e2e.canary import bands, manifest, network, reference, sensitivity
from e2e.canary.lessons import lesson, load_tokenizer
from e2e.canary.manifest import CanaryManifest, Sensitivity
from e2e.canary.sensitivity import Effect
from e2e.errors import SetupMissing


@dataclass(frozen=True)
class AuditReport:
    """`distance`: of the folder's weights as they are to the fingerprint, in float32; more than
    the limit means that they are not those the fingerprint was made of."""

    canary: CanaryManifest
    distance: float
    effects: tuple[Effect, ...]
    sensitivity: tuple[Sensitivity, ...]

    @property
    def genuine(self) -> bool:
        return self.distance <= self.canary.bands["float32"].limit

    def table(self) -> str:
        """For people: one line a kind of change."""
        from e2e.canary.audit_text import table

        return table(self)


def audit(folder: Path, progress: Callable[[str], None]) -> AuditReport:
    """Takes about as long as a third of the build. Raises SetupMissing where there is no canary."""
    network.require_torch()
    known = manifest.read(folder)
    if known is None:
        raise SetupMissing(
            f"{folder} is no canary: no {manifest.FILE}",
            mend="build it with `afd-e2e canary build`",
        )
    with network.one_thread():
        saved = network.load(folder)
        tokenizer = load_tokenizer(folder)
        lessons = [lesson(tokenizer, a.doc_id, a.prompt, a.text) for a in known.answers]
        as_it_is = reference.answers(saved, lessons)
        effects = sensitivity.effects(saved, lessons, known.answers, progress)
    return AuditReport(
        canary=known,
        distance=reference.distance(known.answers, as_it_is),
        effects=tuple(effects),
        sensitivity=tuple(bands.sensitivity(effects, known.bands)),
    )
