"""The AFD connector is the planned one in both roles, and joins the planned ranks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from e2e.claims.argv import flag
from e2e.claims.judgement import Judgement, judge
from e2e.claims.observation import Observation, RoleSeen
from e2e.plan import AfdPlan


def claims(seen: Observation) -> list[Judgement]:
    """None of a native deployment."""
    afd = seen.plan.afd
    if afd is None:
        return []
    judgements = [
        judgement for role in seen.roles for judgement in (_configured(role), _joined(role, afd))
    ]
    if _reports(seen):
        judgements += [*(_share(role) for role in seen.roles), _crossed(seen)]
    return judgements


def _configured(role: RoleSeen) -> Judgement:
    planned = json.loads(flag(role.plan.argv, "additional-config") or "{}").get("afd")
    told = role.log.argument("additional_config")
    given: Any = told.get("afd") if isinstance(told, Mapping) else told
    return judge(
        f"{role.plan.role} connector",
        held=given == planned and planned is not None,
        expected=_settings(planned),
        seen=_settings(given),
        where=role.log.where("arguments"),
        proof="additional_config among the server's non-default arguments",
    )


def _joined(role: RoleSeen, afd: AfdPlan) -> Judgement:
    """The ranks say so themselves, or hold a connection to the store of FFN rank 0. A server that
    runs plain vLLM under an AFD label does neither."""
    expected = afd.ffn_ranks if role.plan.role == "ffn" else afd.attention_ranks
    size = afd.attention_ranks + afd.ffn_ranks
    alive = {process.pid for process in role.processes}
    lines = [
        line
        for line in role.log.lines.get("joined", ())
        if line.text.rstrip(".").partition(" in a world of ")[2].startswith(f"{size},")
        and line.process
        and line.process[1] in alive
    ]
    connected = [p.pid for p in role.processes if afd.port in p.remote_ports]
    started = role.plan.role != "ffn" or role.log.first("ffn started") is not None
    return judge(
        f"{role.plan.role} ranks joined",
        held=started and expected in (len(lines), len(connected)),
        expected=f"{expected} of {size} ranks",
        seen=f"{len(lines)} living ranks say that they joined {size}, {len(connected)} are "
        f"connected to port {afd.port}" + ("" if started else ", and the loop has not started"),
        where=f"{role.log.where('joined')}; connections of its living processes",
        proof=f"{expected} living processes connected to port {afd.port}"
        + ("" if role.plan.role != "ffn" else f", and the line {role.plan.ready_line!r}"),
    )


def _reports(seen: Observation) -> bool:
    """Whether this connector tells of its weights and exchanges: the reference does."""
    return any(role.log.first("joined") for role in seen.roles)


def _share(role: RoleSeen) -> Judgement:
    """`holds parameters: 0 expert, 0 router, 0 dense MLP, 8 attention, 7 other`."""
    foreign = ("attention",) if role.plan.role == "ffn" else ("expert", "router", "dense MLP")
    lines = role.log.lines.get("share", ())
    held = [
        f"{count} {kind}"
        for line in lines
        for count, kind in re.findall(
            r"(\d+) (expert|router|dense MLP|attention)", _held(line.text)
        )
        if kind in foreign and count != "0"
    ]
    return judge(
        f"{role.plan.role} weights",
        held=bool(lines) and not held,
        expected=f"no {', '.join(foreign)} weights",
        seen=", ".join(held) or (_held(lines[0].text) if lines else "nothing was logged"),
        where=role.log.where("share"),
        proof="what each rank says of the parameters that it holds",
    )


def _crossed(seen: Observation) -> Judgement:
    ffn = next(role for role in seen.roles if role.plan.role == "ffn")
    line = ffn.log.first("exchanged")
    return judge(
        "tokens cross",
        held=line is not None,
        expected="hidden states of a request computed by FFN",
        seen=line.text.partition("] ")[2] if line else "no exchange",
        where=ffn.log.where("exchanged"),
        proof="the first exchange in FFN's log",
    )


def _held(line: str) -> str:
    return line.partition("holds parameters: ")[2]


def _settings(config: object) -> str:
    if not isinstance(config, Mapping):
        return "no afd configuration"
    return ", ".join(f"{key} {value}" for key, value in config.items())
