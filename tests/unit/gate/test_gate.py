"""Who is opted in by which variables, and what is missing then."""

import pytest

from e2e import gate, profile
from e2e.errors import SetupMissing

_NAMES = profile.names()
_SMALL = {"deepseek-v2-lite-4gpu", "qwen3-30b-4gpu", "qwen3_6-35b-4gpu"}
_GPU = {"AFD_E2E_BACKEND": "gpu"}
_LARGE = {**_GPU, "AFD_E2E_LARGE_MODEL": "1", "AFD_E2E_DEVICES": "0,2,4,6,1,3,5,7"}


def _load(name: str) -> profile.Profile:
    return profile.load(profile.find(name))


@pytest.mark.parametrize(
    ("variables", "opted_in"),
    [
        ({}, set()),
        ({"AFD_E2E_BACKEND": "cpu"}, {"canary-cpu"}),
        ({"AFD_E2E_BACKEND": "npu"}, set()),
        (_GPU, _SMALL),
        ({**_GPU, "AFD_GPU_E2E_MODEL": "/m"}, _SMALL),
        (_LARGE, {"qwen3_5-122b-8gpu"}),
        ({**_LARGE, "AFD_GPU_E2E_MODEL": "/m"}, {"qwen3_5-122b-8gpu"}),
        ({**_LARGE, "AFD_GPU_E2E_FP8_MODEL": "/m"}, {"qwen3_5-122b-fp8-4gpu"}),
        ({**_GPU, "AFD_E2E_LARGE_MODEL": "0"}, _SMALL),
        ({**_GPU, "AFD_E2E_CANARY": "2gpu"}, {"canary-2gpu"}),
        ({**_GPU, "AFD_E2E_CANARY": "4gpu"}, {"canary-4gpu"}),
        ({**_GPU, "AFD_E2E_CANARY": "8gpu"}, {"canary-8gpu"}),
        ({**_LARGE, "AFD_E2E_CANARY": "8gpu"}, {"canary-8gpu"}),
        ({"AFD_E2E_LARGE_MODEL": "1", "AFD_E2E_CANARY": "8gpu"}, set()),
    ],
)
def test_one_hardware_does_not_opt_into_another(
    variables: dict[str, str], opted_in: set[str]
) -> None:
    found = {name for name in _NAMES if not gate.missing_opt_in(_load(name), variables)}
    assert found == opted_in


@pytest.mark.parametrize("name", _NAMES)
def test_the_line_says_what_opts_in(name: str) -> None:
    chosen = _load(name)
    line = gate.opt_in_line(chosen)
    assert "\n" not in line
    for variable, value in chosen.gate.opt_in.items():
        assert f"{variable}={value}" in line
    for phrase in gate.missing_opt_in(chosen, {}):
        assert phrase in line


def test_the_line_of_the_reference_case() -> None:
    assert gate.opt_in_line(_load("qwen3_5-122b-8gpu")) == (
        "set AFD_E2E_BACKEND=gpu AFD_E2E_LARGE_MODEL=1 to opt in, with AFD_GPU_E2E_MODEL=... "
        "AFD_E2E_DEVICES=... (and leave AFD_GPU_E2E_FP8_MODEL, AFD_E2E_CANARY unset)"
    )


def _missing(name: str, variables: dict[str, str]) -> str:
    with pytest.raises(SetupMissing) as caught:
        gate.require(_load(name), variables)
    assert caught.value.mend.startswith(gate.opt_in_line(_load(name)))
    return caught.value.what


def test_everything_missing_is_named_at_once() -> None:
    assert _missing("qwen3_5-122b-8gpu", {}) == (
        "qwen3_5-122b-8gpu: AFD_E2E_BACKEND=gpu is not set; AFD_E2E_LARGE_MODEL=1 is not set; "
        "AFD_GPU_E2E_MODEL is not set; AFD_E2E_DEVICES is not set"
    )


def test_everything_wrong_is_named_at_once() -> None:
    variables = {
        "AFD_E2E_BACKEND": "cpu",
        "AFD_E2E_LARGE_MODEL": "yes",
        "AFD_GPU_E2E_MODEL": " ",
        "AFD_E2E_DEVICES": "0,0",
        "AFD_E2E_PORT_BASE": "1",
        "AFD_GSM8K_LIMIT": "few",
        "AFD_GSM8K_THRESHOLD": "0.5",
    }
    what = _missing("qwen3_5-122b-8gpu", variables)
    for words in (
        "AFD_E2E_BACKEND is 'cpu', and this profile takes 'gpu'",
        "AFD_E2E_LARGE_MODEL is 'yes', and this profile takes '1'",
        "AFD_GPU_E2E_MODEL is empty",
        "AFD_E2E_DEVICES='0,0' lists a device twice (device 0)",
        "AFD_E2E_PORT_BASE='1' is not a port",
        "AFD_GSM8K_LIMIT='few' is not a number",
        "AFD_GSM8K_THRESHOLD='0.5' would lower 7 of 7 answers to 4",
    ):
        assert what.count(words) == 1, what


def test_an_empty_device_list_is_named_once() -> None:
    variables = {**_LARGE, "AFD_GPU_E2E_MODEL": "/m", "AFD_E2E_DEVICES": ""}
    assert _missing("qwen3_5-122b-8gpu", variables) == "qwen3_5-122b-8gpu: AFD_E2E_DEVICES is empty"


def test_nothing_missing() -> None:
    gate.require(_load("qwen3_5-122b-8gpu"), {**_LARGE, "AFD_GPU_E2E_MODEL": "/m"})
    gate.require(_load("canary-cpu"), {"AFD_E2E_BACKEND": "cpu"})
    gate.require(_load("deepseek-v2-lite-4gpu"), {**_GPU, "AFD_GPU_E2E_MODEL": "/m"})


def test_a_profile_that_is_named_is_wanted_whatever_else_is_set() -> None:
    variables = {**_LARGE, "AFD_GPU_E2E_MODEL": "/m", "AFD_GPU_E2E_FP8_MODEL": "/fp8"}
    assert gate.missing_opt_in(_load("qwen3_5-122b-8gpu"), variables)
    gate.require(_load("qwen3_5-122b-8gpu"), variables)
