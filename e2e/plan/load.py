"""The load of a measurement: `vllm bench serve` against one deployment, run by run. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from e2e.plan import argv, difference, settings
from e2e.plan.case import CasePlan
from e2e.profile.model import Load, Profile

RESULTS = "runs/performance"


@dataclass(frozen=True)
class LoadPlan:
    """Runs of the same load against the same servers, each with a seed of its own: prompts that a
    server has seen would be answered from its prefix cache. Both deployments get the same seeds.

    A run that completes fewer than `requests` is void. The runs of `seeds` are compared by mean and
    standard deviation; a difference within one standard deviation is parity.
    """

    deployment: str
    requests: int
    warm_up_seeds: tuple[int, ...]
    seeds: tuple[int, ...]
    env_set: Mapping[str, str]
    command: tuple[str, ...]

    def argv(self, seed: int | str) -> tuple[str, ...]:
        """The command of one run; its results are a file in RESULTS."""
        name = f"{self.deployment}-seed-{seed}.json"
        return (*self.command, "--seed", str(seed), "--result-filename", name)


def plan_load(
    profile: Profile, load: Load, deployment: CasePlan, variables: Mapping[str, str]
) -> LoadPlan:
    entry = deployment.entry_role
    executable = settings.executable(profile.hardware.backend, variables)
    return LoadPlan(
        deployment=deployment.case,
        requests=load.requests,
        warm_up_seeds=tuple(range(load.warm_ups)),
        seeds=tuple(range(load.warm_ups, load.warm_ups + load.runs)),
        env_set=difference.no_proxy(variables),
        command=(
            *(executable, "bench", "serve", "--backend", "vllm"),
            *("--base-url", f"http://{argv.LOOPBACK}:{entry.ports['http']}"),
            *("--model", deployment.model, "--served-model-name", entry.served_name),
            *("--dataset-name", "random"),
            *("--random-input-len", str(load.input_tokens)),
            *("--random-output-len", str(load.output_tokens), "--ignore-eos"),
            *("--temperature", "0"),
            *("--num-prompts", str(load.requests)),
            *("--request-rate", f"{load.rate:g}"),
            *("--max-concurrency", str(load.concurrency)),
            *("--percentile-metrics", "ttft,tpot,itl,e2el"),
            *("--save-result", "--result-dir", RESULTS),
        ),
    )
