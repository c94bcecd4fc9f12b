"""Tiny checkpoints that have learnt the answers, and notice when a server computes otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from e2e.canary.auditing import AuditReport
    from e2e.canary.manifest import CanaryManifest
    from e2e.oracle.dataset import Dataset


def build(
    family: str,
    out: Path,
    dataset: Dataset,
    *,
    shots: int = 8,
    samples: int = 7,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> CanaryManifest:
    """Train a canary into `out`, a few MB, in minutes on two cores.

    Raises SetupMissing (packages, family, data set) and HarnessError (not learnt, blind, disk).
    """
    from e2e.canary import building

    return building.build(
        family, out, dataset, shots=shots, samples=samples, seed=seed, progress=progress
    )


def audit(folder: Path, progress: Callable[[str], None] = lambda text: None) -> AuditReport:
    """Measure what the canary in `folder` notices. Raises SetupMissing where there is none."""
    from e2e.canary import auditing

    return auditing.audit(folder, progress)
