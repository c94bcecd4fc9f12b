"""What a case will prove, in words: claims of the live deployment, answers, and what comes back."""

from __future__ import annotations

from e2e import statistics
from e2e.plan.case import CasePlan
from e2e.plan.evaluation import ParityPlan
from e2e.plan.role import RolePlan


def checks(plan: CasePlan) -> list[str]:
    """One line each, in the order in which they are proven."""
    return [*_before(plan), *_live(plan), *_answers(plan), *_after(plan)]


def beyond(plan: CasePlan) -> str | None:
    """What is demanded and so few questions cannot show; None where they can. A canary has learnt
    its answers: they are no sample of an accuracy."""
    if plan.canary is not None or plan.evaluation.samples == "all":
        return None
    return statistics.warning(plan.evaluation.required, plan.evaluation.samples)


def _before(plan: CasePlan) -> list[str]:
    where = "each device" if plan.backend == "gpu" else "the host"
    lines = [f"before: {plan.min_memory_gib:g} GiB of memory are free on {where}"]
    if plan.weights_gib is not None:
        lines.append(f"before: the checkpoint holds {plan.weights_gib:g} GiB of weights")
    lines += [f"before: config.json says {key} = {value}" for key, value in _config(plan)]
    if plan.afd is not None:
        lines.append(
            f"before: the server's interpreter has the plugin entry point {plan.afd.plugin}"
        )
    return lines


def _config(plan: CasePlan) -> list[tuple[str, str]]:
    return [
        (key, ", ".join(map(str, value)) if isinstance(value, list) else str(value))
        for key, value in plan.model_config.items()
    ]


def _live(plan: CasePlan) -> list[str]:
    lines = [_parallel(role) for role in plan.roles]
    lines += [
        f"live: the processes of {role.role} are on exactly {', '.join(role.devices)}"
        for role in plan.roles
        if role.devices
    ]
    lines.append(f"live: {_mode(plan)}")
    if plan.afd is not None:
        afd = plan.afd
        lines.append(
            f"live: {afd.connector} joins {afd.attention_ranks} Attention and {afd.ffn_ranks} FFN "
            "ranks; no token comes while FFN is stopped; a connector that tells of weights tells "
            "of none of the other role's"
        )
    lines.append(f"live: no process has {', '.join(plan.scrub)} in its environment")
    lines.append(
        f"live: a token is generated within {plan.limits.ready:g} s, before the first question"
    )
    return lines


def _parallel(role: RolePlan) -> str:
    ep = f", EP {role.ep}" if role.ep else ""
    return f"live: {role.role} runs DP {role.dp}, TP {role.tp}{ep}"


def _mode(plan: CasePlan) -> str:
    if plan.execution == "eager":
        return "every role runs eager"
    overlap = ", and a step of live requests is split in two" if plan.dbo else ""
    return f"decode graphs are captured{overlap}"


def _answers(plan: CasePlan) -> list[str]:
    evaluation, limits = plan.evaluation, plan.limits
    if evaluation.samples == "all":
        needed = f"{evaluation.share:.4g} of all answers"
    else:
        needed = f"{evaluation.required} of {evaluation.samples} answers"
    lines = [
        f"answers: {needed} right under {evaluation.match} matching; none is cut, empty or missing",
        f"answers: each within {limits.request:g} s, all within {limits.evaluation:g} s",
    ]
    if evaluation.lowered_from is not None:
        lines.append(
            f"answers: lowered from {evaluation.lowered_from} samples: not the profile's verdict"
        )
    if not_shown := beyond(plan):
        lines.append(f"answers: warning: {not_shown}")
    meanings = {
        "text": "every answer is the canary's, letter for letter",
        "fingerprint": "log-probabilities are within the noise of the canary's fingerprint",
    }
    lines += [f"answers: {meanings[check]}" for check in evaluation.canary_checks]
    return lines + _parity(evaluation.parity)


def _parity(parity: ParityPlan | None) -> list[str]:
    if parity is None:
        return []
    lines: list[str] = []
    if parity.tokens is not None:
        lines.append(
            f"answers: the token ids of every answer are those of {parity.against} in the same run"
        )
    if parity.logprobs is not None:
        lines.append(
            f"answers: log-probabilities differ from those of {parity.against} in the same run no "
            "more than those of its second cold start, which follows"
        )
    return [*lines, f"answers: not compared, and said so, where {parity.against} did not run"]


def _after(plan: CasePlan) -> list[str]:
    limits = plan.limits
    codes = "; ".join(
        f"{role.role} exits with {' or '.join(map(str, role.exit_codes))}" for role in plan.roles
    )
    lines = [
        f"after: {codes}, within {limits.stop:g} s of SIGTERM and without SIGKILL",
        "after: no process of the run is left",
        f"after: the ports {', '.join(map(str, plan.ports))} are free",
        "after: shared memory and sockets are gone",
    ]
    if plan.backend == "gpu":
        tolerance = plan.teardown.memory_tolerance_mib
        lines.append(
            f"after: the memory of every device is back within {limits.release:g} s"
            + (f", give or take {tolerance} MiB" if tolerance else "")
        )
    return lines
