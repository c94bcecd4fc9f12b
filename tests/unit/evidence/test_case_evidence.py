"""The record of a case: written at once, atomic, free of secrets, never green without a folder."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from e2e.errors import HarnessError, Outcome, ResidueLeft, ServerFailed, WrongAnswers
from e2e.evidence.case import CaseEvidence
from e2e.evidence.record import (
    CaseRecord,
    Check,
    Claim,
    EvaluationRecord,
    Proof,
    RoleRecord,
    Sample,
)
from e2e.evidence.secrets import redact, secret_values
from e2e.evidence.summary import summary_markdown


@pytest.fixture
def evidence(tmp_path: Path) -> CaseEvidence:
    return CaseEvidence(tmp_path / "case", "run-1", "canary-cpu", "baseline-eager")


def read(evidence: CaseEvidence) -> CaseRecord:
    return CaseRecord.model_validate_json((evidence.folder / "evidence.json").read_text())


def test_each_change_is_on_disk_at_once(evidence: CaseEvidence) -> None:
    evidence.proof(Proof(name="ports released", held=True))
    assert [proof.name for proof in read(evidence).proofs] == ["ports released"]
    assert read(evidence).outcome is None
    assert not list(evidence.folder.glob("*.partial"))


def test_a_case_without_failure_passes_and_says_so(evidence: CaseEvidence) -> None:
    assert evidence.conclude() is Outcome.PASSED
    assert read(evidence).outcome is Outcome.PASSED
    assert "canary-cpu/baseline-eager: passed" in (evidence.folder / "summary.md").read_text()


def test_what_ended_the_run_gives_the_outcome_and_hides_nothing(evidence: CaseEvidence) -> None:
    evidence.failure(ResidueLeft("port 8000 is still bound"))
    with evidence.phase("stop"):
        evidence.failure(ServerFailed("attention exited with 1 when stopped"))
    evidence.failure(ServerFailed("native exited with 3", role="native", lines=["Traceback"]))
    assert evidence.conclude() is Outcome.SERVER_FAILED
    assert [failure.what.partition(" ")[0] for failure in read(evidence).failures] == [
        "native",
        "attention",
        "port",
    ]
    summary = (evidence.folder / "summary.md").read_text()
    assert "port 8000 is still bound" in summary
    assert "native exited with 3" in summary
    assert "Traceback" in summary


def test_a_failure_carries_the_phase_it_ended(evidence: CaseEvidence) -> None:
    with pytest.raises(WrongAnswers) as caught, evidence.phase("evaluation"):
        raise WrongAnswers("6 of 7")
    evidence.failure(caught.value)
    assert read(evidence).failures[0].phase == "evaluation"
    assert [phase.name for phase in read(evidence).phases] == ["evaluation"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes to a read-only folder")
def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(HarnessError, match="cannot be made"):
        CaseEvidence(tmp_path / "case", "run-1", "p", "c")


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "case").write_text("")
    with pytest.raises(HarnessError, match="cannot be made") as caught:
        CaseEvidence(tmp_path / "case", "run-1", "p", "c")
    assert "AFD_E2E_EVIDENCE" in caught.value.mend


def test_no_case_passes_without_its_evidence(evidence: CaseEvidence) -> None:
    (evidence.folder / "evidence.json").unlink()
    evidence.folder.rmdir()
    evidence.note("lost")
    assert evidence.conclude() is Outcome.HARNESS_ERROR


@pytest.mark.parametrize(
    "token", ['hf_"quoted"value', "with|pipe|in it", "gänse\\füße", "12345678"]
)
def test_secrets_reach_neither_files_nor_the_record(token: str, tmp_path: Path) -> None:
    """The record is what terminals and test reports show; cells of the summary are cut."""
    secrets = secret_values({"HF_TOKEN": token})
    evidence = CaseEvidence(tmp_path / "c", "r", "p", "c", secrets=secrets)
    at_the_cut = "x" * 155 + token
    evidence.failure(ServerFailed(f"died of {token}", lines=[f"using token {token}"]))
    evidence.claim(Claim(name="scrubbed", held=False, expected="", seen=at_the_cut, where=token))
    evidence.proof(Proof(name="gone", held=False, found=[token], detail={"a": [{"b": token}]}))
    evidence.note(token)
    evidence.conclude()
    told = [path.read_text() for path in evidence.folder.iterdir()] + [repr(evidence.record)]
    for text in told:
        for form in (token, json.dumps(token)[1:-1], token.replace("|", "\\|"), repr(token)):
            assert form not in text
    assert "xx[re" in (evidence.folder / "summary.md").read_text()


def test_the_summary_is_what_the_record_on_disk_alone_says(evidence: CaseEvidence) -> None:
    evidence.evaluation(evaluation_of(sample_of(fingerprint_distance=float("inf"))))
    evidence.conclude()
    assert summary_markdown(read(evidence)) == (evidence.folder / "summary.md").read_text()
    assert "| inf |" in summary_markdown(read(evidence))


@pytest.mark.parametrize(
    "name",
    [*("HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "VLLM_API_KEY", "PASSWORD"), "DB_PASS", "OPENAI_KEY"],
)
def test_secret_names_are_known(name: str) -> None:
    assert secret_values({name: "0a1b2c3d", "PATH": "/usr/bin:/bin"}) == ["0a1b2c3d"]


@pytest.mark.parametrize(
    "url", ["http://me:s3cret!x@proxy:3128", "https://h/v1?a=1&api_key=s3cret!x"]
)
def test_secrets_in_urls_are_known(url: str) -> None:
    assert secret_values({"HTTP_PROXY": url}) == ["s3cret!x"]


def test_numbers_that_are_no_secrets_stay() -> None:
    assert secret_values({"MAX_TOKENS": "1000000"}) == []


def test_the_longer_secret_goes_first() -> None:
    values = secret_values({"A_TOKEN": "abcdef", "B_TOKEN": "abcdefgh"})
    assert redact("abcdefgh", values) == "[redacted]"


def sample_of(**changes: Any) -> Sample:
    sample = Sample(
        doc_id=0,
        prompt_sha256="0",
        question="q",
        gold="18",
        text="#### 17 | pipe\nline",
        finish_reason="stop",
        strict=False,
        flexible=False,
    )
    return sample.model_copy(update=changes)


def evaluation_of(sample: Sample) -> EvaluationRecord:
    return EvaluationRecord(
        dataset="bundled",
        dataset_sha256="0",
        shots=8,
        samples_asked=1,
        required=1,
        match="strict",
        correct_strict=0,
        correct_flexible=0,
        lowered_from=7,
        checks=[Check(name="number", held=False, required="1 of 1", seen="0 of 1")],
        samples=[sample],
    )


def test_the_summary_marks_what_is_not_the_profiles_verdict(evidence: CaseEvidence) -> None:
    evidence.evaluation(evaluation_of(sample_of()))
    evidence.conclude()
    summary = (evidence.folder / "summary.md").read_text()
    assert "Not the profile's verdict" in summary
    assert "#### 17 \\| pipe line" in summary


def test_large_numbers_of_the_summary_are_written_out(evidence: CaseEvidence) -> None:
    evidence.role(
        RoleRecord(
            role="native",
            argv=[],
            env_set={},
            env_unset=[],
            devices=[],
            ports={},
            log="native.log",
            peak_memory_mib=15528.4,
        )
    )
    assert "| 15528 |" in summary_markdown(evidence.record)


def test_a_path_that_is_no_unicode_is_recorded_as_it_was_written(tmp_path: Path) -> None:
    """As Python reads `ünï` in a locale without UTF-8, a stray byte, and half a surrogate pair."""
    evidence = CaseEvidence(tmp_path / "c", "r", "p", "c")
    names = ["\udcc3\udcbcn\udcc3\udcaf", "x\udcff", "y\ud800"]
    evidence.failure(ServerFailed("exited", log=Path(names[0]), lines=names))
    evidence.note(names[1])
    evidence.conclude()
    record = CaseRecord.model_validate_json((tmp_path / "c" / "evidence.json").read_bytes())
    assert record.failures[0].log == "ünï"
    assert record.failures[0].lines == ["ünï", "x\N{REPLACEMENT CHARACTER}", "y?"]
