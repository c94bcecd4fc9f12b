"""What a plan takes from the environment: each variable used as it is meant, or refused by name."""

import pytest

from e2e.errors import Outcome, SetupMissing

_LARGE = "qwen3_5-122b-8gpu/afd-eager-4a4f"
_SMALL = "qwen3-30b-4gpu/baseline-graph"
_UUIDS = "GPU-1a2b3c4d-0000-1111-2222-333344445555,MIG-7f-1,2,3"


def _visible(case) -> list[str]:
    return [role.env_set["CUDA_VISIBLE_DEVICES"] for role in case.roles]


def test_slots_are_devices_in_the_order_listed(plan) -> None:
    case = plan(_LARGE, AFD_E2E_DEVICES=" 0,2,4,6, 1,3,5,7 ")
    assert _visible(case) == ["1,3,5,7", "0,2,4,6"]
    assert [role.devices for role in case.roles] == [tuple("1357"), tuple("0246")]


def test_without_a_list_slot_n_is_device_n(plan) -> None:
    assert _visible(plan(_LARGE)) == ["4,5,6,7", "0,1,2,3"]


def test_uuids_and_mig_ids(plan) -> None:
    assert _visible(plan(_SMALL, AFD_E2E_DEVICES=_UUIDS)) == [_UUIDS]


def test_indices_count_within_what_is_visible(plan) -> None:
    shown = "7,6,5,4,3"
    assert _visible(plan(_SMALL, CUDA_VISIBLE_DEVICES=shown)) == ["7,6,5,4"]
    case = plan(_SMALL, CUDA_VISIBLE_DEVICES=shown, AFD_E2E_DEVICES="4,0,1,2")
    assert _visible(case) == ["3,7,6,5"]


def test_uuids_within_visible_uuids(plan) -> None:
    shown = "GPU-a,GPU-b,GPU-c,GPU-d,GPU-e"
    case = plan(_SMALL, CUDA_VISIBLE_DEVICES=shown, AFD_E2E_DEVICES="GPU-e,GPU-a,1,2")
    assert _visible(case) == ["GPU-e,GPU-a,GPU-b,GPU-c"]


@pytest.mark.parametrize(
    ("variables", "what"),
    [
        ({"AFD_E2E_DEVICES": ""}, "AFD_E2E_DEVICES='' lists 0 devices"),
        ({"AFD_E2E_DEVICES": " "}, "AFD_E2E_DEVICES=' ' lists 0 devices"),
        ({"AFD_E2E_DEVICES": "0"}, "lists 1 device, qwen3-30b-4gpu needs 4"),
        ({"AFD_E2E_DEVICES": "0,1,2"}, "lists 3 devices, qwen3-30b-4gpu needs 4"),
        ({"AFD_E2E_DEVICES": "0,1,2,3,4"}, "lists 5 devices, qwen3-30b-4gpu needs 4"),
        ({"AFD_E2E_DEVICES": "0,1,1,3"}, "lists a device twice (device 1)"),
        ({"AFD_E2E_DEVICES": "0,1,2,"}, "entry 4 of AFD_E2E_DEVICES"),
        ({"AFD_E2E_DEVICES": "0,,2,3"}, "entry 2 of AFD_E2E_DEVICES"),
        ({"AFD_E2E_DEVICES": "0;1;2;3"}, "is not an index, a UUID or a MIG id"),
        ({"AFD_E2E_DEVICES": "0,1,2,-1"}, "entry 4 of AFD_E2E_DEVICES"),
        ({"AFD_E2E_DEVICES": "00,1,2,3"}, "entry 1 of AFD_E2E_DEVICES"),
        ({"AFD_E2E_DEVICES": "cuda:0,1,2,3"}, "entry 1 of AFD_E2E_DEVICES"),
        ({"CUDA_VISIBLE_DEVICES": ""}, "CUDA_VISIBLE_DEVICES shows 0 devices"),
        ({"CUDA_VISIBLE_DEVICES": "0,1,-1,2,3"}, "CUDA_VISIBLE_DEVICES shows 2 devices"),
        (
            {"CUDA_VISIBLE_DEVICES": "4,5,6,7", "AFD_E2E_DEVICES": "0,1,2,4"},
            "device 4 of AFD_E2E_DEVICES is not within CUDA_VISIBLE_DEVICES='4,5,6,7'",
        ),
        (
            {"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b,GPU-c,GPU-d", "AFD_E2E_DEVICES": "0,1,2,GPU-e"},
            "device GPU-e of AFD_E2E_DEVICES is not within",
        ),
        ({"AFD_E2E_PORT_BASE": "http"}, "AFD_E2E_PORT_BASE='http' is not a port"),
        ({"AFD_E2E_PORT_BASE": "80"}, "AFD_E2E_PORT_BASE='80' is not a port from 1024 to"),
        ({"AFD_E2E_PORT_BASE": "65535"}, "AFD_E2E_PORT_BASE='65535' is not a port"),
        ({"AFD_E2E_PORT_BASE": "-1"}, "AFD_E2E_PORT_BASE='-1' is not a port"),
        ({"AFD_E2E_PORT_BASE": "8000.5"}, "AFD_E2E_PORT_BASE='8000.5' is not a port"),
        ({"AFD_GSM8K_LIMIT": "0"}, "AFD_GSM8K_LIMIT='0' is not a number of samples"),
        ({"AFD_GSM8K_LIMIT": "-3"}, "AFD_GSM8K_LIMIT='-3' is not a number of samples"),
        ({"AFD_GSM8K_LIMIT": "most"}, "AFD_GSM8K_LIMIT='most' is not a number of samples"),
        ({"AFD_GSM8K_THRESHOLD": "0.1"}, "='0.1' would lower 2 of 7 answers to 1"),
        ({"AFD_GSM8K_THRESHOLD": "1.1"}, "AFD_GSM8K_THRESHOLD='1.1' is not a share from"),
        ({"AFD_GSM8K_THRESHOLD": "high"}, "AFD_GSM8K_THRESHOLD='high' is not a share from"),
        ({"AFD_GSM8K_THRESHOLD": "nan"}, "AFD_GSM8K_THRESHOLD='nan' is not a share from"),
    ],
)
def test_refused_by_name(plan, variables: dict[str, str], what: str) -> None:
    with pytest.raises(SetupMissing) as caught:
        plan(_SMALL, **variables)
    assert what in str(caught.value)
    assert caught.value.mend
    assert caught.value.outcome is Outcome.SETUP_MISSING


def test_devices_are_no_matter_on_a_cpu(plan) -> None:
    case = plan("canary-cpu/baseline-eager", AFD_E2E_DEVICES="nonsense", CUDA_VISIBLE_DEVICES="")
    assert case.devices == ()
    assert "CUDA_VISIBLE_DEVICES" not in case.roles[0].env_set


def test_port_base_moves_every_port(plan) -> None:
    case = plan(_LARGE, AFD_E2E_PORT_BASE="20000")
    assert sorted(case.ports) == list(range(20000, 20007))
    assert case.afd is not None
    assert case.afd.port == 20002
    assert '"port":20002,' in " ".join(case.roles[0].argv)
    assert sorted(plan(_LARGE).ports) == [1239, 1240, 1241, 1242, 1243, 8000, 8001]


def test_canaries_have_ports_of_their_own(plan) -> None:
    ids = ["canary-2gpu/afd-eager-1a1f", "canary-4gpu/afd-eager-2a2f", "canary-8gpu/afd-eager-4a4f"]
    ports = [port for id_ in ids for port in plan(id_).ports]
    assert len(ports) == len(set(ports))


def test_server_executable(plan) -> None:
    gpu, cpu = "AFD_GPU_E2E_VLLM_BIN", "AFD_CPU_E2E_VLLM_BIN"
    both = {gpu: "/venv/bin/vllm", cpu: "./vllm"}
    assert plan(_SMALL, **both).roles[0].argv[0] == "/venv/bin/vllm"
    assert plan("canary-cpu/baseline-eager", **both).roles[0].argv[0] == "./vllm"
    assert plan(_SMALL, **{gpu: ""}).roles[0].argv[0] == "vllm"


def test_model_is_the_variables_or_the_canary_or_unknown(plan) -> None:
    id_ = "canary-cpu/baseline-eager"
    assert plan(id_, "/cache/canary", AFD_CPU_E2E_MODEL="/mine").model == "/mine"
    assert plan(id_, "/cache/canary").model == "/cache/canary"
    assert plan(id_).model == plan(id_).roles[0].argv[2] == "$AFD_CPU_E2E_MODEL"


@pytest.mark.parametrize(("limit", "asked"), [("7", 24), ("24", 24), ("30", 30), ("all", "all")])
def test_overlap_is_not_left_to_fewer_samples(plan, limit: str, asked: object) -> None:
    evaluation = plan("qwen3-30b-4gpu/afd-graph-dbo-2a1f", AFD_GSM8K_LIMIT=limit).evaluation
    assert (evaluation.samples, evaluation.lowered_from) == (asked, None)


def test_fewer_samples_are_marked(plan) -> None:
    evaluation = plan(_LARGE, AFD_GSM8K_LIMIT="3").evaluation
    assert (evaluation.samples, evaluation.required, evaluation.lowered_from) == (3, 3, 7)
    evaluation = plan(_SMALL, AFD_GSM8K_LIMIT="3").evaluation
    assert (evaluation.samples, evaluation.required, evaluation.lowered_from) == (3, 1, 7)


@pytest.mark.parametrize(("limit", "required"), [("7", 2), ("8", 3), ("100", 27)])
def test_more_samples_ask_for_the_larger_share(plan, limit: str, required: int) -> None:
    evaluation = plan(_SMALL, AFD_GSM8K_LIMIT=limit).evaluation
    assert (evaluation.samples, evaluation.required) == (int(limit), required)
    assert evaluation.lowered_from is None


def test_all_samples_ask_for_a_share_of_what_there_is(plan) -> None:
    for id_ in (_SMALL, _LARGE):
        evaluation = plan(id_, AFD_GSM8K_LIMIT="all").evaluation
        assert evaluation.samples == "all"
        assert evaluation.required_of(1319) == 357


def test_a_canary_has_learnt_no_more(plan) -> None:
    for limit in ("8", "all"):
        with pytest.raises(SetupMissing, match="the canary has learnt 7 answers"):
            plan("canary-cpu/baseline-eager", AFD_GSM8K_LIMIT=limit)
    own = plan("canary-cpu/baseline-eager", AFD_GSM8K_LIMIT="8", AFD_CPU_E2E_MODEL="/mine")
    assert own.evaluation.samples == 8


@pytest.mark.parametrize(("share", "required"), [("0.3", 3), ("0.5", 4), ("1", 7)])
def test_threshold_raises(plan, share: str, required: int) -> None:
    assert plan(_SMALL, AFD_GSM8K_THRESHOLD=share).evaluation.required == required


def test_threshold_of_the_suites_is_not_below_them(plan) -> None:
    """0.27 of 7 is less than 2 of 7, and asks for the same two answers."""
    assert plan(_SMALL, AFD_GSM8K_THRESHOLD="0.27").evaluation.required == 2


def test_proxies_are_kept_from_loopback(plan) -> None:
    for name in ("HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        env_set = plan(_SMALL, **{name: "http://proxy:1", "no_proxy": "intra"}).roles[0].env_set
        assert env_set["NO_PROXY"] == env_set["no_proxy"] == "intra,127.0.0.1,localhost,::1"
    assert "NO_PROXY" not in plan(_SMALL).roles[0].env_set


def test_the_harness_environment_is_not_looked_at(plan, monkeypatch) -> None:
    before = plan(_LARGE)
    for name in ("AFD_E2E_DEVICES", "AFD_E2E_PORT_BASE", "AFD_GSM8K_LIMIT", "HTTP_PROXY"):
        monkeypatch.setenv(name, "nonsense")
    assert plan(_LARGE) == before
