"""The checkpoint that the server loaded is the planned one, and is what the profile says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from e2e.claims.judgement import Judgement, judge
from e2e.claims.observation import Observation, RoleSeen

_ABSENT = object()


def claims(seen: Observation) -> list[Judgement]:
    return [
        *(_loaded(role, seen.plan.model) for role in seen.roles),
        *(
            _key(seen.config or {}, key, value, seen.plan.model)
            for key, value in seen.plan.model_config.items()
        ),
    ]


def differences(config: Mapping[str, Any], expected: Mapping[str, object]) -> list[str]:
    """Each expected key (dots for nesting) that config.json contradicts, with what is there."""
    return [
        f"{key} is {_shown(config, key)}, not {value!r}"
        for key, value in expected.items()
        if lookup(config, key) != value
    ]


def lookup(config: Mapping[str, Any], key: str) -> object:
    """The value at a dotted key, at the top or (a language model within a larger one) in
    text_config; a value that no config holds where it is absent."""
    found = _at(config, key)
    return _at(config, f"text_config.{key}") if found is _ABSENT else found


def _at(config: Mapping[str, Any], key: str) -> object:
    here: Any = config
    for part in key.split("."):
        if not isinstance(here, Mapping) or part not in here:
            return _ABSENT
        here = here[part]
    return here


def _loaded(role: RoleSeen, model: str) -> Judgement:
    loaded = role.log.setting("model")
    return judge(
        f"{role.plan.role} checkpoint",
        held=loaded == model,
        expected=model,
        seen=str(loaded),
        where=role.log.where("config"),
        proof="model= in the configuration line of a living engine",
    )


def _key(config: Mapping[str, Any], key: str, value: object, model: str) -> Judgement:
    return judge(
        f"checkpoint {key}",
        held=lookup(config, key) == value,
        expected=repr(value),
        seen=_shown(config, key),
        where=f"{model}/config.json",
        proof="this key of config.json",
    )


def _shown(config: Mapping[str, Any], key: str) -> str:
    value = lookup(config, key)
    if value is not _ABSENT:
        return repr(value)
    near = [name for name in config if key.rpartition(".")[2].split("_")[-1] in name]
    return "absent" + (f" (there are {', '.join(near)})" if near else "")
