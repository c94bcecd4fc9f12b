"""Environments that cannot be used: each refused at once, by the variable's name, with its mend."""

import pwd

import pytest

from e2e import cli, gate, profile, run
from e2e.errors import SetupMissing

_LARGE = {
    "AFD_E2E_BACKEND": "gpu",
    "AFD_E2E_LARGE_MODEL": "1",
    "AFD_GPU_E2E_MODEL": "/m",
    "AFD_E2E_DEVICES": "0,2,4,6,1,3,5,7",
}
_OPT_IN = "set AFD_E2E_BACKEND=gpu AFD_E2E_LARGE_MODEL=1 to opt in"
_LIST = "list 8 different devices in AFD_E2E_DEVICES, in the order of the slots: 0,1,2,3,4,5,6,7"
_PORT = "set AFD_E2E_PORT_BASE to the first of 7 free ports in a row, or unset it"
_LIMIT = "set AFD_GSM8K_LIMIT to a number of at least 1, or all"
_SHARE = "the profile asks for 7 of 7; raise that, or unset AFD_GSM8K_THRESHOLD"
_DEVICES = [
    ("0,1,2", "lists 3 devices, qwen3_5-122b-8gpu needs 8"),
    ("0,1,2,3,4,5,6,7,8", "lists 9 devices, qwen3_5-122b-8gpu needs 8"),
    ("0,1,2,3,4,5,6,6", "lists a device twice (device 6)"),
    ("0,1,2,3,4,5,6,", "entry 8 of"),
    ("0,1,,3,4,5,6,7", "entry 3 of"),
    ("0 1 2 3 4 5 6 7", "entry 1 of"),
    ("0-7", "entry 1 of"),
    ("all", "entry 1 of"),
    ("-1,1,2,3,4,5,6,7", "entry 1 of"),
    ("01,1,2,3,4,5,6,7", "entry 1 of"),
    ("0,1,2,3,4,5,6,gpu7", "entry 8 of"),
    ("0,1,2,3,4,5,6,GPU-", "entry 8 of"),
    ("0,1,2,3,4,5,6,GPU-xyz", "entry 8 of"),
    ("\u0663,1,2,3,4,5,6,7", "entry 1 of"),
]
_PORTS = ["http", "0", "-1", "80", "65530", "70000", "8000.5", "1e4", "8_000", "+20000", "9" * 5000]
_PORTS += ["\u0663\u0663\u0663\u0663", "0x1F40", "8000,8001"]
_LIMITS = ["0", "-1", "x", "7.5", "ALL", "\u0661", "9" * 5000, "1e3", "7 8"]
_MISSPELT = {
    "AFD_E2E_DEVICE": "AFD_E2E_DEVICES",
    "AFD_E2E_PORTBASE": "AFD_E2E_PORT_BASE",
    "AFD_GSM8K_TRESHOLD": "AFD_GSM8K_THRESHOLD",
    "AFD_GPU_E2E_VLLM_BINARY": "AFD_GPU_E2E_VLLM_BIN",
    "AFD_E2E_BACKENDS": "AFD_E2E_BACKEND",
}
# Read by the plugin's own suites, or by another profile.
_NOT_OURS = ["AFD_E2E_API_PORT_BASE", "AFD_E2E_RUN_ID", "AFD_E2E_GSM8K_OUTPUT", "AFD_E2E_VLLM"]
_NOT_OURS += ["AFD_NPU_E2E_MODEL", "AFD_GPU_E2E_CANARY_MODEL", "AFD_GPU_E2E_GPUS", "AFD_E2E_EXTRAS"]
_SHARES = ["2", "-1", "nan", "inf", "x", "100%", "0,9"]


def _rows() -> list[tuple[dict[str, str], str, str]]:
    rows = [
        ({"AFD_E2E_BACKEND": value}, f"AFD_E2E_BACKEND is {value!r}", _OPT_IN)
        for value in ("cpu", "GPU", "gpu ", "npu")
    ]
    rows += [({"AFD_E2E_BACKEND": ""}, "AFD_E2E_BACKEND=gpu is not set", _OPT_IN)]
    rows += [
        ({"AFD_E2E_LARGE_MODEL": value}, f"AFD_E2E_LARGE_MODEL is {value!r}", _OPT_IN)
        for value in ("true", "yes", "0", "2")
    ]
    rows += [({"AFD_GPU_E2E_MODEL": value}, "AFD_GPU_E2E_MODEL is empty", _OPT_IN) for value in " "]
    rows += [({"AFD_E2E_DEVICES": value}, what, _LIST) for value, what in _DEVICES]
    rows += [({"AFD_E2E_DEVICES": " "}, "AFD_E2E_DEVICES is empty", _OPT_IN)]
    rows += [
        ({"AFD_E2E_PORT_BASE": value}, f"AFD_E2E_PORT_BASE={value!r} is not a port", _PORT)
        for value in _PORTS
    ]
    rows += [
        ({"AFD_GSM8K_LIMIT": value}, f"AFD_GSM8K_LIMIT={value!r} is not a number", _LIMIT)
        for value in _LIMITS
    ]
    rows += [
        ({"AFD_GSM8K_THRESHOLD": value}, f"AFD_GSM8K_THRESHOLD={value!r} is not a share", _SHARE)
        for value in _SHARES
    ]
    rows += [({"AFD_GSM8K_THRESHOLD": "0.5"}, "would lower 7 of 7 answers to 4", _SHARE)]
    rows += [
        ({name: "1"}, f"{name} is set, and is not read; did you mean {meant}?", "or unset it")
        for name, meant in _MISSPELT.items()
    ]
    shown = "AFD_E2E_DEVICES is not within CUDA_VISIBLE_DEVICES"
    rows += [
        ({"CUDA_VISIBLE_DEVICES": value}, shown, "list devices that it shows, or unset it")
        for value in ("", "0,1", "-1", "4,5,6,7")
    ]
    return rows


@pytest.mark.parametrize(("change", "what", "mend"), _rows())
def test_refused_by_name(change: dict[str, str], what: str, mend: str) -> None:
    with pytest.raises(SetupMissing) as caught:
        gate.require(profile.load(profile.find("qwen3_5-122b-8gpu")), {**_LARGE, **change})
    assert what in caught.value.what
    assert mend in caught.value.mend
    assert caught.value.outcome.exit_code == 3


def test_variables_of_others_are_left_alone() -> None:
    others = dict.fromkeys(_NOT_OURS, "1")
    gate.require(profile.load(profile.find("qwen3_5-122b-8gpu")), {**_LARGE, **others})


def test_plan_names_all_that_it_cannot_use_and_needs_none(monkeypatch, capsys) -> None:
    for name in (*_LARGE, "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    assert cli.main(["plan", "qwen3_5-122b-8gpu"]) == 0
    for name in ("AFD_E2E_DEVICES", "AFD_E2E_PORT_BASE", "AFD_GSM8K_LIMIT", "AFD_E2E_DEVICE"):
        monkeypatch.setenv(name, "x")
    capsys.readouterr()
    assert cli.main(["plan", "qwen3_5-122b-8gpu"]) == 3
    said = capsys.readouterr().err
    for name in ("AFD_E2E_DEVICES='x'", "AFD_E2E_PORT_BASE='x'", "AFD_GSM8K_LIMIT='x'"):
        assert name in said
    assert "did you mean AFD_E2E_DEVICES?" in said


def test_plan_of_all_prints_those_that_the_environment_fits(monkeypatch, capsys) -> None:
    monkeypatch.setenv("AFD_E2E_DEVICES", _LARGE["AFD_E2E_DEVICES"])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert cli.main(["plan"]) == 3
    said = capsys.readouterr()
    assert "# qwen3_5-122b-8gpu/afd-eager-4a4f" in said.out
    assert "# canary-8gpu/baseline-dp8" in said.out
    assert "lists 8 devices, qwen3-30b-4gpu needs 4" in said.err


@pytest.fixture
def opted_in(monkeypatch) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", "AFD_E2E_GSM8K", "AFD_GPU_E2E_FP8_MODEL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in _LARGE.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("name", "value", "seen"),
    [
        ("AFD_GPU_E2E_MODEL", "/nowhere", "AFD_GPU_E2E_MODEL=/nowhere is no folder"),
        ("AFD_GPU_E2E_MODEL", "Qwen/Qwen3.5-122B-A10B", "AFD_GPU_E2E_MODEL=Qwen/Qwen3.5-122B-A10B"),
        ("AFD_GPU_E2E_VLLM_BIN", "/nowhere", "name your vLLM in AFD_GPU_E2E_VLLM_BIN"),
        ("AFD_GPU_E2E_VLLM_BIN", "/", "name your vLLM in AFD_GPU_E2E_VLLM_BIN"),
        ("AFD_GPU_E2E_VLLM_BIN", " ", "name your vLLM in AFD_GPU_E2E_VLLM_BIN"),
    ],
)
def test_found_before_a_data_set_is_asked_for(
    opted_in, monkeypatch, tmp_path, capsys, name: str, value: str, seen: str
) -> None:
    """The hub would be asked for half a minute before the word that matters."""
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(run.oracle, "questions", lambda plan: pytest.fail("asked first"))
    arguments = ["run", "qwen3_5-122b-8gpu", "--case", "baseline-eager"]
    assert cli.main([*arguments, "--evidence", str(tmp_path)]) == 3
    assert seen in " ".join(capsys.readouterr().out.split())


def test_found_before_a_canary_is_built(monkeypatch, tmp_path, capsys) -> None:
    for name in ("AFD_E2E_BACKEND", "AFD_GPU_E2E_CANARY_MODEL", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AFD_E2E_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("AFD_GPU_E2E_VLLM_BIN", "/nowhere")
    arguments = ["run", "canary-2gpu", "--case", "baseline-eager"]
    assert cli.main([*arguments, "--evidence", str(tmp_path)]) == 3
    assert "'/nowhere' is not there" in " ".join(capsys.readouterr().out.split())
    assert not (tmp_path / "cache").exists()


def test_evidence_that_cannot_be_written(opted_in, tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("")
    arguments = ["run", "qwen3_5-122b-8gpu", "--case", "baseline-eager"]
    assert cli.main([*arguments, "--evidence", str(tmp_path / "file")]) == 3
    assert "choose another with --evidence or AFD_E2E_EVIDENCE" in capsys.readouterr().err


def test_a_user_without_a_home_is_told_where_a_canary_can_be_kept(monkeypatch, capsys):
    """As an arbitrary uid in a container."""
    for name in ("HOME", "XDG_CACHE_HOME", "AFD_E2E_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", dict[int, str]().__getitem__)
    assert cli.main(["plan", "canary-cpu"]) == 3
    assert "set HOME, or AFD_E2E_CACHE to a folder" in capsys.readouterr().err
