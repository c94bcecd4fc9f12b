"""Profiles that say something wrong: each mistake once, at its place, with its mend."""

from pathlib import Path

import pytest
import yaml

from e2e import profile
from e2e.errors import ProfileError

_MISTAKES = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "mistake", [pytest.param(row, id=f"{n}-{row['says'][:40]}") for n, row in enumerate(_MISTAKES)]
)
def test_one_mistake(refused, right: str, mistake: dict[str, str]) -> None:
    assert mistake["was"] in right
    text = right.replace(mistake["was"], mistake["now"], 1)
    problems = refused(text)
    assert len(problems) == 1, "\n".join(map(str, problems))
    assert mistake["says"] in str(problems[0])
    nearby = max(right.index(mistake["was"]) - 40, 0)
    before = text[: text.index(mistake["at"], nearby if mistake["at"] in text[nearby:] else 0)]
    place = before.count("\n") + 1, len(before) - before.rfind("\n")
    assert (problems[0].at.line, problems[0].at.column) == place, str(problems[0])


def test_afd_case_without_the_section(refused, right: str) -> None:
    start, end = right.index("afd:\n"), right.index("environment:\n")
    problems = refused(right[:start] + right[end:])
    assert [p.path for p in problems] == [
        ("cases", "afd-eager-2a2f", "attention"),
        ("cases", "afd-graph-dbo-2a2f", "attention"),
    ]
    assert "needs the profile's afd section" in problems[0].what


def test_all_problems_at_once_in_the_order_of_the_file(refused, right: str) -> None:
    text = right
    for old, new in (
        ("backend: gpu\n", "backend: tpu\n"),
        ("samples: 7", "samples: 7\n  samples: 8"),
        ("dp: 2, tp: 2", "dp: 2, tp: 1"),
        ("capture_size: 8", "capture_siz: 8"),
        ("max-model-len", "host"),
    ):
        text = text.replace(old, new, 1)
    problems = refused(text)
    assert [p.at for p in problems] == sorted(p.at for p in problems)
    assert [p.what.split(";")[0].split(",")[0][:30] for p in problems] == [
        "expected one of cpu",
        "the flag --host is the harness",
        "written twice",
        "EP 4 is not DP 2 x TP 1 = 2",
        "4 slots for DP 2 x TP 1 = 2 ra",
        "unknown key",
    ]


def test_the_message_is_what_an_editor_can_jump_to(write, right: str) -> None:
    file = write(right.replace("memory_gib", "memory_gb"))
    with pytest.raises(ProfileError) as caught:
        profile.load(file)
    assert caught.value.what == (
        f"{file}:6:3: hardware.memory_gb: unknown key; did you mean 'memory_gib'?"
    )
