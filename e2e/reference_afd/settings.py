"""`additional_config["afd"]`, read strictly. Needs neither torch nor vLLM."""

from __future__ import annotations

import logging
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError

# Below vLLM's own logger, the one that it gives handlers.
log = logging.getLogger("vllm.afd_reference")

CONNECTOR = "GlooAFDConnector"
Role = Literal["attention", "ffn"]


class AfdRefused(ValueError):
    """Settings that the reference cannot serve; says all that is wrong at once."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("the AFD reference cannot serve this: " + "; ".join(reasons))
        self.reasons = reasons


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ConnectorSettings(_Strict):
    rendezvous_seconds: PositiveFloat = Field(
        default=600, description="How long a rank waits at start until all others are there."
    )


class AfdSettings(_Strict):
    """One role's view of the deployment. Keys of the real plugin that ask for what the reference
    does not have are known, and have one value."""

    role: Role
    connector: Literal["GlooAFDConnector"]
    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Annotated[int, Field(ge=1, le=65535)]
    num_attention_ranks: PositiveInt = 1
    num_ffn_ranks: PositiveInt = 1
    compute_gate_on_attention: Literal[False] = False
    async_dp: Literal[False] = False
    connector_extra_config: ConnectorSettings = ConnectorSettings()

    @property
    def role_ranks(self) -> int:
        return self.num_ffn_ranks if self.role == "ffn" else self.num_attention_ranks


def read(raw: object) -> AfdSettings:
    """Raises AfdRefused with one reason for each key that is unknown, missing or wrong."""
    try:
        return AfdSettings.model_validate(raw)
    except ValidationError as error:
        reasons = [
            f"{'.'.join(map(str, ('afd', *problem['loc'])))} is {problem['input']!r}: "
            f"{problem['msg']}"
            for problem in error.errors(include_url=False)
        ]
        raise AfdRefused(reasons) from None
