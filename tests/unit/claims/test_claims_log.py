"""A log is read in a fixed amount of memory, whatever is in it."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

from e2e.claims import log

MARK = b"(APIServer pid=7) INFO non-default args: {'a': 1, 'b': {'c': [2, 3]}, 'd': 'x, y'}"


def write(path: Path, *parts: bytes) -> Path:
    path.write_bytes(b"\n".join(parts) + b"\n")
    return path


def test_lines_are_numbered_and_named(tmp_path):
    facts = log.read(write(tmp_path / "native.log", b"one", b"two", MARK))
    assert facts.where("arguments") == "native.log, line 3"
    line = facts.first("arguments")
    assert line is not None
    assert line.process == ("APIServer", 7)


def test_arguments_are_read_as_python_values(tmp_path):
    facts = log.read(write(tmp_path / "native.log", MARK))
    assert [facts.argument(key) for key in "abd"] == [1, {"c": [2, 3]}, "x, y"]
    assert facts.argument("absent") is None


def test_an_argument_that_is_no_literal_is_kept_as_text(tmp_path):
    facts = log.read(write(tmp_path / "n.log", b"non-default args: {'m': <Mode.X: 0>, 'p': 1}"))
    assert facts.argument("m") == "<Mode.X: 0>"


def test_what_is_no_utf8_and_a_line_without_end(tmp_path):
    path = tmp_path / "native.log"
    path.write_bytes(b"\xff\xfe\n" + b"x" * (3 << 20) + b"\n" + MARK)
    assert log.read(path).where("arguments") == "native.log, line 3"


def test_a_mark_across_two_blocks(tmp_path):
    path = tmp_path / "native.log"
    path.write_bytes(b"y\n" * ((1 << 19) - 10) + MARK + b"\n")
    assert log.read(path).where("arguments") == f"native.log, line {(1 << 19) - 9}"


def test_a_hundred_megabytes_of_chatter_and_repeated_marks(tmp_path):
    path = tmp_path / "native.log"
    block = b"INFO some chatter of a server that talks all day long\n" * 20_000 + MARK + b"\n"
    with path.open("wb") as file:
        for _ in range(95):
            file.write(block)
    tracemalloc.start()
    facts = log.read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert facts.counts["arguments"] == 95
    assert len(facts.lines["arguments"]) == 64
    assert peak < 16 << 20


def test_no_mark_at_all(tmp_path):
    facts = log.read(write(tmp_path / "native.log", b"nothing"))
    assert facts.first("config") is None
    assert facts.setting("dtype") is None
    assert facts.where("config") == "native.log"


CONFIG = b"(EngineCore_DP0 pid=8) INFO engine (v0.32.0) with config: model='m', dtype=torch.%s, x=1"
TITLES = {7: "/venv/bin/python3 /venv/bin/vllm serve", 8: "VLLM::EngineCore_DP0"}


def test_lines_count_that_a_living_process_has_written_under_its_name(tmp_path):
    facts = log.read(write(tmp_path / "native.log", MARK, CONFIG % b"float32")).signed_by(TITLES)
    assert facts.argument("a") == 1
    assert facts.setting("dtype") == "torch.float32"


def test_what_a_launcher_printed_before_the_server_ran_does_not_count(tmp_path):
    forged = [
        b" engine (v0.32.0) with config: model='m', dtype=torch.float16, x=1",
        CONFIG.replace(b"pid=8", b"pid=7") % b"float16",  # the launcher became the API server
        CONFIG.replace(b"pid=8", b"pid=9") % b"float16",
    ]
    facts = log.read(write(tmp_path / "native.log", *forged, CONFIG % b"float32"))
    assert facts.signed_by(TITLES).setting("dtype") == "torch.float32"
    assert facts.signed_by(TITLES).where("config") == "native.log, line 4"
    assert facts.signed_by({7: TITLES[7]}).setting("dtype") is None


def test_two_engines_that_say_otherwise(tmp_path):
    second = CONFIG.replace(b"pid=8", b"pid=9") % b"float16"
    facts = log.read(write(tmp_path / "native.log", CONFIG % b"float32", second))
    both = facts.signed_by({**TITLES, 9: "VLLM::EngineCore_DP1"})
    assert both.setting("dtype") == "torch.float32 and torch.float16"
