"""Rules of layouts and execution modes: ranks, slots, expert parallelism, capture, overlap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from e2e.profile.problems import Problem
from e2e.profile.view import View

_NCCL_CONNECTOR = "P2pNcclAFDConnector"


def check_layouts(profile: View, case: View) -> Iterator[Problem]:
    """A native layout, or an Attention and an FFN layout, that fit the hardware."""
    if case.node.value is None:
        return
    native, attention, ffn = (case.says(role) for role in ("native", "attention", "ffn"))
    if native and (attention or ffn):
        yield case.at_key("native", "native beside attention or ffn: a case is either or")
    elif attention != ffn:
        there, missing = ("attention", "ffn") if attention else ("ffn", "attention")
        yield case.at_key(there, f"{there} without {missing}: an AFD case has both")
    elif not native and not attention:
        yield case.here("no layout: needs native, or attention and ffn")
    if (attention or ffn) and not profile.says("afd"):
        role = "attention" if attention else "ffn"
        yield case.at_key(role, "an AFD case needs the profile's afd section (plugin, connector)")
    for role in ("native", "attention", "ffn"):
        if case.says(role):
            yield from check_layout(profile, case.sub(role))
    if attention and ffn:
        yield from _check_split(profile, case.sub("attention"), case.sub("ffn"))


def check_layout(profile: View, layout: View) -> Iterator[Problem]:
    """The slots of one layout exist, once each, one for each rank; EP is all ranks."""
    slots = profile.sub("hardware").count("devices")
    seen: set[int] = set()
    for slot, at in layout.items("devices", int):
        path = (*layout.path, "devices")
        if slots is not None and slots <= slot:
            what = f"slot {slot} is not there: hardware.devices is {slots}, the last is {slots - 1}"
            yield Problem(at, path, what)
        if slot in seen:
            yield Problem(at, path, f"slot {slot} is listed twice")
        seen.add(slot)
    dp, tp, count = layout.count("dp", 1), layout.count("tp", 1), layout.length("devices")
    if dp is None or tp is None:
        return
    if count and count != dp * tp:
        yield layout.at_value("devices", f"{_slots(count)} for DP {dp} x TP {tp} = {dp * tp} ranks")
    ep = layout.get("ep", int)
    if ep is not None and ep >= 0 and ep != dp * tp:
        yield layout.at_value("ep", f"EP {ep} is not DP {dp} x TP {tp} = {dp * tp}; or false")


def _check_split(profile: View, attention: View, ffn: View) -> Iterator[Problem]:
    taken = {slot for slot, _ in attention.items("devices", int)}
    for slot, at in ffn.items("devices", int):
        if slot in taken:
            what = f"slot {slot} is attention's too; the roles have devices of their own"
            yield Problem(at, (*ffn.path, "devices"), what)
    ranks = attention.length("devices"), ffn.length("devices")
    if profile.sub("afd").get("connector", str) == _NCCL_CONNECTOR and all(ranks):
        a, f = ranks[0] or 0, ranks[1] or 1
        if a % f:
            what = f"{_NCCL_CONNECTOR} gives each FFN rank as many Attention ranks: {a} for {f}"
            yield ffn.at_value("devices", what)


def check_connector(afd: View) -> Iterator[Problem]:
    """P2pNcclAFDConnector is synchronous and has no settings of its own."""
    if afd.get("connector", str) != _NCCL_CONNECTOR:
        return
    if afd.get("asynchronous", bool):
        yield afd.at_value("asynchronous", f"{_NCCL_CONNECTOR} is synchronous")
    if afd.sub("connector_extra").children:
        yield afd.at_key("connector_extra", f"{_NCCL_CONNECTOR} takes no settings")


@dataclass(frozen=True)
class Traffic:
    """What an evaluation sends; None where the profile does not say it in the right type."""

    samples: int | None
    concurrency: int | None


def check_execution(case: View, execution: View, traffic: Traffic) -> Iterator[Problem]:
    """Graph mode names its capture size, eager has none, and overlap can really happen."""
    mode = execution.get("mode", str)
    if mode == "graph" and not execution.says("capture_size"):
        yield execution.here("graph mode needs capture_size, the batch size that is captured")
    if mode == "eager":
        for key in ("capture_size", "dbo"):
            if execution.says(key):
                yield execution.at_key(key, "only in graph mode; did you mean 'mode: graph'?")
    if not execution.says("dbo"):
        return
    dbo, capture = execution.sub("dbo"), execution.count("capture_size")
    for key in ("decode_threshold", "prefill_threshold"):
        threshold = dbo.get(key, int)
        if capture is not None and threshold is not None and threshold > capture:
            yield dbo.at_value(key, f"{threshold} is more than capture_size {capture}: never split")
    yield from _check_live_overlap(case, execution, traffic)


def _check_live_overlap(case: View, execution: View, traffic: Traffic) -> Iterator[Problem]:
    """A batch is split only when every Attention rank has two requests to split; with less in
    flight the claim of a live two-ubatch step cannot be proven."""
    entry = case.sub("attention" if case.says("attention") else "native")
    ranks = entry.count("dp", 1)
    if ranks is None or traffic.concurrency is None or traffic.samples is None:
        return
    if traffic.concurrency < 2 * ranks:
        yield execution.at_key(
            "dbo",
            f"needs an evaluation.concurrency of at least {2 * ranks} (two for each of {ranks} "
            f"ranks), got {traffic.concurrency}",
        )
    elif traffic.samples < traffic.concurrency:
        yield execution.at_key(
            "dbo",
            f"needs at least as many evaluation.samples as its concurrency "
            f"{traffic.concurrency}, got {traffic.samples}",
        )


def _slots(count: int) -> str:
    return "1 slot" if count == 1 else f"{count} slots"
