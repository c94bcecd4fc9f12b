"""Model families a canary can be of: one small file each, everything else is generic."""

from __future__ import annotations

from e2e.canary.families import deepseek_v2, qwen3_5_moe, qwen3_moe
from e2e.canary.families.family import Family
from e2e.errors import SetupMissing

_FAMILIES = {
    family.name: family for family in (qwen3_moe.FAMILY, deepseek_v2.FAMILY, qwen3_5_moe.FAMILY)
}


def find(name: str) -> Family:
    """Raises SetupMissing for a family that is not there."""
    if name not in _FAMILIES:
        raise SetupMissing(
            f"no canary family {name!r}", mend=f"the families are {', '.join(_FAMILIES)}"
        )
    return _FAMILIES[name]
