"""Rules of `args`: flags of `vllm serve` that a profile may not pass, because it says them
elsewhere, or because the harness owns them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from e2e.profile.problems import Problem, did_you_mean
from e2e.profile.view import View

_FLAG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

_LAYOUT = "comes from the layout; write {}"
_OWNED_BY_HARNESS = "is the harness's own: {}"

# Flag -> why it is refused, and the key that says it.
OWNED = {
    "model": "comes from model.variable",
    "config": "is refused: a file of flags would hide them from the plan",
    "host": _OWNED_BY_HARNESS.format("servers listen on loopback only"),
    "port": "comes from server.port",
    "uds": _OWNED_BY_HARNESS.format("servers listen on server.port"),
    "api-key": _OWNED_BY_HARNESS.format("each run has a random key"),
    "ssl-keyfile": _OWNED_BY_HARNESS.format("loopback is plain HTTP"),
    "ssl-certfile": _OWNED_BY_HARNESS.format("loopback is plain HTTP"),
    "root-path": _OWNED_BY_HARNESS.format("it asks /v1"),
    "grpc": _OWNED_BY_HARNESS.format("it asks over HTTP"),
    "headless": _OWNED_BY_HARNESS.format("each role has an API server"),
    "hf-token": "is refused: a secret does not belong in a profile, and nothing is downloaded",
    "served-model-name": "comes from server.name",
    "shutdown-timeout": "comes from time_limits.shutdown",
    "additional-config": "comes from the afd section",
    "data-parallel-size": _LAYOUT.format("dp"),
    "data-parallel-size-local": _LAYOUT.format("dp"),
    "data-parallel-rank": _LAYOUT.format("dp"),
    "data-parallel-start-rank": _LAYOUT.format("dp"),
    "data-parallel-address": _OWNED_BY_HARNESS.format("a deployment is on one host"),
    "data-parallel-hybrid-lb": _OWNED_BY_HARNESS.format("a deployment is on one host"),
    "data-parallel-external-lb": _OWNED_BY_HARNESS.format("a deployment is on one host"),
    "data-parallel-multi-port-external-lb": _OWNED_BY_HARNESS.format("a deployment is on one host"),
    "nnodes": _OWNED_BY_HARNESS.format("a deployment is on one host"),
    "node-rank": _OWNED_BY_HARNESS.format("a deployment is on one host"),
    "master-addr": _OWNED_BY_HARNESS.format("a deployment is on one host"),
    "master-port": _OWNED_BY_HARNESS.format("a deployment is on one host"),
    "tensor-parallel-size": _LAYOUT.format("tp"),
    "pipeline-parallel-size": "is refused: a layout has DP x TP ranks",
    "prefill-context-parallel-size": "is refused: a layout has DP x TP ranks",
    "enable-expert-parallel": _LAYOUT.format("ep"),
    "enforce-eager": "comes from execution.mode",
    "optimization-level": "comes from execution.mode",
    "compilation-config": "comes from execution.mode and execution.capture_size",
    "cudagraph-capture-sizes": "comes from execution.capture_size",
    "max-cudagraph-capture-size": "comes from execution.capture_size",
    "enable-dbo": "comes from execution.dbo",
    "dbo-decode-token-threshold": "comes from execution.dbo.decode_threshold",
    "dbo-prefill-token-threshold": "comes from execution.dbo.prefill_threshold",
    "ubatch-size": "comes from execution.dbo",
}
_SHORT = {
    "tp": "tensor-parallel-size",
    "dp": "data-parallel-size",
    "dpl": "data-parallel-size-local",
    "dpr": "data-parallel-rank",
    "dpa": "data-parallel-address",
    "dpn": "data-parallel-rank",
    "pp": "pipeline-parallel-size",
    "pcp": "prefill-context-parallel-size",
    "ep": "enable-expert-parallel",
    "o": "optimization-level",
    "cc": "compilation-config",
    "n": "nnodes",
    "r": "node-rank",
}


def check_args(args: View) -> Iterator[Problem]:
    """The flags of one `args` mapping."""
    for flag in args.children:
        if reason := _refusal(flag):
            yield args.at_key(flag, reason)
        elif args.length(flag) == 0:
            yield args.at_value(flag, "no value at all; true is a bare flag, null leaves it out")
        elif _passes(args, flag) and _passes(args, f"no-{flag}"):
            yield args.at_key(f"no-{flag}", f"the opposite of {flag}, which is said too")
        for value, at in args.items(flag, str):
            if value.startswith("-"):
                yield Problem(at, (*args.path, flag), f"{value!r} would be read as another flag")


def check_batch(case_args: list[View], capture_size: int | None) -> Iterator[Problem]:
    """In graph mode no batch is larger than what was captured. `case_args` from the most general
    to the most special: the last that says the flag counts."""
    saying = [args for args in case_args if "max-num-seqs" in args.children]
    if not saying or capture_size is None:
        return
    largest = saying[-1].get("max-num-seqs", int)
    if largest is not None and largest > capture_size:
        what = f"{largest} is more than execution.capture_size {capture_size}: not captured"
        yield saying[-1].at_value("max-num-seqs", what)


def _passes(args: View, flag: str) -> bool:
    return args.says(flag) and args.get(flag, bool) is not False


def _refusal(flag: str) -> str | None:
    if flag.startswith("-"):
        return f"flags are written without dashes; did you mean {flag.lstrip('-')!r}?"
    name = flag.lower().replace("_", "-")
    name = _SHORT.get(name, name)
    base = name.split(".")[0].removeprefix("no-")
    if reason := OWNED.get(base):
        return f"the flag --{base} {reason}"
    if reason := _abbreviated(base):
        return f"the flag --{base} {reason}"
    if "." in flag:
        return f"write a mapping instead of a dot: {base}: {{{name.split('.', 1)[1]}: ...}}"
    if not _FLAG.fullmatch(flag):
        return f"not a flag of vllm serve{did_you_mean(flag, [re.sub(r'[^a-z0-9]+', '-', name)])}"
    return None


def _abbreviated(name: str) -> str | None:
    """argparse takes any beginning of a flag that no other flag shares."""
    full = [flag for flag in OWNED if flag.startswith(name) and len(name) > 3]
    return f"is short for {full[0]}, which {OWNED[full[0]]}" if len(full) == 1 else None
