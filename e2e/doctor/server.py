"""The server's executable, and what its own interpreter can import."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from e2e.claims.packages import PLUGIN_GROUP, Packages
from e2e.doctor.result import CheckResult, failed, passed
from e2e.errors import SetupMissing
from e2e.plan import CasePlan, RolePlan
from e2e.systems.executable import interpreter, resolve

_SET_UP = {
    "cpu": "run `make setup`, or name a vLLM of yours in AFD_CPU_E2E_VLLM_BIN",
    "gpu": "name your vLLM in AFD_GPU_E2E_VLLM_BIN",
}


def checks(plan: CasePlan, variables: Mapping[str, str]) -> Iterator[CheckResult]:
    """Every role's executable; nothing is imported, nothing is started but its interpreter.

    Roles that share an executable are asked once: their environments differ in what they run as,
    not in where packages are found.
    """
    asked: dict[str, Packages | SetupMissing | None] = {}
    for role in plan.roles:
        executable = role.argv[0]
        if executable not in asked:
            asked[executable] = _ask(executable, _environment(role, variables))
        yield from _role(role, asked[executable], plan.backend)


def _ask(executable: str, environment: Mapping[str, str]) -> Packages | SetupMissing | None:
    """None for an executable that is no Python script: its interpreter shows once it runs."""
    try:
        found = resolve(executable)
    except SetupMissing as missing:
        return missing
    python = interpreter(found)
    return Packages.ask(str(python), environment) if python else None


def _role(
    role: RolePlan, packages: Packages | SetupMissing | None, backend: str
) -> Iterator[CheckResult]:
    name, set_up = f"{role.role} server", _SET_UP[backend]
    if packages is None:
        yield passed(name, f"{role.argv[0]}: a launcher; its packages are asked once it runs")
    elif isinstance(packages, SetupMissing):
        yield failed(name, packages.what, set_up)
    elif packages.problem:
        yield failed(name, packages.problem, set_up)
    elif "vllm" not in packages.versions:
        yield failed(name, f"{packages.interpreter} has no vllm", set_up)
    else:
        known = ", ".join(f"{package} {version}" for package, version in packages.versions.items())
        seen = f"{packages.interpreter}: {known}"
        if backend == "gpu" and "+cpu" in packages.versions.get("torch", ""):
            yield failed(name, f"a CPU build, for a profile of GPUs: {seen}", set_up)
        else:
            yield passed(name, seen)
        yield from _torchvision(role, packages)
        for plugin in filter(None, role.env_set.get("VLLM_PLUGINS", "").split(",")):
            yield _plugin(role, plugin, packages)


def _torchvision(role: RolePlan, packages: Packages) -> Iterator[CheckResult]:
    """A torchvision from PyPI beside a CPU build of torch fails at import, and vLLM with it."""
    torch, vision = packages.versions.get("torch", ""), packages.versions.get("torchvision")
    if vision is not None and "+cpu" in torch and "+cpu" not in vision:
        yield failed(
            f"{role.role} torchvision",
            f"torchvision {vision} beside torch {torch}: importing it fails",
            f"{packages.interpreter} -m pip uninstall torchvision (or `make setup` again)",
        )


def _plugin(role: RolePlan, plugin: str, packages: Packages) -> CheckResult:
    name = f"{role.role} plugin {plugin}"
    point = packages.plugins.get(plugin)
    if point is None:
        there = ", ".join(sorted(packages.plugins)) or "none"
        return failed(
            name,
            f"no entry point {plugin!r} in group {PLUGIN_GROUP} of {packages.interpreter} "
            f"(there: {there})",
            "install the plugin's distribution there: on PYTHONPATH alone it registers nothing, "
            "and plain vLLM would run under another label",
        )
    if point.value.partition(":")[0].partition(".")[0] not in packages.modules:
        return failed(
            name,
            f"the entry point {plugin} = {point.value} of {point.distribution} names a module "
            "that cannot be imported",
            f"install the plugin whole into {packages.interpreter}",
        )
    return passed(name, f"{plugin} = {point.value} ({point.distribution})")


def _environment(role: RolePlan, variables: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in variables.items() if name not in role.env_unset}
    return {**kept, **role.env_set}
