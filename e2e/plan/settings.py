"""What the harness reads of its environment, apart from the opt-in variables. Pure.

Each function raises SetupMissing that names the variable, what it holds and what it should.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Literal

from e2e.errors import SetupMissing
from e2e.profile.model import Evaluation, Profile

Variables = Mapping[str, str]

DEVICES = "AFD_E2E_DEVICES"
PORT_BASE = "AFD_E2E_PORT_BASE"
LIMIT = "AFD_GSM8K_LIMIT"
THRESHOLD = "AFD_GSM8K_THRESHOLD"
VISIBLE = "CUDA_VISIBLE_DEVICES"

_DEVICE_ID = re.compile(r"0|[1-9][0-9]*|GPU-[0-9A-Fa-f-]+|MIG-[0-9A-Za-z/-]+")
_NUMBER = re.compile(r"[0-9]{1,9}")
_LEAST_PORT, _MOST_PORT = 1024, 65535


def executable(backend: Literal["cpu", "gpu"], variables: Variables) -> str:
    """The server's executable as it was named: `vllm`, or AFD_CPU/GPU_E2E_VLLM_BIN."""
    return variables.get(f"AFD_{backend.upper()}_E2E_VLLM_BIN") or "vllm"


def devices(profile: Profile, variables: Variables) -> tuple[str, ...]:
    """The device of each slot, as CUDA_VISIBLE_DEVICES takes them; none on cpu.

    AFD_E2E_DEVICES lists indices, UUIDs or MIG ids, one for each slot, in the slots' order;
    without it slot n is device n. Where CUDA_VISIBLE_DEVICES is already set, an index counts
    within it, and other ids have to be in it.
    """
    if profile.hardware.backend == "cpu":
        return ()
    count = profile.hardware.devices
    visible = _visible(variables)
    listed = variables.get(DEVICES)
    if listed is None:
        if visible is None:
            return tuple(map(str, range(count)))
        if len(visible) < count:
            raise SetupMissing(
                f"{VISIBLE} shows {_devices(len(visible))}, {profile.profile} needs {count}",
                mend=f"show more, or choose them with {DEVICES}",
            )
        return visible[:count]
    ids = _listed(listed, count, profile.profile)
    return ids if visible is None else tuple(_within(id_, visible) for id_ in ids)


def _listed(listed: str, count: int, profile: str) -> tuple[str, ...]:
    example = ",".join(map(str, range(count)))
    mend = f"list {count} different devices in {DEVICES}, in the order of the slots: {example}"
    ids = tuple(id_.strip() for id_ in listed.split(",")) if listed.strip() else ()
    for position, id_ in enumerate(ids, start=1):
        if not _DEVICE_ID.fullmatch(id_):
            what = f"entry {position} of {DEVICES}={listed!r} is not an index, a UUID or a MIG id"
            raise SetupMissing(what, device=id_ or None, mend=mend)
        if id_ in ids[: position - 1]:
            raise SetupMissing(f"{DEVICES}={listed!r} lists a device twice", device=id_, mend=mend)
    if len(ids) != count:
        what = f"{DEVICES}={listed!r} lists {_devices(len(ids))}, {profile} needs {count}"
        raise SetupMissing(what, mend=mend)
    return ids


def _visible(variables: Variables) -> tuple[str, ...] | None:
    """What CUDA would see: ids up to the first that is none, such as -1."""
    if (value := variables.get(VISIBLE)) is None:
        return None
    shown: list[str] = []
    for id_ in value.split(","):
        if not _DEVICE_ID.fullmatch(id_.strip()):
            break
        shown.append(id_.strip())
    return tuple(shown)


def _within(id_: str, visible: tuple[str, ...]) -> str:
    if id_.isdigit():
        if int(id_) < len(visible):
            return visible[int(id_)]
    elif id_ in visible or all(shown.isdigit() for shown in visible):
        return id_
    raise SetupMissing(
        f"device {id_} of {DEVICES} is not within {VISIBLE}={','.join(visible)!r}",
        device=id_,
        mend=f"an index counts within {VISIBLE}; list devices that it shows, or unset it",
    )


def port_base(variables: Variables, ports: int) -> int | None:
    """AFD_E2E_PORT_BASE: the first of `ports` ports of a deployment; None where it is not set."""
    if not (value := variables.get(PORT_BASE)):
        return None
    most = _MOST_PORT - ports + 1
    if not _NUMBER.fullmatch(value.strip()) or not _LEAST_PORT <= int(value) <= most:
        raise SetupMissing(
            f"{PORT_BASE}={value!r} is not a port from {_LEAST_PORT} to {most}",
            mend=f"set {PORT_BASE} to the first of {ports} free ports in a row, or unset it",
        )
    return int(value)


def limit(variables: Variables) -> int | Literal["all"] | None:
    """AFD_GSM8K_LIMIT: another number of samples; None where it is not set."""
    if not (value := variables.get(LIMIT, "").strip()):
        return None
    if value == "all":
        return "all"
    if not _NUMBER.fullmatch(value) or int(value) < 1:
        raise SetupMissing(
            f"{LIMIT}={value!r} is not a number of samples",
            mend=f"set {LIMIT} to a number of at least 1, or all; or unset it",
        )
    return int(value)


def threshold(evaluation: Evaluation, variables: Variables) -> float | None:
    """AFD_GSM8K_THRESHOLD: a share of the answers that must be right. It may raise what the
    profile asks for and never lower it."""
    if not (value := variables.get(THRESHOLD, "").strip()):
        return None
    required, samples = evaluation.required, evaluation.samples
    mend = f"the profile asks for {required} of {samples}; raise that, or unset {THRESHOLD}"
    try:
        share = float(value)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise SetupMissing(f"{THRESHOLD}={value!r} is not a share from 0 to 1", mend=mend)
    if (least := at_least(share, samples)) < required:
        what = f"{THRESHOLD}={value!r} would lower {required} of {samples} answers to {least}"
        raise SetupMissing(what, mend=mend)
    return share


def at_least(share: float, count: int) -> int:
    """The smallest number that is that share of a count, whatever binary fractions make of it."""
    return math.ceil(share * count - 1e-9)


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count} devices"
