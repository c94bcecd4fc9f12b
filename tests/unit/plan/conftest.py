"""Plans of shipped profiles and of changed ones."""

from collections.abc import Callable, Mapping

import pytest

from e2e import profile
from e2e.plan import CasePlan, RolePlan, plan_case

Plan = Callable[..., CasePlan]


@pytest.fixture
def plan() -> Plan:
    """Plans a case of a shipped profile, `name/case`, in a given environment."""

    def plan(id_: str, model: str | None = None, /, **variables: str) -> CasePlan:
        name, case = id_.split("/")
        return plan_case(profile.load(profile.find(name)), case, variables, model)

    return plan


@pytest.fixture
def flags() -> Callable[[RolePlan], Mapping[str, str]]:
    """The flags of a role, each with its value; `--a=b` and `--a b` are the same."""

    def flags(role: RolePlan) -> Mapping[str, str]:
        found: dict[str, str] = {}
        name = ""
        for word in role.argv[3:]:
            if word.startswith("--"):
                name, _, value = word.partition("=")
                assert name not in found, f"{name} twice"
                found[name] = value
            else:
                found[name] = f"{found[name]} {word}".strip()
        return found

    return flags
