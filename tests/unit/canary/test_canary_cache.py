"""One folder a content, whole or not there, whoever builds it how often."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from e2e import canary
from e2e.canary import cache
from e2e.errors import HarnessError, SetupMissing
from e2e.oracle.dataset import Dataset, Row


def a_dataset(answer: str = "#### 2") -> Dataset:
    rows = tuple(Row(f"{n}+{n}?", f"#### {2 * n}") for n in range(20))
    return Dataset(rows, (Row("1+1?", answer), Row("2+2?", "#### 4")), "sha", "test")


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    return {"AFD_E2E_CACHE": str(tmp_path / "cache")}


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Stands in for the training; the folders that were built in."""
    seen: list[Path] = []

    def build(family: str, out: Path, dataset: Dataset, **settings: object) -> None:
        seen.append(out)
        out.mkdir(parents=True)
        (out / "canary.json").write_text(family)

    monkeypatch.setattr(canary, "build", build)
    return seen


def test_it_is_built_once(variables, builds):
    first = cache.ensure("qwen3_moe", a_dataset(), samples=2, variables=variables)
    again = cache.ensure("qwen3_moe", a_dataset(), samples=2, variables=variables)
    assert first == again == cache.folder("qwen3_moe", a_dataset(), samples=2, variables=variables)
    assert (first / "canary.json").read_text() == "qwen3_moe"
    assert len(builds) == 1
    assert builds[0] != first
    assert not builds[0].exists()


def test_every_input_has_its_own_folder(variables):
    def place(family: str = "qwen3_moe", dataset: Dataset | None = None, **settings: int) -> Path:
        settings = {"samples": 2, "shots": 8, **settings}
        return cache.folder(family, dataset or a_dataset(), variables=variables, **settings)

    places = [
        place(),
        place(family="deepseek_v2"),
        place(dataset=a_dataset("#### 3")),
        place(seed=1),
        place(shots=7),
        place(samples=1),
    ]
    assert len(set(places)) == len(places)
    assert place() == places[0]


def test_changed_sources_have_their_own_folder(variables, monkeypatch):
    before = cache.folder("qwen3_moe", a_dataset(), samples=2, variables=variables)
    monkeypatch.setattr(cache, "_recipe", lambda: b"another")
    assert cache.folder("qwen3_moe", a_dataset(), samples=2, variables=variables) != before


def test_what_was_changed_afterwards_is_not_built_again(variables, builds):
    place = cache.ensure("qwen3_moe", a_dataset(), samples=2, variables=variables)
    (place / "canary.json").write_text("tampered")
    cache.ensure("qwen3_moe", a_dataset(), samples=2, variables=variables)
    assert (place / "canary.json").read_text() == "tampered"


def test_a_failed_build_leaves_nothing(variables, monkeypatch):
    def build(family: str, out: Path, dataset: Dataset, **settings: object) -> None:
        out.mkdir(parents=True)
        (out / "model.safetensors").write_bytes(b"half")
        raise HarnessError("No space left on device")

    monkeypatch.setattr(canary, "build", build)
    with pytest.raises(HarnessError, match="No space left"):
        cache.ensure("qwen3_moe", a_dataset(), samples=2, variables=variables)
    place = cache.folder("qwen3_moe", a_dataset(), samples=2, variables=variables)
    assert [path.suffix for path in place.parent.iterdir()] == [".lock"]


def test_what_a_killed_builder_left_is_cleared_away(variables, builds):
    place = cache.folder("qwen3_moe", a_dataset(), samples=2, variables=variables)
    partial = place.with_suffix(".partial")
    partial.mkdir(parents=True)
    (partial / "model.safetensors").write_bytes(b"half")
    cache.ensure("qwen3_moe", a_dataset(), samples=2, variables=variables)
    assert [path.name for path in place.iterdir()] == ["canary.json"]
    assert not partial.exists()


def test_two_builders_at_once_build_once(variables, monkeypatch):
    building, told, built = threading.Event(), threading.Event(), []

    def build(family: str, out: Path, dataset: Dataset, **settings: object) -> None:
        building.set()
        assert told.wait(20)
        out.mkdir(parents=True)
        built.append(out)

    monkeypatch.setattr(canary, "build", build)
    messages: list[str] = []

    def second_waits(text: str) -> None:
        messages.append(text)
        told.set()

    def ensure(progress) -> None:
        cache.ensure("qwen3_moe", a_dataset(), samples=2, progress=progress, variables=variables)

    first = threading.Thread(target=ensure, args=(lambda text: None,))
    second = threading.Thread(target=ensure, args=(second_waits,))
    first.start()
    assert building.wait(20)
    second.start()
    first.join(20)
    second.join(20)
    assert len(built) == 1
    assert len(messages) == 1 and "another process builds" in messages[0]


def test_a_killed_holder_gives_the_lock_back(variables, builds):
    place = cache.folder("qwen3_moe", a_dataset(), samples=2, variables=variables)
    lock = place.with_suffix(".lock")
    lock.parent.mkdir(parents=True)
    program = (
        "import fcntl, sys, time\n"
        "file = open(sys.argv[1], 'a')\n"
        "fcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "time.sleep(60)\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(lock)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"

    def kill_it(text: str) -> None:
        holder.send_signal(signal.SIGKILL)

    begin = time.monotonic()
    cache.ensure("qwen3_moe", a_dataset(), samples=2, progress=kill_it, variables=variables)
    holder.wait(10)
    holder.stdout.close()
    assert time.monotonic() - begin < 20
    assert len(builds) == 1


def test_a_cache_that_cannot_be_used_says_which_variable_to_set(tmp_path, builds):
    (tmp_path / "file").write_text("")
    variables = {"AFD_E2E_CACHE": str(tmp_path / "file")}
    with pytest.raises(SetupMissing, match="cannot be used") as caught:
        cache.ensure("qwen3_moe", a_dataset(), samples=2, variables=variables)
    assert "AFD_E2E_CACHE" in caught.value.mend


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"AFD_E2E_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, Path("/a")),
        ({"AFD_E2E_CACHE": "", "XDG_CACHE_HOME": "/b"}, Path("/b/afd-e2e")),
        ({"XDG_CACHE_HOME": "relative"}, Path("~/.cache/afd-e2e").expanduser()),
        ({}, Path("~/.cache/afd-e2e").expanduser()),
        ({"AFD_E2E_CACHE": "here"}, Path.cwd() / "here"),
    ],
)
def test_where_the_cache_is(variables, expected):
    assert cache.root(variables) == expected
