"""The typed form of a hardware profile: what `profiles/*.yaml` may say."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PositiveFloat,
    PositiveInt,
    PrivateAttr,
)

KEBAB = r"^[a-z0-9]+(-[a-z0-9]+)*$"
KEBAB_WITH_VERSIONS = r"^[a-z0-9]+([-_][a-z0-9]+)*$"
SERVED_NAME = r"^[A-Za-z0-9][A-Za-z0-9._/-]*$"
ENTRY_POINT = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
VARIABLE_PATTERN = r"^[A-Za-z_*][A-Za-z0-9_*]*$"

# Of benchmarks and of debugging: with them a server would not be what its profile says.
NEVER_INHERITED = (
    "VLLM_MOE_ROUTING_SIMULATION_STRATEGY",
    "AFD_BENCHMARK_FORCE_LB_TOPN_PER_RANK",
    "AFD_BENCHMARK_*",
    "AFD_FORCE_BALANCED_TOPK_IDS",
    "AFD_CAMP2P_STUB_IO",
    "AFD_PLUGIN_EARLY_ENGINE_PATCH",
)

RoleName = Literal["native", "attention", "ffn"]
# Folders of evidence are named after them.
CaseId = Annotated[str, Field(pattern=KEBAB, max_length=64)]
ProfileId = Annotated[str, Field(pattern=KEBAB_WITH_VERSIONS, max_length=64)]
EntryPoint = Annotated[str, Field(pattern=ENTRY_POINT)]
Variable = Annotated[str, Field(pattern=VARIABLE)]
VariablePattern = Annotated[str, Field(pattern=VARIABLE_PATTERN)]
NotEmpty = Annotated[str, Field(min_length=1)]
Slot = Annotated[int, Field(ge=0)]
Port = Annotated[int, Field(ge=1024, le=65535)]
ExitCode = Annotated[int, Field(ge=-64, le=255)]
Args = dict[str, JsonValue]


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

    variable: Variable = Field(description="Environment variable that holds the checkpoint's path.")
    canary: Literal["qwen3_moe", "deepseek_v2", "qwen3_5_moe"] | None = Field(
        default=None, description="Canary family built and used when the variable is not set."
    )
    config: dict[str, JsonValue] = Field(
        default={},
        description="Keys of config.json and their values; dots for nesting. A key without dots "
        "is looked for at the top, then in text_config.",
    )
    weights_gib: PositiveFloat | None = Field(
        default=None, description="Size of the weights, checked against disk before a launch."
    )


class Gate(Strict):
    """What opts in, and what must be set once opted in."""

    opt_in: dict[Variable, NotEmpty] = Field(
        min_length=1, description="Variables and the values that opt in, all of them together."
    )
    opt_in_with: list[Variable] = Field(
        default=[], description="Variables that must be set, to any value, to opt in."
    )
    unless: list[Variable] = Field(
        default=[],
        description="Variables that ask for another profile: while one is set, this one is not "
        "opted in.",
    )
    needs: list[Variable] = Field(
        default=[],
        description="Variables that must be set once opted in, beside the model's own.",
    )


class Environment(Strict):
    """The environment of the servers, as a difference to the harness's own."""

    set: dict[Variable, str] = Field(default={}, description="Variables and their values (text).")
    scrub: list[VariablePattern] = Field(
        default=[],
        description="Names or patterns (*) of variables that are never inherited, beside those of "
        "benchmarks (AFD_BENCHMARK_*, VLLM_MOE_ROUTING_SIMULATION_STRATEGY, ...), which never are.",
    )


class Server(Strict):
    """Settings shared by all cases."""

    name: str = Field(
        pattern=SERVED_NAME,
        description="Prefix of the served model name: -baseline, -attention or -ffn is appended.",
    )
    port: Port = Field(description="HTTP port; the FFN role gets the next one.")
    args: Args = Field(
        default={},
        description="vllm serve flags without their dashes: true is a bare flag, a list several "
        "values, a mapping JSON; false or null leaves the flag out.",
    )


class Afd(Strict):
    """How Attention and FFN find each other: `additional_config["afd"]`."""

    plugin: EntryPoint = Field(description="Entry point in the group vllm.general_plugins.")
    connector: NotEmpty
    port: Port = Field(description="First port of the connector; each FFN rank adds the next one.")
    asynchronous: bool = Field(
        default=False, description="Asynchronous connector: Attention is launched first."
    )
    gate_on_attention: bool = Field(
        default=False, description="Attention computes the gate (compute_gate_on_attention)."
    )
    connector_extra: dict[str, JsonValue] = Field(
        default={}, description="Settings of the connector (connector_extra_config)."
    )
    ffn_ready: NotEmpty = Field(
        default="AFD FFN EngineCore started; workers run connector loop.",
        description="Log line by which FFN says that it is ready.",
    )


class Layout(Strict):
    """The ranks of one role: DP x TP, one device slot each, in rank order."""

    dp: PositiveInt = Field(default=1, description="Data-parallel ranks.")
    tp: PositiveInt = Field(default=1, description="Tensor-parallel ranks.")
    ep: PositiveInt | Literal[False] = Field(
        default=False, description="Expert-parallel ranks: DP x TP, or false."
    )
    devices: list[Slot] = Field(
        min_length=1, description="Slots: positions in AFD_E2E_DEVICES, counted from 0."
    )
    args: Args = Field(default={}, description="Flags of this role alone.")


class Dbo(Strict):
    """Dual-batch overlap: batches of at least so many tokens are split in two."""

    decode_threshold: PositiveInt
    prefill_threshold: PositiveInt


class Execution(Strict):
    mode: Literal["eager", "graph"]
    capture_size: PositiveInt | None = Field(
        default=None,
        description="Graph mode: the captured batch size, and the largest batch (max-num-seqs, "
        "max-num-batched-tokens) unless args say otherwise.",
    )
    dbo: Dbo | None = Field(default=None, description="Graph mode with dual-batch overlap.")


class Evaluation(Strict):
    """Which questions are asked and what makes the answers good enough."""

    dataset: Literal["gsm8k", "bundled"]
    shots: Annotated[int, Field(ge=0, le=64)] = 8
    samples: PositiveInt = 7
    match: Literal["strict", "flexible"] = "strict"
    required: PositiveInt = Field(default=7, description="How many of the samples must be right.")
    larger_share: Annotated[float, Field(gt=0, le=1)] | None = Field(
        default=None,
        description="Share that must be right when AFD_GSM8K_LIMIT asks for more samples; "
        "default: required / samples.",
    )
    canary_checks: list[Literal["text", "fingerprint"]] = Field(
        default=[], description="Beside the number: the whole text, the log-probabilities."
    )
    max_tokens: PositiveInt = 512
    concurrency: PositiveInt = Field(default=1, description="Requests in flight at once.")


class EvaluationChange(Strict):
    """What a case says otherwise than the profile's evaluation."""

    dataset: Literal["gsm8k", "bundled"] | None = None
    shots: Annotated[int, Field(ge=0, le=64)] | None = None
    samples: PositiveInt | None = None
    match: Literal["strict", "flexible"] | None = None
    required: PositiveInt | None = None
    larger_share: Annotated[float, Field(gt=0, le=1)] | None = None
    canary_checks: list[Literal["text", "fingerprint"]] | None = None
    max_tokens: PositiveInt | None = None
    concurrency: PositiveInt | None = None


class TimeLimits(Strict):
    """Deadlines in seconds."""

    ready: PositiveFloat = Field(default=900, description="Launch to the first token.")
    probe: PositiveFloat = Field(default=120, description="One generation probe.")
    request: PositiveFloat = Field(default=300, description="One answer.")
    stall: PositiveFloat = Field(
        default=180, description="Without any answer that arrives whole, while questions are out."
    )
    evaluation: PositiveFloat = Field(default=3600, description="All answers.")
    larger_evaluation: PositiveFloat | None = Field(
        default=None,
        description="All answers when AFD_GSM8K_LIMIT asks for more samples; default: evaluation.",
    )
    shutdown: PositiveInt = Field(
        default=10, description="What a server gives running requests (--shutdown-timeout)."
    )
    stop: PositiveFloat = Field(default=30, description="SIGTERM to the last process gone.")
    kill: PositiveFloat = Field(default=10, description="SIGKILL to the last process gone.")
    release: PositiveFloat = Field(
        default=15, description="After the stop: ports, device memory and shared memory back."
    )


class Teardown(Strict):
    """What a clean stop looks like. Exit codes are per role; -15 is SIGTERM."""

    exit_codes: dict[RoleName, Annotated[list[ExitCode], Field(min_length=1)]] = Field(
        default={}, description="Default: 0; for ffn 0 or 1."
    )
    memory_tolerance_mib: Annotated[int, Field(ge=0)] = Field(
        default=0, description="What a device may hold more than before the launch."
    )


def _some_requirement(schema: dict[str, Any]) -> None:
    """What `e2e.profile.parity` demands, for editors: a requirement that is not null."""
    schema["anyOf"] = [
        {"required": [key], "properties": {key: {"type": "string"}}}
        for key in ("tokens", "logprobs")
    ]


class Parity(Strict):
    """The same answers as another case of the profile gave in the same run. Without it, only the
    case's own matches count."""

    model_config = ConfigDict(json_schema_extra=_some_requirement)

    against: CaseId = Field(description="A native case of this profile that asks the same.")
    tokens: Literal["identical"] | None = Field(
        default=None, description="Every answer has the same token ids."
    )
    logprobs: Literal["within noise"] | None = Field(
        default=None,
        description="Log-probabilities differ no more than those of a second cold start of "
        "`against`, which is made for it, and answers part only at ties within that noise.",
    )


class Case(Strict):
    """One deployment: a native layout, or an Attention and an FFN layout."""

    native: Layout | None = None
    attention: Layout | None = None
    ffn: Layout | None = None
    execution: Execution
    args: Args = Field(default={}, description="Flags of this case, beside server.args.")
    environment: Environment = Field(
        default=Environment(), description="Added to the profile's environment."
    )
    plugins: list[EntryPoint] = Field(
        default=[], description="Entry points in vllm.general_plugins, beside the AFD plugin's."
    )
    evaluation: EvaluationChange = Field(
        default=EvaluationChange(), description="Replaces keys of the profile's evaluation."
    )
    parity: Parity | None = Field(
        default=None, description="Demands the answers of another case, beside right ones."
    )
    memory_gib: PositiveFloat | None = Field(
        default=None, description="Least memory of each device for this case."
    )


class Load(Strict):
    """The load of a measurement: random prompts, sent by `vllm bench serve`."""

    input_tokens: PositiveInt
    output_tokens: PositiveInt
    requests: PositiveInt = Field(description="A run that completes fewer is void.")
    rate: PositiveFloat = Field(description="Requests per second.")
    concurrency: PositiveInt = Field(description="Most requests in flight.")
    warm_ups: Annotated[int, Field(ge=0)] = 1
    runs: Annotated[int, Field(ge=2)] = Field(
        default=5, description="Runs against the same servers: mean and standard deviation."
    )


class Performance(Strict):
    """Native against AFD on equal hardware: the same device slots."""

    native: Layout
    against: CaseId = Field(description="The AFD case of this profile that is measured beside it.")
    execution: Execution | None = Field(default=None, description="Default: that case's.")
    args: Args = Field(default={}, description="Flags of both, over server.args and the case's.")
    load: Load


class Profile(Strict):
    """A set of claims about a deployment."""

    profile: ProfileId
    extends: ProfileId | None = Field(
        default=None, description="Profile whose keys are taken over where this one says nothing."
    )
    description: NotEmpty
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
    performance: Performance | None = None

    _inherited: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def inherited(self) -> dict[str, str]:
        """Path of each key that was taken over, and the profile that says it."""
        return self._inherited

    def evaluation_of(self, case: Case) -> Evaluation:
        """The profile's evaluation with the case's changes."""
        changes = case.evaluation.model_dump(exclude_none=True)
        return self.evaluation.model_copy(update=changes)
