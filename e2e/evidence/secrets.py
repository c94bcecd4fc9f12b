"""Values that must never reach evidence, messages or reports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|ACCESS_KEY|PRIVATE_KEY", re.I)
_SHORTEST = 6
REDACTED = "[redacted]"


def secret_values(variables: Mapping[str, str]) -> list[str]:
    """The values of variables whose names say that they are secret, longest first."""
    found = {
        value
        for name, value in variables.items()
        if len(value) >= _SHORTEST and _SECRET_NAME.search(name) and not value.isdigit()
    }
    return sorted(found, key=len, reverse=True)


def redact(text: str, values: Iterable[str]) -> str:
    """`text` without any of `values`, as they stand and as JSON writes them."""
    for value in values:
        text = text.replace(value, REDACTED).replace(json.dumps(value)[1:-1], REDACTED)
    return text
