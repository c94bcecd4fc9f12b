"""The typed form of a hardware profile: what `profiles/*.yaml` may say."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

Scalar = bool | int | float | str
FlagValue = Scalar | list[Scalar] | dict[str, Scalar | list[Scalar]] | None
CaseId = Annotated[str, Field(pattern=r"^[a-z0-9]+([-_][a-z0-9]+)*$")]
Slot = Annotated[int, Field(ge=0)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Hardware(Strict):
    """What the host must have."""

    backend: Literal["cpu", "gpu"]
    devices: PositiveInt = Field(description="Number of device slots that the cases use.")
    memory_gib: PositiveFloat = Field(
        description="Least memory of each device; on cpu, least available memory of the host."
    )


class Model(Strict):
    """Where the checkpoint is and what its config.json must say."""

    variable: str = Field(description="Environment variable that holds the checkpoint's path.")
    canary: Literal["qwen3_moe", "deepseek_v2", "qwen3_5_moe"] | None = Field(
        default=None, description="Canary family built and used when the variable is not set."
    )
    config: dict[str, Scalar | list[Scalar]] = Field(
        default={}, description="Keys of config.json (dots for nesting) and their values."
    )
    weights_gib: PositiveFloat | None = Field(
        default=None, description="Size of the weights, checked against disk before a launch."
    )


class Gate(Strict):
    """What opts in, and what must be set once opted in."""

    opt_in: dict[str, str] = Field(description="Variables and the values that opt in.")
    needs: list[str] = Field(default=[], description="Variables that must be set then.")


class Environment(Strict):
    """The environment of the servers, as a difference to the harness's own."""

    set: dict[str, str] = {}
    scrub: list[str] = Field(default=[], description="Names or patterns (*) never inherited.")


class Server(Strict):
    """Settings shared by all cases. Flags are written without their leading dashes."""

    name: str = Field(description="Prefix of the served model name; the role is appended.")
    port: PositiveInt = Field(description="Base HTTP port; the FFN role gets the next one.")
    args: dict[str, FlagValue] = Field(
        default={},
        description="vllm serve flags: true is a bare flag, false or null leaves it out.",
    )


class Afd(Strict):
    """How Attention and FFN find each other: `additional_config["afd"]`."""

    plugin: str = Field(description="Entry point in the group vllm.general_plugins.")
    connector: str
    port: PositiveInt = Field(description="Base port of the connector.")
    asynchronous: bool = Field(
        default=False, description="Asynchronous connector: Attention is launched first."
    )
    gate_on_attention: bool = False
    connector_extra: dict[str, Scalar] = {}
    ffn_ready: str = Field(
        default="AFD FFN EngineCore started; workers run connector loop.",
        description="Log line by which FFN says that it is ready.",
    )


class Layout(Strict):
    """The ranks of one role. DP x TP device slots; EP, when on, is DP x TP."""

    dp: PositiveInt = 1
    tp: PositiveInt = 1
    ep: PositiveInt | Literal[False] = False
    devices: list[Slot] = Field(min_length=1)
    args: dict[str, FlagValue] = {}


class Dbo(Strict):
    """Dual-batch overlap: batches of at least so many tokens are split in two."""

    decode_threshold: PositiveInt
    prefill_threshold: PositiveInt


class Execution(Strict):
    mode: Literal["eager", "graph"]
    capture_size: PositiveInt | None = Field(
        default=None, description="Batch size captured in graph mode."
    )
    dbo: Dbo | None = None


class Evaluation(Strict):
    """Which questions are asked and what makes the answers good enough."""

    dataset: Literal["gsm8k", "bundled"]
    shots: Annotated[int, Field(ge=0, le=64)] = 8
    samples: PositiveInt = 7
    match: Literal["strict", "flexible"] = "strict"
    required: PositiveInt = Field(default=7, description="How many answers must be right.")
    canary_checks: list[Literal["text", "fingerprint"]] = Field(
        default=[], description="Beside the number: the whole text, the log-probabilities."
    )
    max_tokens: PositiveInt = 512
    concurrency: PositiveInt = 1


class TimeLimits(Strict):
    """Deadlines in seconds."""

    ready: PositiveFloat = Field(default=900, description="Launch to the first token.")
    probe: PositiveFloat = Field(default=120, description="One generation probe.")
    request: PositiveFloat = Field(default=300, description="One answer.")
    stall: PositiveFloat = Field(default=180, description="Without any answer or token.")
    evaluation: PositiveFloat = Field(default=3600, description="All answers.")
    stop: PositiveFloat = Field(default=30, description="SIGTERM to the last process gone.")
    kill: PositiveFloat = Field(default=10, description="SIGKILL to the last process gone.")
    release: PositiveFloat = Field(
        default=15, description="After the stop: ports, device memory and shared memory back."
    )


class Teardown(Strict):
    """What a clean stop looks like. Exit codes are per role; -15 is SIGTERM."""

    exit_codes: dict[Literal["native", "attention", "ffn"], list[int]] = {}
    memory_tolerance_mib: Annotated[int, Field(ge=0)] = 0


class Case(Strict):
    """One deployment: a native layout, or an Attention and an FFN layout."""

    native: Layout | None = None
    attention: Layout | None = None
    ffn: Layout | None = None
    execution: Execution
    args: dict[str, FlagValue] = {}
    environment: Environment = Environment()
    evaluation: Evaluation | None = Field(
        default=None, description="Replaces keys of the profile's evaluation."
    )


class Profile(Strict):
    """A set of claims about a deployment."""

    profile: CaseId
    description: str
    hardware: Hardware
    model: Model
    gate: Gate
    server: Server
    afd: Afd | None = None
    environment: Environment = Environment()
    evaluation: Evaluation
    time_limits: TimeLimits = TimeLimits()
    teardown: Teardown = Teardown()
    cases: dict[CaseId, Case] = Field(min_length=1)
