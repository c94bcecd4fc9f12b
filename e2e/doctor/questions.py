"""The data set: on this machine, or certain to be had."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from e2e.doctor.result import CheckResult, failed, passed
from e2e.errors import SetupMissing
from e2e.oracle import dataset
from e2e.plan import CasePlan
from e2e.plan.checks import beyond

_OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")


def check(plan: CasePlan, variables: Mapping[str, str]) -> CheckResult:
    """A folder is read whole; a data set of the hub must be in the cache where the hub may not
    be asked, and is left to the run otherwise."""
    name = dataset.chosen(plan.evaluation.dataset, variables)
    cached = _cache(name, variables)
    if name == "bundled" or Path(name).expanduser().is_dir():
        return _loaded(name, plan)
    if any(variables.get(variable, "0") not in ("", "0") for variable in _OFFLINE):
        if cached is None:
            return failed(
                "data set",
                f"{name} is not in the hub's cache, and the hub may not be asked",
                f"set {dataset.VARIABLE} to a folder of train.jsonl and test.jsonl, or fill the "
                "cache on this machine",
            )
        return passed("data set", f"{name}, in {cached}")
    return passed("data set", f"{name}, {'in ' + str(cached) if cached else 'from the hub'}")


def shown(plan: CasePlan) -> list[CheckResult]:
    """What a profile demands and its questions cannot show is no miss of the machine: told, and
    held."""
    return [passed("what n shows", f"warning: {text}")] if (text := beyond(plan)) else []


def _loaded(name: str, plan: CasePlan) -> CheckResult:
    try:
        rows = dataset.load(name)
    except SetupMissing as missing:
        return failed("data set", missing.what, missing.mend)
    samples, shots = plan.evaluation.samples, plan.evaluation.shots
    if (samples != "all" and len(rows.test) < samples) or len(rows.train) < shots:
        return failed(
            "data set",
            f"{name} has {len(rows.test)} questions and {len(rows.train)} worked examples",
            f"{samples} questions and {shots} worked examples are needed",
        )
    return passed("data set", f"{name}: {len(rows.test)} questions, sha256 {rows.sha256[:12]}")


def _cache(name: str, variables: Mapping[str, str]) -> Path | None:
    """The hub's cache of a data set, where `datasets` looks for it."""
    home = Path(variables.get("HF_HOME") or _home() / ".cache" / "huggingface")
    hub = Path(variables.get("HF_HUB_CACHE") or home / "hub")
    prepared = Path(variables.get("HF_DATASETS_CACHE") or home / "datasets")
    folders = (
        hub / f"datasets--{name.replace('/', '--')}" / "snapshots",
        prepared / name.replace("/", "___"),
    )
    return next((folder for folder in folders if folder.is_dir()), None)


def _home() -> Path:
    """A user of a container may have none: then nothing is cached there."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/nonexistent")
