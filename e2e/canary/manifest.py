"""`canary.json`: what a canary has learnt, and what it notices. Read without torch."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from e2e.errors import SetupMissing

FILE = "canary.json"
SCHEMA_VERSION = 2


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Expected(_Record):
    """The answer to one prompt. `token_ids` ends with the end-of-text token.

    `top_logprobs`: for each of these tokens the most likely (token id, natural logarithm of its
    probability), most likely first, as float32 arithmetic has them for the saved weights.
    """

    doc_id: int
    prompt: str
    prompt_sha256: str
    text: str
    token_ids: tuple[int, ...]
    top_logprobs: tuple[tuple[tuple[int, float], ...], ...]


class Band(_Record):
    """Distances for servers of one dtype: the largest of the same weights computed in several
    ways, the smallest that a change guarded against has made, and the limit between them."""

    noise: float
    smallest_effect: float
    limit: float

    @property
    def separation(self) -> float:
        return self.smallest_effect / self.noise


class Sensitivity(_Record):
    """Changes of one kind: how many were tried, their smallest distance, and how many of them
    number, text and, by dtype, the fingerprint have noticed."""

    change: str
    tried: int
    smallest_effect: float
    noticed_by_number: int
    noticed_by_text: int
    noticed_by_fingerprint: dict[str, int]


class CanaryManifest(_Record):
    """`smallest_lead`: of a right token's logit over the next. `router_gap`, `expert_share`: see
    `e2e.canary.routing.Routing`. `seal`: SHA-256 of all else, so that a record that was changed by
    hand, a limit above all, is not taken for what was measured."""

    schema_version: int = SCHEMA_VERSION
    family: str
    seed: int
    shots: int
    dataset_sha256: str
    steps: int
    smallest_lead: float
    router_gap: float
    expert_share: float
    bands: dict[str, Band]
    sensitivity: tuple[Sensitivity, ...]
    answers: tuple[Expected, ...]
    seal: str = ""

    def sealed(self) -> CanaryManifest:
        content = json.dumps(self.model_dump(mode="json", exclude={"seal"}), sort_keys=True)
        return self.model_copy(update={"seal": hashlib.sha256(content.encode()).hexdigest()})

    def summary(self) -> str:
        """A few lines for people."""
        tokens = sum(len(answer.token_ids) for answer in self.answers)
        lines = [
            f"canary {self.family}: {len(self.answers)} answers, {tokens} tokens,"
            f" learnt in {self.steps} steps",
            f"  smallest lead of a right token: {self.smallest_lead:.2f} (logits)",
            f"  smallest lead of a chosen expert: {self.router_gap:.3f},"
            f" smallest share of an expert: {self.expert_share:.1%}",
        ]
        lines += [
            f"  {dtype}: noise {band.noise:.2g}, limit {band.limit:.2g}, smallest effect guarded"
            f" against {band.smallest_effect:.2g} ({band.separation:.0f} times the noise)"
            for dtype, band in self.bands.items()
        ]
        return "\n".join(lines)


def write(manifest: CanaryManifest, folder: Path) -> None:
    text = manifest.sealed().model_dump_json(indent=1)
    (folder / FILE).write_text(text + "\n", encoding="utf-8")


def read(folder: Path) -> CanaryManifest | None:
    """None where the folder is no canary. Raises SetupMissing where its record is damaged."""
    path = folder / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SetupMissing(f"{path} cannot be read: {error}", mend=_MEND) from error
    try:
        manifest = CanaryManifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise SetupMissing(
            f"{path} is damaged, or of another version: {where}: {first['msg']}", mend=_MEND
        ) from error
    if manifest.schema_version != SCHEMA_VERSION:
        raise SetupMissing(
            f"{path} has version {manifest.schema_version}, known is {SCHEMA_VERSION}", mend=_MEND
        )
    if manifest != manifest.sealed():
        raise SetupMissing(f"{path} is not what was written when it was built", mend=_MEND)
    return manifest


_MEND = "remove the folder and build the canary again"
