"""The checkpoint: there, whole, and what the profile says. Never downloaded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from e2e.claims.checkpoint import differences
from e2e.claims.observation import read_config
from e2e.doctor.result import CheckResult, failed, passed
from e2e.plan import CasePlan

_GIB = 1 << 30
_INDEX = "model.safetensors.index.json"
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tekken.json")
_LEAST_SHARE = 0.95
_LONGEST_HEADER = 100 << 20
_NAMED = 3


def checks(plan: CasePlan) -> Iterator[CheckResult]:
    """config.json, tokenizer and every byte of the weights, by their files' own headers."""
    if plan.model.startswith("$"):
        yield _no_folder(plan)
        return
    folder = Path(plan.model)
    if not folder.is_dir():
        if _built(plan):
            yield passed("checkpoint", f"{folder} will be built before the launch")
        else:
            yield failed(
                "checkpoint",
                f"{plan.model_variable}={plan.model} is no folder",
                f"{_mend(plan)}; nothing is downloaded",
            )
        return
    if not folder.is_absolute():
        yield failed(
            "checkpoint",
            f"{plan.model_variable}={plan.model} is relative, and servers run in a folder of "
            "their own",
            f"set {plan.model_variable}={folder.absolute()}",
        )
        return
    yield _config(plan, folder)
    yield _tokenizer(folder)
    yield _weights(plan, folder)


def weights(folder: Path) -> tuple[int, list[str]]:
    """Size of the weights in bytes, and what is wrong with them, a line each."""
    files, problems = _files(folder)
    problems += [problem for file in files if (problem := _incomplete(file))]
    return sum(file.stat().st_size for file in files), problems


def _built(plan: CasePlan) -> bool:
    return plan.canary is not None and plan.model_variable is None


def _mend(plan: CasePlan) -> str:
    if _built(plan):
        return f"remove {plan.model}: it is built again"
    return f"set {plan.model_variable} to a whole checkpoint that fits {plan.profile}"


def _no_folder(plan: CasePlan) -> CheckResult:
    if _built(plan):
        return passed("checkpoint", f"the {plan.canary} canary will be built before the launch")
    return failed(
        "checkpoint",
        f"{plan.model.lstrip('$')} is not set",
        "set it to the folder of the checkpoint; nothing is downloaded",
    )


def _config(plan: CasePlan, folder: Path) -> CheckResult:
    name = "checkpoint config"
    config = read_config(folder)
    if config is None:
        return failed(name, f"{folder / 'config.json'} cannot be read as JSON", _mend(plan))
    wrong = differences(config, plan.model_config)
    if wrong:
        return failed(name, "; ".join(wrong), _mend(plan))
    kinds = ", ".join(map(str, config.get("architectures") or ["no architecture"]))
    return passed(name, f"{kinds}; as the profile says: {', '.join(plan.model_config)}")


def _tokenizer(folder: Path) -> CheckResult:
    found = [name for name in _TOKENIZERS if (folder / name).is_file()]
    if found:
        return passed("checkpoint tokenizer", found[0])
    return failed(
        "checkpoint tokenizer",
        f"none of {', '.join(_TOKENIZERS)} in {folder}",
        "copy the tokenizer's files beside config.json",
    )


def _weights(plan: CasePlan, folder: Path) -> CheckResult:
    name = "checkpoint weights"
    size, problems = weights(folder)
    if problems:
        more = f"; and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
        return failed(name, "; ".join(problems[:_NAMED]) + more, f"complete {folder}")
    if plan.weights_gib is not None and size < _LEAST_SHARE * plan.weights_gib * _GIB:
        return failed(
            name,
            f"{size / _GIB:.1f} GiB, not {plan.weights_gib:g} GiB",
            f"complete {folder}, or {_mend(plan)}",
        )
    return passed(name, f"{size / _GIB:.3g} GiB")


def _files(folder: Path) -> tuple[list[Path], list[str]]:
    """The files that hold weights, and those that the index names and are not there."""
    index = folder / _INDEX
    if not index.is_file():
        files = sorted(folder.glob("*.safetensors"))
        return files, [] if files else [f"no .safetensors file in {folder}"]
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return [], [f"{_INDEX} cannot be read"]
    there = [folder / name for name in names if (folder / name).is_file()]
    return there, [f"{name} is not there" for name in names if not (folder / name).is_file()]


def _incomplete(file: Path) -> str | None:
    """Why a safetensors file is not whole: its header says where the last tensor ends."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        start = stream.read(8)
        if start.startswith(b"version"):
            return f"{file.name} is a pointer of git-lfs, not the file"
        length = int.from_bytes(start, "little")
        if size < 8 or length > min(size - 8, _LONGEST_HEADER):
            return f"{file.name} is cut or no safetensors file ({size} bytes)"
        try:
            header = json.loads(stream.read(length))
            ends = [t["data_offsets"][1] for name, t in header.items() if name != "__metadata__"]
        except (ValueError, AttributeError, KeyError, TypeError, IndexError):
            return f"{file.name} has a broken header"
    if not ends:
        return f"{file.name} holds no tensor"
    whole = 8 + length + max(ends)
    return None if size == whole else f"{file.name} has {size} bytes, its header says {whole}"
