"""The record of a canary: read back as written, and never half."""

import json
import subprocess
import sys

import pytest

from e2e.canary import fingerprint, manifest
from e2e.canary.manifest import Band, CanaryManifest, Expected, Sensitivity
from e2e.errors import SetupMissing


def a_manifest() -> CanaryManifest:
    return CanaryManifest(
        family="qwen3_moe",
        seed=0,
        shots=8,
        dataset_sha256="d",
        steps=60,
        smallest_lead=8.5,
        router_gap=0.2,
        expert_share=0.06,
        bands={"float32": Band(noise=1e-6, smallest_effect=1e-2, limit=1e-4)},
        sensitivity=(
            Sensitivity(
                change="expert zeroed",
                tried=16,
                smallest_effect=0.4,
                noticed_by_number=1,
                noticed_by_text=7,
                noticed_by_fingerprint={"float32": 16},
            ),
        ),
        answers=(
            Expected(
                doc_id=0,
                prompt="Question: 1+1?\nAnswer:",
                prompt_sha256="s",
                text=" 1+1=2\n#### 2",
                token_ids=(3, 0),
                top_logprobs=(((3, -0.1), (4, -2.5)), ((0, -0.2), (5, -3.5))),
            ),
        ),
    )


def test_what_is_written_is_read(tmp_path):
    manifest.write(a_manifest(), tmp_path)
    assert manifest.read(tmp_path) == a_manifest().sealed()
    known = fingerprint.load(tmp_path)
    assert known is not None
    assert known.limit("float32") == 1e-4
    assert known.expected("s") == a_manifest().answers[0]


def test_the_summary_says_what_is_guarded_against():
    text = a_manifest().summary()
    assert "1 answers, 2 tokens" in text
    assert "smallest lead of a right token: 8.50" in text
    assert "10000 times the noise" in text


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text[: len(text) // 2], "JSON"),
        (lambda text: "", "JSON"),
        (lambda text: text.replace('"token_ids"', '"tokens"'), "token_ids"),
        (lambda text: text.replace('"noise":1e-6', '"noise":"?"').replace("1e-6", '"?"'), "noise"),
        (lambda text: json.dumps({**json.loads(text), "schema_version": 99}), "version 99"),
        (lambda text: text.replace('"limit": 0.0001', '"limit": Infinity'), "not what was written"),
        (lambda text: text.replace('"limit": 0.0001', '"limit": 9.5'), "not what was written"),
        (lambda text: text.replace("1+1=2", "1+1=3"), "not what was written"),
        (lambda text: text.replace('"seal": "', '"seal": "0'), "not what was written"),
    ],
)
def test_a_damaged_record_is_named(tmp_path, damage, said):
    manifest.write(a_manifest(), tmp_path)
    path = tmp_path / manifest.FILE
    path.write_text(damage(path.read_text()))
    with pytest.raises(SetupMissing, match=said) as caught:
        fingerprint.load(tmp_path)
    assert str(path) in str(caught.value)
    assert "build the canary again" in caught.value.mend


def test_a_fingerprint_is_read_without_torch():
    heavy = {"torch", "transformers", "tokenizers", "safetensors", "numpy", "datasets"}
    program = (
        "import sys, e2e.canary, e2e.canary.cache, e2e.canary.fingerprint, e2e.canary.families\n"
        f"print(*sorted({heavy!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == []
