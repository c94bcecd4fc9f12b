import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from e2e.reference_afd import ragged  # noqa: E402

HERE = Path(__file__).parent
REPOSITORY = Path(__file__).parents[3]


def test_collectives_over_ranks_of_different_sizes(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    ranks = [
        subprocess.Popen(
            [sys.executable, str(HERE / "ragged_rank.py"), str(rank), str(tmp_path)],
            env=environment,
        )
        for rank in range(2)
    ]
    try:
        assert [rank.wait(60) for rank in ranks] == [0, 0]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    seen = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    assert [gathered for gathered, _, _ in seen] == [[[1, 1], [1, 1], [1, 1], [2, 2]]] * 2
    assert [scattered for _, scattered, _ in seen] == [[[0, 3], [6, 9], [12, 15]], [[18, 21]]]
    assert {dtype for _, _, dtype in seen} == {"torch.bfloat16"}


def test_another_ranks_experts_weigh_nothing() -> None:
    second_of_two = torch.tensor([-1, -1, 0, 1])
    ids, weights = ragged.to_local(
        torch.tensor([[3, 0], [2, 3]], dtype=torch.int32),
        torch.tensor([[0.7, 0.3], [0.6, 0.4]]),
        second_of_two,
    )
    assert ids.tolist() == [[1, 0], [0, 1]]
    assert ids.dtype == torch.int32
    assert torch.equal(weights, torch.tensor([[0.7, 0.0], [0.6, 0.4]]))
