"""The family with two kinds of attention and a vision model around it."""

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="canaries are built with torch (make setup)")

from e2e import canary  # noqa: E402
from e2e.canary import disturb, families, manifest, network, reference  # noqa: E402
from e2e.canary.lessons import lesson, load_tokenizer  # noqa: E402
from e2e.canary.manifest import CanaryManifest  # noqa: E402
from e2e.oracle import dataset  # noqa: E402

FAMILY = families.find("qwen3_5_moe")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("canary") / "qwen3_5_moe"
    canary.build("qwen3_5_moe", out, dataset.load("bundled"), shots=1, samples=2)
    return out


@pytest.fixture(scope="module")
def known(folder: Path) -> CanaryManifest:
    read = manifest.read(folder)
    assert read is not None
    return read


def test_every_expert_and_head_of_either_attention_is_guarded(known: CanaryManifest):
    assert known.smallest_lead > 3
    assert known.expert_share > 0
    assert known.bands["bfloat16"].separation >= 3
    found = {kind.change: kind for kind in known.sensitivity}
    for change, tried in {
        "expert zeroed": 2 * 8,
        "experts swapped": 2 * 28,
        "head zeroed": 2 * 4,
        "heads swapped": 2 * 6,
    }.items():
        assert found[change].tried == tried
        assert found[change].noticed_by_fingerprint == {"float32": tried, "bfloat16": tried}


def test_every_matrix_of_a_layer_is_disturbed(folder: Path):
    saved = network.load(folder)
    rows = {name for _, _, name in disturb.row_matrices(FAMILY)}
    apart = {"lm_head.weight", "model.language_model.embed_tokens.weight"}
    assert rows == {name for name, tensor in saved.tensors.items() if tensor.dim() == 2} - apart


@pytest.mark.parametrize("attention", FAMILY.attentions, ids=["linear", "full"])
def test_a_head_disturbed_on_disk_is_noticed(
    folder: Path, known: CanaryManifest, tmp_path: Path, attention: Any
):
    tokenizer = load_tokenizer(folder)
    lessons = [lesson(tokenizer, a.doc_id, a.prompt, a.text) for a in known.answers]
    [layer] = attention.layers
    for change in (
        disturb.zero_head(attention, layer, 1),
        disturb.swap_heads(attention, layer, 0, 3),
    ):
        copy = tmp_path / change.kind
        disturb.disturbed_copy(folder, change, copy)
        given = reference.answers(network.load(copy), lessons)
        assert reference.distance(known.answers, given) > known.bands["bfloat16"].limit


def test_transformers_generates_the_learnt_text(folder: Path, known: CanaryManifest):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    answer = known.answers[0]
    prompt = tokenizer(answer.prompt, return_tensors="pt")
    out = model.generate(**prompt, max_new_tokens=200, do_sample=False)[0]
    assert tuple(out[prompt["input_ids"].shape[1] :].tolist()) == answer.token_ids


def test_its_config_is_the_published_one_s_in_small(folder: Path):
    config = json.loads((folder / "config.json").read_text())
    assert config["architectures"] == ["Qwen3_5MoeForConditionalGeneration"]
    assert config["text_config"]["vocab_size"] % 64 == 0
    assert config["text_config"]["dtype"] == "bfloat16"
    assert set(config) >= {"model_type", "text_config", "vision_config"}
