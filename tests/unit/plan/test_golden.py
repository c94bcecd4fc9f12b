"""No change alters a command, an environment or a check unnoticed.

`AFD_E2E_WRITE_GOLDEN=1 pytest tests/unit/plan/test_golden.py` writes the plans anew; what has
changed in them is then to be read like code.
"""

import json
import os
from pathlib import Path

import pytest

from e2e import plan_text, profile
from e2e.plan import plan_case, plan_performance

_GOLDEN = Path(__file__).parent / "golden"
_REFERENCE_ORDER = "0,2,4,6,1,3,5,7"


def _plans(name: str) -> dict[str, object]:
    chosen = profile.load(profile.find(name))
    count = chosen.hardware.devices
    variables = {
        chosen.model.variable: "/models/checkpoint",
        "AFD_E2E_DEVICES": _REFERENCE_ORDER if count == 8 else ",".join(map(str, range(count))),
        "AFD_BENCHMARK_FORCE_LB_TOPN_PER_RANK": "2",
        "AFD_BENCHMARK_ANYTHING": "1",
    }
    plans = [plan_case(chosen, case, variables, None) for case in chosen.cases]
    documents: dict[str, object] = {plan.case: plan_text.as_json(plan) for plan in plans}
    if chosen.performance is not None:
        documents |= {
            measurement.deployment.case: plan_text.measurement_as_json(measurement)
            for measurement in plan_performance(chosen, variables, None)
        }
    return documents


@pytest.mark.parametrize("name", profile.names())
def test_plans_are_as_they_were(name: str) -> None:
    file = _GOLDEN / f"{name}.json"
    text = json.dumps(_plans(name), indent=1) + "\n"
    if os.environ.get("AFD_E2E_WRITE_GOLDEN") == "1":
        file.write_text(text, encoding="utf-8")
        pytest.skip(f"{file.name} is written: read what has changed")
    assert json.loads(file.read_text(encoding="utf-8")) == json.loads(text)


def test_every_file_is_of_a_profile() -> None:
    assert {file.stem for file in _GOLDEN.iterdir()} == set(profile.names())
