"""A test of your own: take `deployment`, talk to it, and the same proofs run after it."""

import json
import urllib.request

import pytest


@pytest.mark.afd_case("canary-cpu/baseline-eager")
def test_served_model_is_listed(deployment) -> None:
    endpoint = deployment.endpoint
    request = urllib.request.Request(
        f"{endpoint.base_url}/v1/models", headers={"Authorization": f"Bearer {endpoint.api_key}"}
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=10) as reply:
        listed = [model["id"] for model in json.load(reply)["data"]]
    assert listed == [endpoint.served_name]
