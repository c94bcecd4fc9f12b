"""Rules that concern more than one key of a profile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from e2e.profile.flags import check_args, check_batch
from e2e.profile.layouts import (
    Traffic,
    check_connector,
    check_execution,
    check_layout,
    check_layouts,
)
from e2e.profile.model import NEVER_INHERITED
from e2e.profile.parity import check_parity
from e2e.profile.problems import Problem, did_you_mean
from e2e.profile.tree import Node
from e2e.profile.view import View

_OWNED_VARIABLES = {
    "CUDA_VISIBLE_DEVICES": "comes from the slots and AFD_E2E_DEVICES",
    "VLLM_PLUGINS": "comes from afd.plugin",
    "VLLM_API_KEY": "is the harness's own: each run has a random key",
    "VLLM_RPC_BASE_PATH": "is the harness's own: the run's folder",
    "TMPDIR": "is the harness's own: the run's folder",
}
_SECRET = re.compile(r"TOKEN$|SECRET|PASSWORD|PASSWD|API_KEY|PRIVATE_KEY|CREDENTIAL")
_BACKEND_VARIABLE = "AFD_E2E_BACKEND"
_MOST_PORT = 65535


def check(root: Node) -> list[Problem]:
    """All broken rules of a tree whose keys and types need not be right."""
    return list(_check(View(root, ())))


def _check(profile: View) -> Iterator[Problem]:
    yield from _check_gate(profile)
    yield from _check_ports(profile)
    yield from _check_evaluation(profile, profile.sub("evaluation"))
    yield from _check_limits(profile.sub("time_limits"))
    yield from check_connector(profile.sub("afd"))
    yield from check_args(profile.sub("server").sub("args"))
    yield from _check_environment(profile.sub("environment"), [])
    for case in profile.subs("cases"):
        yield from _check_case(profile, case)
    if profile.says("performance"):
        yield from _check_performance(profile, profile.sub("performance"))


def _check_case(profile: View, case: View) -> Iterator[Problem]:
    yield from check_layouts(profile, case)
    layers = [profile.sub("server").sub("args"), case.sub("args")]
    capture_size = case.sub("execution").count("capture_size")
    yield from check_args(case.sub("args"))
    for role in ("native", "attention", "ffn"):
        yield from check_args(case.sub(role).sub("args"))
        if case.says(role):
            yield from check_batch([*layers, case.sub(role).sub("args")], capture_size)
    traffic = Traffic(
        _of_case(profile, case, "samples", 7), _of_case(profile, case, "concurrency", 1)
    )
    if case.says("execution"):
        yield from check_execution(case, case.sub("execution"), traffic)
    yield from _check_case_evaluation(profile, case)
    yield from check_parity(profile, case)
    scrubbed = [pattern for pattern, _ in profile.sub("environment").items("scrub", str)]
    yield from _check_environment(case.sub("environment"), scrubbed)
    for pattern, at in case.sub("environment").items("scrub", str):
        for name in profile.sub("environment").sub("set").children:
            if fnmatchcase(name, pattern):
                path = (*case.path, "environment", "scrub")
                yield Problem(at, path, f"{pattern} scrubs {name}, which environment.set sets")


def _of_case(profile: View, case: View, key: str, default: int) -> int | None:
    own = case.sub("evaluation")
    return own.count(key) if own.says(key) else profile.sub("evaluation").count(key, default)


def _check_gate(profile: View) -> Iterator[Problem]:
    gate = profile.sub("gate")
    opt_in = gate.sub("opt_in")
    backend = profile.sub("hardware").get("backend", str)
    wanted = opt_in.get(_BACKEND_VARIABLE, str)
    if backend in ("cpu", "gpu") and wanted and wanted != backend:
        what = f"{wanted!r} is not hardware.backend{did_you_mean(wanted, [backend])}"
        yield opt_in.at_value(_BACKEND_VARIABLE, what)
    for key, others in (("opt_in_with", ()), ("unless", ("opt_in_with", "needs"))):
        for name, at in gate.items(key, str):
            said = ["opt_in"] if name in opt_in.children else []
            said += [other for other in others if name in dict(gate.items(other, str))]
            if said:
                yield Problem(at, (*gate.path, key), f"{name} is in gate.{said[0]} too")


def _check_ports(profile: View) -> Iterator[Problem]:
    """HTTP takes port and port + 1, the connector its port and one more for each FFN rank."""
    server, afd = profile.sub("server"), profile.sub("afd")
    http, connector = server.get("port", int), afd.get("port", int)
    if http is None or connector is None or max(http, connector) > _MOST_PORT:
        return
    groups = max(
        (case.sub("ffn").length("devices") or 0 for case in profile.subs("cases")), default=0
    )
    if connector <= http + 1 and http <= connector + groups:
        last = connector + groups
        what = f"ports {connector} to {last} of the connector meet {http} and {http + 1} of HTTP"
        yield afd.at_value("port", what)
    elif http == _MOST_PORT:
        yield server.at_value("port", f"FFN's HTTP needs port {http + 1}")
    elif connector + groups > _MOST_PORT:
        yield afd.at_value("port", f"the connector needs ports up to {connector + groups}")


def _check_evaluation(profile: View, evaluation: View) -> Iterator[Problem]:
    required, samples = evaluation.count("required", 7), evaluation.count("samples", 7)
    yield from _check_required(evaluation, required, samples)
    yield from _check_canary_checks(profile, evaluation)


def _check_case_evaluation(profile: View, case: View) -> Iterator[Problem]:
    own, shared = case.sub("evaluation"), profile.sub("evaluation")
    if own.says("required") or own.says("samples"):
        required, samples = (
            _of_case(profile, case, "required", 7),
            _of_case(profile, case, "samples", 7),
        )
        yield from _check_required(own, required, samples)
    yield from _check_canary_checks(profile, own)
    if not profile.sub("model").says("canary"):
        return
    learnt, asked = shared.count("samples", 7), own.count("samples")
    if learnt is not None and asked is not None and asked > learnt:
        yield own.at_value("samples", f"the canary learns the evaluation's {learnt} answers only")
    for key in ("shots", "dataset"):
        if own.says(key):
            yield own.at_key(key, f"the canary learns the prompts of the profile's {key} only")


def _check_required(
    evaluation: View, required: int | None, samples: int | None
) -> Iterator[Problem]:
    if required is not None and samples is not None and required > samples:
        key = "required" if evaluation.says("required") else "samples"
        yield evaluation.at_value(key, f"{required} required of {samples} samples")


def _check_canary_checks(profile: View, evaluation: View) -> Iterator[Problem]:
    if evaluation.length("canary_checks") and not profile.sub("model").says("canary"):
        what = "only a canary carries what is to be compared; did you mean 'model.canary'?"
        yield evaluation.at_key("canary_checks", what)
    seen: set[str] = set()
    for name, at in evaluation.items("canary_checks", str):
        if name in seen:
            yield Problem(at, (*evaluation.path, "canary_checks"), f"{name} is listed twice")
        seen.add(name)


def _check_limits(limits: View) -> Iterator[Problem]:
    shutdown, stop = limits.number("shutdown", 10), limits.number("stop", 30)
    if shutdown is not None and stop is not None and shutdown >= stop:
        key = "shutdown" if limits.says("shutdown") else "stop"
        yield limits.at_value(key, f"shutdown ({shutdown:g} s) must end before stop ({stop:g} s)")
    usual, larger = limits.number("evaluation", 3600), limits.number("larger_evaluation")
    if usual is not None and larger is not None and larger < usual:
        yield limits.at_value("larger_evaluation", f"less than evaluation, {usual:g} s")


def _check_environment(environment: View, scrubbed_too: list[str]) -> Iterator[Problem]:
    settings = environment.sub("set")
    patterns = [pattern for pattern, _ in environment.items("scrub", str)]
    patterns += [*scrubbed_too, *NEVER_INHERITED]
    for name in settings.children:
        if name in _OWNED_VARIABLES:
            yield settings.at_key(name, _OWNED_VARIABLES[name])
        elif _SECRET.search(name.upper()):
            yield settings.at_key(name, "a secret does not belong in a profile; export it")
        if scrubbing := [pattern for pattern in patterns if fnmatchcase(name, pattern)]:
            yield settings.at_key(name, f"set, and scrubbed by {scrubbing[0]}")


def _check_performance(profile: View, performance: View) -> Iterator[Problem]:
    """Equal hardware: the native layout takes exactly the slots of the AFD case."""
    native = performance.sub("native")
    native_problems = list(check_layout(profile, native))
    yield from native_problems
    yield from check_args(performance.sub("args"))
    yield from check_args(native.sub("args"))
    against, cases = performance.get("against", str), profile.sub("cases")
    if against is None:
        return
    case = cases.sub(against)
    if performance.says("execution"):
        load = performance.sub("load")
        traffic = Traffic(load.count("requests"), load.count("concurrency"))
        yield from check_execution(case, performance.sub("execution"), traffic)
    if against not in cases.children:
        what = f"there is no case {against!r}{did_you_mean(against, cases.children)}"
        yield performance.at_value("against", what)
    elif native_problems or any(check_layouts(profile, case)) or not _slots(native):
        return
    elif case.says("native"):
        yield performance.at_value("against", f"{against!r} is native; name an AFD case")
    elif (split := _slots(case.sub("attention"), case.sub("ffn"))) not in (set(), _slots(native)):
        what = f"slots {sorted(_slots(native))} are not those of {against}, {sorted(split)}"
        yield native.at_value("devices", f"{what}: equal hardware")


def _slots(*layouts: View) -> set[int]:
    """The slots of layouts; none where one is no slot, which is a problem of its own."""
    slots = [slot for layout in layouts for slot, _ in layout.items("devices", int)]
    listed = sum(layout.length("devices") or 0 for layout in layouts)
    return set(slots) if len(slots) == listed and min(slots, default=-1) >= 0 else set()
