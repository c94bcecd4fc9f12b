"""Cases side by side, and what it takes to be called alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e import comparison
from e2e.errors import InvalidEvaluation, Outcome, ProfileError, WrongAnswers
from e2e.evidence.record import CaseRecord, Claim, EvaluationRecord, RoleRecord, Sample


def record(case: str, tokens: list[int], *, strict: bool = True, gap: float = 0.0) -> CaseRecord:
    sample = Sample(
        doc_id=0,
        prompt_sha256="ab",
        question="q",
        gold="18",
        text="#### 18",
        finish_reason="stop",
        strict=strict,
        flexible=strict,
        token_ids=tokens,
        top_logprobs=[{token: -0.1 - gap, 99: -5.0} for token in tokens],
    )
    return CaseRecord(
        run_id="r",
        profile="p",
        case=case,
        started="now",
        outcome=Outcome.PASSED,
        roles=[
            RoleRecord(
                role="native",
                argv=[],
                env_set={},
                env_unset=[],
                devices=[],
                ports={},
                log="native.log",
                ready_seconds=22.0,
            )
        ],
        claims=[Claim(name="native dtype", held=True, expected="", seen="torch.float32", where="")],
        evaluation=EvaluationRecord(
            dataset="bundled",
            dataset_sha256="0",
            shots=8,
            samples_asked=1,
            required=1,
            match="strict",
            correct_strict=int(strict),
            correct_flexible=int(strict),
            samples=[sample],
        ),
    )


NATIVE = record("native", [1, 2, 3])


def test_rows_have_a_cell_for_each_case() -> None:
    rows = dict(comparison.rows([NATIVE, record("afd", [1, 2, 3], strict=False)]))
    assert rows["strict"] == ["1/1", "0/1"]
    assert rows["ready, s"] == ["22.0", "22.0"]
    assert all(len(cells) == 2 for cells in rows.values())


def test_identical_tokens_are_said_to_be() -> None:
    (line,) = comparison.answered_alike(NATIVE, record("afd", [1, 2, 3], gap=1e-6))
    assert line == "the token ids of all 1 answers are identical, largest gap 1e-06 nats"
    comparison.require("identical", [NATIVE, record("afd", [1, 2, 3])], None)


def test_other_tokens_are_named_and_refused() -> None:
    other = record("afd", [1, 7, 3], strict=False)
    lines = comparison.answered_alike(NATIVE, other)
    assert lines[:2] == [
        "1 of 1 answers have other tokens, largest gap 4.9 nats",
        "doc 0 parts at token 1",
    ]
    assert "McNemar p = 1" in lines[2]
    with pytest.raises(WrongAnswers, match="afd did not answer as native"):
        comparison.require("identical", [NATIVE, other], None)


def test_noise_is_that_of_a_second_native_run() -> None:
    second = record("native", [1, 2, 3], gap=0.01)
    comparison.require("within-noise", [NATIVE, record("afd", [1, 2, 3], gap=0.009)], second)
    with pytest.raises(WrongAnswers, match="afd did not answer"):
        comparison.require("within-noise", [NATIVE, record("afd", [1, 2, 3], gap=0.02)], second)
    with pytest.raises(InvalidEvaluation, match="no noise band"):
        comparison.require("within-noise", [NATIVE, NATIVE], None)


def test_missing_answers_are_no_agreement() -> None:
    silent = NATIVE.model_copy(update={"evaluation": None})
    assert comparison.answered_alike(NATIVE, silent) == ["no evaluation to compare"]
    with pytest.raises(InvalidEvaluation, match="has no evaluation"):
        comparison.require("identical", [NATIVE, silent], None)
    with pytest.raises(ProfileError, match="alone"):
        comparison.require("identical", [NATIVE], None)


def test_a_folder_is_a_case_or_a_run(tmp_path: Path) -> None:
    case = tmp_path / "run" / "native"
    case.mkdir(parents=True)
    (case / "evidence.json").write_text(NATIVE.model_dump_json())
    assert comparison.read_cases([case]) == comparison.read_cases([case.parent]) == [NATIVE]


def test_cases_of_a_run_come_as_they_ran(tmp_path: Path) -> None:
    for name, started in (("afd", "2026-01-01T10:05"), ("native", "2026-01-01T10:00")):
        (tmp_path / name).mkdir()
        ran = NATIVE.model_copy(update={"case": name, "started": started})
        (tmp_path / name / "evidence.json").write_text(ran.model_dump_json())
    assert [record.case for record in comparison.read_cases([tmp_path])] == ["native", "afd"]


@pytest.mark.parametrize("text", [None, "{}", "\udcff"])
def test_a_folder_without_a_record_is_named(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "evidence.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ProfileError, match=str(tmp_path)):
        comparison.read_cases([tmp_path])
