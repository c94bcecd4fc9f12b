"""`afd-e2e prompts` and `afd-e2e score`: what they print, and what they refuse by name."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from e2e.errors import HarnessError, InvalidEvaluation, SetupMissing
from e2e.oracle import dataset, prompts
from e2e.oracle.commands import prompts_command, score_command

BUNDLED = dataset.load("bundled")


def saved(tmp_path: Path, *lines: object) -> Path:
    path = tmp_path / "responses.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def scored(path: Path) -> dict:
    (document,) = score_command("bundled", path, as_json=True)
    return json.loads(document)


def test_prompts_as_json() -> None:
    lines = [json.loads(line) for line in prompts_command("bundled", 8, "all", as_json=True)]
    built = prompts.build(BUNDLED, 8, "all")
    assert lines == [
        {"doc_id": p.doc_id, "sha256": p.sha256, "prompt": p.text, "gold": p.gold} for p in built
    ]


def test_prompts_as_text() -> None:
    head, text = prompts_command("bundled", 1, "1", as_json=False)
    (prompt,) = prompts.build(BUNDLED, 1, 1)
    assert head == f"# doc 0, sha256 {prompt.sha256}, gold 210"
    assert text == f"{prompt.text}\n"


def test_more_samples_than_there_are_is_all() -> None:
    assert len(list(prompts_command("bundled", 0, "9999", as_json=True))) == len(BUNDLED.test)


@pytest.mark.parametrize(("shots", "samples"), [(8, "few"), (8, "-1"), (-1, "7"), (8, "²")])
def test_senseless_numbers_are_refused(shots: int, samples: str) -> None:
    with pytest.raises(SetupMissing, match="--"):
        list(prompts_command("bundled", shots, samples, as_json=True))


def test_score(tmp_path: Path) -> None:
    path = saved(
        tmp_path,
        {"doc_id": 1, "text": "so 18 left\n#### 18", "model": "any"},
        {"doc_id": 0, "text": "210 cars"},
        {"doc_id": 2, "text": "none"},
    )
    assert scored(path) == {
        "n": 3,
        "strict": 1,
        "flexible": 2,
        "answers": [
            {
                "doc_id": 0,
                "strict": False,
                "flexible": True,
                "extracted": {"strict": "[invalid]", "flexible": "210"},
            },
            {
                "doc_id": 1,
                "strict": True,
                "flexible": True,
                "extracted": {"strict": "18", "flexible": "18"},
            },
            {
                "doc_id": 2,
                "strict": False,
                "flexible": False,
                "extracted": {"strict": "[invalid]", "flexible": "[invalid]"},
            },
        ],
        "invalid": [],
    }
    text = list(score_command("bundled", path, as_json=False))
    assert text[0] == "doc 0: strict wrong ([invalid]), flexible right (210)"
    assert text[-2] == "strict: 1 of 3: at least 6% with 95% confidence"


def evidence(tmp_path: Path, sha256: str = BUNDLED.sha256) -> Path:
    samples = [
        {"doc_id": 0, "text": "#### 210", "invalid": None},
        {"doc_id": 1, "text": "#### 18 and", "invalid": "truncated at 9 tokens"},
    ]
    record = {"evaluation": {"dataset": "x", "dataset_sha256": sha256, "samples": samples}}
    (tmp_path / "evidence.json").write_text(json.dumps(record))
    return tmp_path


def test_an_evidence_of_invalid_answers_has_no_score(tmp_path: Path) -> None:
    folder = evidence(tmp_path)
    text = (folder / "evidence.json").read_text().replace('"invalid": null', '"invalid": "lost"')
    (folder / "evidence.json").write_text(text)
    assert list(score_command("bundled", folder, as_json=False)) == [
        "doc 0: invalid, not scored: lost",
        "doc 1: invalid, not scored: truncated at 9 tokens",
        "no answer could be scored",
    ]


@pytest.mark.parametrize("name", ["", "evidence.json"])
def test_score_of_an_evidence(tmp_path: Path, name: str) -> None:
    document = scored(evidence(tmp_path) / name)
    assert (document["n"], document["strict"]) == (1, 1)
    assert document["invalid"] == [{"doc_id": 1, "reason": "truncated at 9 tokens"}]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            b'{"doc_id": 0, "text": "a"}\n{"doc_id": 0, "text": "a"}',
            "line 2: doc_id 0 again, first",
        ),
        (b'{"doc_id": 12, "text": "a"}', "line 1: doc_id 12 is none of the 12 questions"),
        (b'{"doc_id": -1, "text": "a"}', "doc_id -1 is none"),
        (b'{"doc_id": true, "text": "a"}', "doc_id is True, not a number"),
        (b'{"doc_id": "0", "text": "a"}', "doc_id is '0', not a number"),
        (b'{"text": "a"}', "doc_id is None, not a number"),
        (b'{"doc_id": 0}', "doc_id 0: text is None, not a text"),
        (b'{"doc_id": 0, "text": ["a"]}', "text is ['a'], not a text"),
        (b'{"doc_id": 0, "text": "\xff"}', "line 1: not UTF-8"),
        (b'{"doc_id": 0, "text": NaN}', "line 1: not JSON (NaN is no JSON value)"),
        (b'{"doc_id": 0, "text": "a", "text": "b"}', "key 'text' twice"),
        (b'\n{"doc_id": 0,', "line 2: not JSON"),
        (b"[0]", "line 1: not an object but list"),
        (b"\n \n", "no answers in it"),
    ],
)
def test_a_hostile_file_is_named(tmp_path: Path, lines: bytes, said: str) -> None:
    path = tmp_path / "responses.jsonl"
    path.write_bytes(lines)
    with pytest.raises(InvalidEvaluation) as error:
        scored(path)
    assert said in str(error.value)


def test_all_problems_at_once(tmp_path: Path) -> None:
    path = saved(tmp_path, {"doc_id": 99, "text": ""}, {"doc_id": 0}, {"doc_id": 1, "text": "1"})
    with pytest.raises(InvalidEvaluation) as error:
        scored(path)
    assert len(error.value.lines) == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        ("{", "is no evidence"),
        ("{}", "has no evaluation"),
        ('{"evaluation": {"samples": [], "dataset_sha256": "0"}}', "is not the data set bundled"),
    ],
)
def test_a_broken_evidence_is_named(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "evidence.json").write_text(content)
    with pytest.raises(HarnessError) as error:
        scored(tmp_path)
    assert said in str(error.value)


def test_half_a_surrogate_is_scored_as_any_text(tmp_path: Path) -> None:
    assert scored(saved(tmp_path, {"doc_id": 0, "text": "\ud800 #### 210"}))["strict"] == 1


def test_a_long_answer_is_scored_in_no_time(tmp_path: Path) -> None:
    path = saved(tmp_path, {"doc_id": 0, "text": "#### " + "1" * 3_000_000 + " #" * 1_000_000})
    begin = time.perf_counter()
    assert scored(path)["strict"] == 0
    assert time.perf_counter() - begin < 5
