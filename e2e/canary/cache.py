"""Canaries by content: the same questions, seed and recipe give the same folder."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from e2e import canary
from e2e.errors import SetupMissing
from e2e.oracle import prompts
from e2e.oracle.dataset import Dataset

VARIABLE = "AFD_E2E_CACHE"


def root(variables: Mapping[str, str] = os.environ) -> Path:
    """AFD_E2E_CACHE, else `afd-e2e` in XDG_CACHE_HOME or ~/.cache."""
    if chosen := variables.get(VARIABLE):
        return Path(chosen).expanduser().absolute()
    base = variables.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path("~/.cache").expanduser()) / "afd-e2e"


def folder(
    family: str,
    dataset: Dataset,
    *,
    shots: int = 8,
    samples: int = 7,
    seed: int = 0,
    variables: Mapping[str, str] = os.environ,
) -> Path:
    """Where the canary is, or will be once `ensure` has built it. Raises SetupMissing where the
    data set has too few rows."""
    digest = hashlib.sha256(_recipe())
    questions = [(p.sha256, p.gold_answer) for p in prompts.build(dataset, shots, samples)]
    digest.update(json.dumps([family, seed, shots, dataset.sha256, questions]).encode())
    return root(variables) / "canary" / f"{family}-{digest.hexdigest()[:16]}"


def ensure(
    family: str,
    dataset: Dataset,
    *,
    shots: int = 8,
    samples: int = 7,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
    variables: Mapping[str, str] = os.environ,
) -> Path:
    """The canary's folder, built first where it is not there.

    A folder that is there is whole, for it was renamed when it was, and is never built again: what
    has been changed in it since is for a run to notice. Raises what `e2e.canary.build` raises, and
    SetupMissing where the cache cannot be used.
    """
    place = folder(family, dataset, shots=shots, samples=samples, seed=seed, variables=variables)
    if place.is_dir():
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with _locked(place.with_suffix(".lock"), progress):
            if not place.is_dir():
                _build(place, family, dataset, shots, samples, seed, progress)
    except OSError as error:
        raise SetupMissing(
            f"the cache {place.parent} cannot be used: {error.strerror or error}",
            mend=f"set {VARIABLE} to a folder that can be written to",
        ) from error
    return place


def _build(
    place: Path,
    family: str,
    dataset: Dataset,
    shots: int,
    samples: int,
    seed: int,
    progress: Callable[[str], None],
) -> None:
    partial = place.with_suffix(".partial")
    # Under the lock: left by a builder that is no more.
    shutil.rmtree(partial, ignore_errors=True)
    try:
        canary.build(
            family, partial, dataset, shots=shots, samples=samples, seed=seed, progress=progress
        )
        partial.rename(place)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _locked(path: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """The kernel drops the lock when its holder dies, however it dies."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting: another process builds this canary (lock {path})")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _recipe() -> bytes:
    """All of this package: a canary of another recipe is never taken for one of this."""
    sources = sorted(Path(canary.__file__).parent.rglob("*.py"))
    return b"".join(hashlib.sha256(source.read_bytes()).digest() for source in sources)
