"""A checkpoint that is missing, cut or another one is found before anything is launched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from e2e.doctor import model
from e2e.plan import CasePlan
from tests.stubs.plans import case_plan, role_plan

CONFIG = {"architectures": ["Qwen3MoeForCausalLM"], "num_experts": 8, "num_experts_per_tok": 2}
INDEX = "model.safetensors.index.json"


def safetensors(path: Path, size: int = 32) -> Path:
    header = {
        "__metadata__": {"format": "pt"},
        "w": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]},
    }
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(size))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "tokenizer.json").write_text("{}")
    safetensors(tmp_path / "model.safetensors")
    return tmp_path


@pytest.fixture
def sharded(folder: Path) -> Path:
    """Two shards and their index."""
    (folder / "model.safetensors").unlink()
    names = {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    for name in names.values():
        safetensors(folder / name)
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": names}))
    return folder


def plan(folder: Path | str, **changes: object) -> CasePlan:
    return case_plan(role_plan(), model=str(folder), **changes)


def failing(plan: CasePlan) -> dict[str, str]:
    return {result.name: result.seen for result in model.checks(plan) if not result.held}


def test_a_whole_checkpoint(folder):
    assert failing(plan(folder)) == {}
    assert len(list(model.checks(plan(folder)))) == 3


def test_a_whole_checkpoint_of_several_files(sharded):
    assert failing(plan(sharded)) == {}


@pytest.mark.parametrize("canary", [None, "qwen3_moe"])
@pytest.mark.parametrize("name", ["none", "file", "Qwen/Qwen3.5-122B-A10B"])
def test_no_folder(tmp_path, canary, name):
    (tmp_path / "file").write_text("")
    where = tmp_path / name
    named = plan(where, canary=canary, model_variable="AFD_GPU_E2E_MODEL")
    assert failing(named) == {"checkpoint": f"AFD_GPU_E2E_MODEL={where} is no folder"}


@pytest.mark.parametrize("text", [b"{", b"[1]", b"\xff\xfe", b"", None])
def test_a_config_that_is_none(folder, text):
    (folder / "config.json").unlink()
    if text is not None:
        (folder / "config.json").write_bytes(text)
    named = plan(folder, model_variable="AFD_GPU_E2E_MODEL")
    [result] = [result for result in model.checks(named) if not result.held]
    assert result.seen == f"{folder / 'config.json'} cannot be read as JSON"
    assert result.mend == "set AFD_GPU_E2E_MODEL to a whole checkpoint that fits canary-cpu"


def test_a_variable_that_is_not_set():
    assert failing(plan("$AFD_GPU_E2E_MODEL")) == {"checkpoint": "AFD_GPU_E2E_MODEL is not set"}


@pytest.mark.parametrize("where", ["$AFD_CPU_E2E_MODEL", "/nowhere/cache/canary"])
def test_a_canary_is_built_by_the_run(where):
    assert failing(plan(where, canary="qwen3_moe")) == {}


def test_a_config_that_contradicts_the_profile(folder):
    wrong = failing(plan(folder, model_config={"num_experts": 256, "text_config.layers": 2}))
    assert wrong["checkpoint config"].startswith("num_experts is 8, not 256; text_config.layers")


def test_no_config(folder):
    (folder / "config.json").unlink()
    assert "cannot be read" in failing(plan(folder))["checkpoint config"]


def test_no_tokenizer(folder):
    (folder / "tokenizer.json").unlink()
    assert set(failing(plan(folder))) == {"checkpoint tokenizer"}


def test_no_weights(folder):
    (folder / "model.safetensors").unlink()
    assert "no .safetensors file" in failing(plan(folder))["checkpoint weights"]


def test_a_shard_that_is_not_there(sharded):
    (sharded / "model-2.safetensors").unlink()
    assert failing(plan(sharded)) == {"checkpoint weights": "model-2.safetensors is not there"}


def test_a_broken_index(sharded):
    (sharded / INDEX).write_text("[]")
    assert failing(plan(sharded)) == {"checkpoint weights": f"{INDEX} cannot be read"}


@pytest.mark.parametrize("cut", [0, 5, 50, -1])
def test_a_download_that_was_cut(sharded, cut):
    file = sharded / "model-1.safetensors"
    file.write_bytes(file.read_bytes()[:cut])
    assert "model-1.safetensors" in failing(plan(sharded))["checkpoint weights"]


def test_a_pointer_in_the_place_of_a_file(folder):
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")
    assert "pointer of git-lfs" in failing(plan(folder))["checkpoint weights"]


def test_a_header_that_is_no_header(folder):
    (folder / "model.safetensors").write_bytes((3).to_bytes(8, "little") + b"[1]" + bytes(9))
    assert "broken header" in failing(plan(folder))["checkpoint weights"]


def test_weights_smaller_than_the_profile_says(folder):
    assert "not 234 GiB" in failing(plan(folder, weights_gib=234))["checkpoint weights"]


def test_many_problems_are_counted(sharded):
    names = {str(i): f"model-{i}.safetensors" for i in range(9)}
    (sharded / INDEX).write_text(json.dumps({"weight_map": names}))
    assert "and 4 more" in failing(plan(sharded))["checkpoint weights"]


def test_a_path_that_is_another_s_where_the_servers_run(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    relative = plan(folder.name, model_variable="AFD_CPU_E2E_MODEL")
    assert "servers run in a folder of their own" in failing(relative)["checkpoint"]


def test_a_file_of_weights_without_any(folder):
    (folder / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    assert failing(plan(folder))["checkpoint weights"] == "model.safetensors holds no tensor"
