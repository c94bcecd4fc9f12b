"""The record of one case, as `evidence.json` holds it. Everything else is made from it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from e2e.errors import Outcome

SCHEMA_VERSION = 1

CheckName = Literal["number", "text", "fingerprint", "tokens", "logprobs"]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="strings")


class Failure(_Record):
    """One thing that went wrong; a case can have several, none hides another."""

    outcome: Outcome
    what: str
    phase: str | None = None
    role: str | None = None
    device: str | None = None
    log: str | None = None
    lines: list[str] = []
    mend: str = ""


class Claim(_Record):
    """What the profile says, and what was seen where of the live deployment."""

    name: str
    held: bool
    expected: str
    seen: str
    where: str


class Proof(_Record):
    """What had to come back after the stop: processes, ports, memory. `found` is what did not."""

    name: str
    held: bool
    found: list[str] = []
    seconds: float = 0.0
    detail: dict[str, object] = {}


class Phase(_Record):
    name: str
    started: str
    seconds: float


class RoleRecord(_Record):
    """One launched role. Secrets are replaced before they get here."""

    role: str
    argv: list[str]
    env_set: dict[str, str]
    env_unset: list[str]
    devices: list[str]
    ports: dict[str, int]
    log: str
    pid: int | None = None
    pids_seen: list[int] = []
    exit_code: int | None = None
    expected_exit_codes: list[int] = []
    forced_kill: bool = False
    ready_seconds: float | None = None
    stop_seconds: float | None = None
    peak_memory_mib: float | None = None


class Sample(_Record):
    """One question and its answer. `invalid` says why the answer cannot be judged at all.

    `top_logprobs` has the most likely tokens at each answer token, {token id: nats}, where they
    were asked for; `retries` the reasons of attempts after the first.
    """

    doc_id: int
    prompt_sha256: str
    question: str
    gold: str
    text: str | None
    finish_reason: str | None
    strict: bool | None
    flexible: bool | None
    extracted_strict: str | None = None
    extracted_flexible: str | None = None
    expected_text: str | None = None
    token_ids: list[int] | None = None
    top_logprobs: list[dict[int, float]] | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    fingerprint_distance: float | None = None
    seconds: float | None = None
    attempts: int = 1
    retries: list[str] = []
    invalid: str | None = None


class Check(_Record):
    """One requirement of the evaluation (number, text, fingerprint) or of parity."""

    name: CheckName
    held: bool
    required: str
    seen: str


class EvaluationRecord(_Record):
    dataset: str
    dataset_sha256: str
    shots: int
    samples_asked: int
    required: int
    match: str
    correct_strict: int
    correct_flexible: int
    lowered_from: int | None = None
    interval_95: tuple[float, float] | None = None
    shows: str = ""
    checks: list[Check] = []
    samples: list[Sample] = []


class Parity(_Record):
    """What the profile demands of this case beside the case `against` of the same run. Where it
    was not judged, `not_judged` says why, and there is no check.

    `noise` is the folder of the second cold start of `against`, `band` (nats) what it showed.
    """

    against: str
    required: list[str]
    checks: list[Check] = []
    not_judged: str | None = None
    noise: str | None = None
    band: float | None = None


class CaseRecord(_Record):
    schema_version: int = SCHEMA_VERSION
    run_id: str
    profile: str
    case: str
    started: str
    outcome: Outcome | None = None
    failures: list[Failure] = []
    phases: list[Phase] = []
    roles: list[RoleRecord] = []
    claims: list[Claim] = []
    proofs: list[Proof] = []
    evaluation: EvaluationRecord | None = None
    parity: Parity | None = None
    software: dict[str, str] = {}
    hardware: dict[str, str] = {}
    notes: list[str] = []
