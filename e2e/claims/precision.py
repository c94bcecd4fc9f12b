"""The data type of the activations and the longest sequence, as the engine was configured."""

from __future__ import annotations

from e2e.claims.argv import flag
from e2e.claims.judgement import Judgement, judge
from e2e.claims.observation import Observation, RoleSeen

_SHORT_NAMES = {"half": "float16", "float": "float32"}


def claims(seen: Observation) -> list[Judgement]:
    """One claim for each of `--dtype` and `--max-model-len` that the plan states."""
    return [
        judgement
        for role in seen.roles
        for judgement in (_dtype(role), _length(role))
        if judgement is not None
    ]


def _dtype(role: RoleSeen) -> Judgement | None:
    wanted = flag(role.plan.argv, "dtype")
    if wanted in (None, "auto"):
        return None
    expected = _SHORT_NAMES.get(str(wanted), str(wanted))
    return _configured(role, "dtype", "dtype", f"torch.{expected}")


def _length(role: RoleSeen) -> Judgement | None:
    wanted = flag(role.plan.argv, "max-model-len")
    return None if wanted is None else _configured(role, "maximum length", "max_seq_len", wanted)


def _configured(role: RoleSeen, what: str, key: str, expected: str) -> Judgement:
    value = role.log.setting(key)
    return judge(
        f"{role.plan.role} {what}",
        held=value == expected,
        expected=expected,
        seen=str(value),
        where=role.log.where("config"),
        proof=f"{key}={expected} in the configuration line of a living engine",
    )
