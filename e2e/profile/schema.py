"""The JSON Schema of profiles, for editors (`# yaml-language-server: $schema=schema.json`)."""

from __future__ import annotations

import copy
from typing import Any

from e2e.profile.extends import OWN_KEYS
from e2e.profile.model import Profile

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_EXTENDING = "Extending"


def schema() -> dict[str, Any]:
    """One schema of two forms: a profile that says everything itself, and one that extends
    another, where any inherited key may be missing, or `null` to remove it."""
    whole = _close(Profile.model_json_schema(ref_template="#/$defs/{model}"))
    definitions: dict[str, Any] = whole.pop("$defs")
    definitions["Profile"] = whole
    extending = {
        f"{_EXTENDING}{name}": _extending(name, definition)
        for name, definition in definitions.items()
    }
    return {
        "$schema": _DRAFT,
        "title": "afd-e2e hardware profile",
        "if": {"required": ["extends"]},
        "then": {"$ref": f"#/$defs/{_EXTENDING}Profile"},
        "else": {"$ref": "#/$defs/Profile"},
        "$defs": definitions | extending,
    }


def _extending(name: str, definition: dict[str, Any]) -> dict[str, Any]:
    own = _refer_to_extending(copy.deepcopy(definition))
    own.pop("anyOf", None)
    properties: dict[str, Any] = own.get("properties", {})
    required = [key for key in own.pop("required", []) if name == "Profile" and key in OWN_KEYS]
    if required:
        own["required"] = required
    for key, value in properties.items():
        if key == "gate":
            properties[key] = {"$ref": "#/$defs/Gate"}
        elif key not in OWN_KEYS:
            properties[key] = _or_null(value)
    return own


def _or_null(value: dict[str, Any]) -> dict[str, Any]:
    value.pop("minProperties", None)
    for key, inner in value.get("patternProperties", {}).items():
        value["patternProperties"][key] = _or_null(inner)
    if isinstance(value.get("additionalProperties"), dict):
        value["additionalProperties"] = _or_null(value["additionalProperties"])
    if not value or value.get("type") == "null" or {"type": "null"} in value.get("anyOf", []):
        return value
    kept = {key: value.pop(key) for key in ("description", "title", "default") if key in value}
    return {"anyOf": [value, {"type": "null"}], **kept}


def _close(value: Any) -> Any:
    """pydantic says which keys a mapping may have, but not that it has no others."""
    if isinstance(value, dict):
        closed = {key: _close(inner) for key, inner in value.items()}
        return closed | {"additionalProperties": False} if "patternProperties" in value else closed
    return [_close(inner) for inner in value] if isinstance(value, list) else value


def _refer_to_extending(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: f"#/$defs/{_EXTENDING}{inner.rpartition('/')[2]}"
            if key == "$ref"
            else _refer_to_extending(inner)
            for key, inner in value.items()
        }
    return [_refer_to_extending(inner) for inner in value] if isinstance(value, list) else value
