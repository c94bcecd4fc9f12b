"""A small canary, really trained: deterministic, balanced, and blind to nothing that it guards."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="canaries are built with torch (make setup)")

from e2e import canary  # noqa: E402
from e2e.canary import disturb, families, fingerprint, manifest, network, reference  # noqa: E402
from e2e.canary.lessons import Lesson, lesson, load_tokenizer  # noqa: E402
from e2e.canary.manifest import CanaryManifest  # noqa: E402
from e2e.canary.replay import Replay  # noqa: E402
from e2e.errors import HarnessError, SetupMissing  # noqa: E402
from e2e.oracle import dataset  # noqa: E402

SHAPE: Any = {"shots": 1, "samples": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("canary") / "qwen3_moe"
    canary.build("qwen3_moe", out, dataset.load("bundled"), **SHAPE)
    return out


@pytest.fixture(scope="module")
def known(folder: Path) -> CanaryManifest:
    read = manifest.read(folder)
    assert read is not None
    return read


def lessons_of(folder: Path, known: CanaryManifest) -> list[Lesson]:
    tokenizer = load_tokenizer(folder)
    return [lesson(tokenizer, a.doc_id, a.prompt, a.text) for a in known.answers]


def distance_of(folder: Path, known: CanaryManifest) -> float:
    """Of the folder's weights, computed in float32, to the fingerprint."""
    given = reference.answers(network.load(folder), lessons_of(folder, known))
    return reference.distance(known.answers, given)


def test_margins_and_bands_are_wide(known: CanaryManifest):
    assert known.smallest_lead > 3
    assert known.expert_share > 0
    assert known.bands["float32"].separation > 10
    assert known.bands["bfloat16"].separation >= 3
    for band in known.bands.values():
        assert band.noise < band.limit < band.smallest_effect


def test_it_is_small_and_whole(folder: Path):
    names = {path.name for path in folder.iterdir()}
    assert names >= {"config.json", "tokenizer.json", "model.safetensors", "canary.json"}
    assert sum(path.stat().st_size for path in folder.iterdir()) < 5_000_000
    assert json.loads((folder / "config.json").read_text())["vocab_size"] % 64 == 0


def test_another_build_with_the_same_seed_is_byte_identical(folder: Path, tmp_path: Path):
    again = tmp_path / "again"
    canary.build("qwen3_moe", again, dataset.load("bundled"), **SHAPE)
    digests = [
        {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in one.iterdir()}
        for one in (folder, again)
    ]
    assert digests[0] == digests[1]


def test_transformers_generates_the_learnt_text(folder: Path, known: CanaryManifest):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    for answer in known.answers:
        prompt = tokenizer(answer.prompt, return_tensors="pt")
        out = model.generate(**prompt, max_new_tokens=200, do_sample=False)[0]
        told = out[prompt["input_ids"].shape[1] :].tolist()
        assert tuple(told) == answer.token_ids
        assert tokenizer.decode(told, skip_special_tokens=True) == answer.text


def test_every_expert_head_and_router_row_is_guarded_for_every_dtype(known: CanaryManifest):
    found = {kind.change: kind for kind in known.sensitivity}
    for change, tried in {
        "expert zeroed": 2 * 8,
        "experts swapped": 2 * 28,
        "head zeroed": 2 * 4,
        "heads swapped": 2 * 6,
        "router row x0": 2 * 8,
        "router row x2": 2 * 8,
    }.items():
        assert found[change].tried == tried
        assert found[change].noticed_by_fingerprint == {"float32": tried, "bfloat16": tried}
    assert found["expert zeroed"].noticed_by_number < 16  # why there is a fingerprint


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("change", ["zero", "swap"])
def test_a_checkpoint_disturbed_on_disk_is_noticed(
    folder: Path, known: CanaryManifest, tmp_path: Path, change: str, layer: int
):
    family = families.find("qwen3_moe")
    disturbance = (
        disturb.zero_expert(family, layer, 5)
        if change == "zero"
        else disturb.swap_experts(family, layer, 2, 6)
    )
    copy = tmp_path / "copy"
    disturb.disturbed_copy(folder, disturbance, copy)
    assert distance_of(folder, known) < known.bands["float32"].limit
    loaded = fingerprint.load(copy)
    assert loaded is not None
    assert distance_of(copy, known) > loaded.limit("bfloat16")


@pytest.mark.parametrize("layer", [0, 1])
def test_what_is_computed_again_is_what_the_whole_network_computes(
    folder: Path, known: CanaryManifest, layer: int
):
    saved, lessons = network.load(folder), lessons_of(folder, known)
    replay, family = Replay(saved, lessons), saved.family
    for change in (
        disturb.zero_expert(family, layer, 1),
        disturb.scale_row("router row", family.router.format(layer=layer), layer, 2, 2.0),
        disturb.zero_head(family.attentions[0], layer, 3),
        disturb.swap_heads(family.attentions[0], layer, 0, 2),
    ):
        with disturb.disturbed(saved.tensors, change), torch.no_grad():
            whole = [saved.answer_logits(one) for one in lessons]
            again = replay.logits(change)
        for one, other in zip(whole, again, strict=True):
            torch.testing.assert_close(one, other)
    assert distance_of(folder, known) < known.bands["float32"].limit


def test_the_audit_tells_what_is_noticed_and_whether_weights_were_changed(
    folder: Path, known: CanaryManifest, tmp_path: Path
):
    report = canary.audit(folder)
    assert report.genuine
    assert report.sensitivity == known.sensitivity
    for kind in report.sensitivity:
        assert kind.noticed_by_fingerprint["float32"] == kind.tried
    assert "expert zeroed" in report.table()
    assert "as the fingerprint has them" in report.table()

    family = families.find("qwen3_moe")
    change = disturb.scale_row("row", family.expert_tensor(1, 3, "down"), 1, 5, 2.0)
    disturb.disturbed_copy(folder, change, tmp_path / "changed")
    changed = canary.audit(tmp_path / "changed")
    assert not changed.genuine
    assert "CHANGED" in changed.table()


def test_a_disk_that_is_full_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("e2e.canary.building.train", lambda *_: 1)
    monkeypatch.setattr("e2e.canary.network.save", full)
    (tmp_path / manifest.FILE).write_text("of the canary that was here before")
    with pytest.raises(HarnessError, match="No space left on device") as caught:
        canary.build("qwen3_moe", tmp_path, dataset.load("bundled"), **SHAPE)
    assert str(tmp_path) in str(caught.value)
    assert fingerprint.load(tmp_path) is None


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SetupMissing, match="torch, transformers") as caught:
        canary.build("qwen3_moe", tmp_path, dataset.load("bundled"), **SHAPE)
    assert "make setup" in caught.value.mend


def test_an_unknown_family_is_named(tmp_path: Path):
    with pytest.raises(SetupMissing, match="no canary family 'llama'") as caught:
        canary.build("llama", tmp_path, dataset.load("bundled"), **SHAPE)
    assert "qwen3_moe" in caught.value.mend


@pytest.mark.parametrize("damage", ["model.safetensors", "config.json"])
def test_a_checkpoint_that_is_cut_is_named(folder: Path, tmp_path: Path, damage: str):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (copy / damage).write_bytes((copy / damage).read_bytes()[:100])
    with pytest.raises(SetupMissing, match="cannot be read as a checkpoint"):
        network.load(copy)
