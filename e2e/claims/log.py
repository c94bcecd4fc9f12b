"""What a server's log says of its mode: a bounded, streaming read of a few known lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

_BLOCK = 1 << 20
_LONGEST_LINE = 32 << 10
_KEPT_PER_MARK = 64
_PREFIX = re.compile(r"^\((?P<name>[\w.-]+) pid=(?P<pid>\d+)\)")

MARKS: Mapping[str, bytes] = {
    "arguments": b"non-default args: ",
    "config": b" engine (v",
    "captured": b"Graph capturing finished",
    "experts": b"Expert parallelism is enabled",
    "batch": b"Running batch with cudagraph_mode: ",
    "ubatch": b"should_ubatch: True",
    "plugin failed": b"Failed to load plugin ",
    "ffn started": b"AFD FFN EngineCore started",
    "joined": b" in a world of ",
    "exchanged": b" first exchange: layer ",
    "share": b" holds parameters: ",
}
"""Lines of vLLM 0.26 to 0.32 (entrypoints, v1/engine/core.py, v1/worker/gpu_model_runner.py,
fused_moe/expert_map_manager.py, plugins), of the AFD plugin (compat/patches/engine_core.py), and of
the reference AFD, the only one that tells of its ranks, exchanges and weights."""

_SIGNED = ("arguments", "config", "experts", "exchanged", "share")
"""Marks that count only in lines which a living process of the role has written."""


@dataclass(frozen=True)
class Line:
    """One line of a log; `number` counts from 1."""

    number: int
    text: str

    @property
    def process(self) -> tuple[str, int] | None:
        """Name and pid of the process that vLLM's prefix names: `(Worker_TP0 pid=12)`."""
        prefix = _PREFIX.match(self.text)
        return (prefix["name"], int(prefix["pid"])) if prefix else None


@dataclass(frozen=True)
class LogFacts:
    """The first 64 lines of each mark in `MARKS`, and how often each was seen."""

    name: str
    lines: Mapping[str, tuple[Line, ...]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)

    def first(self, mark: str) -> Line | None:
        return next(iter(self.lines.get(mark, ())), None)

    def where(self, mark: str) -> str:
        line = self.first(mark)
        return f"{self.name}, line {line.number}" if line else self.name

    def signed_by(self, titles: Mapping[int, str]) -> LogFacts:
        """Without the lines of a role's mode that none of these processes, given by pid and title,
        has written under its name: a launcher can print what it likes before it runs something
        else, and so can a process that is gone."""
        signed = {
            mark: tuple(line for line in self.lines.get(mark, ()) if _signed_by(line, titles))
            for mark in _SIGNED
        }
        return replace(self, lines={**self.lines, **signed})

    def setting(self, key: str) -> str | None:
        """A value of the engine's configuration line, as it is written there; all of them where
        several engines say several."""
        found = [
            value[1].strip("'")
            for line in self.lines.get("config", ())
            if (value := re.search(rf"[ ,]{key}=('[^']*'|[^,]+)", line.text))
        ]
        return " and ".join(dict.fromkeys(found)) or None

    def argument(self, key: str) -> object:
        """A value of the line that lists non-default arguments; None where it is not listed."""
        line = self.first("arguments")
        found = re.search(rf"'{key}': ", line.text) if line else None
        return _literal(line.text[found.end() :]) if line and found else None


def _signed_by(line: Line, titles: Mapping[int, str]) -> bool:
    """Engines and workers are titled as their prefix names them; an API server has no title."""
    if line.process is None or line.process[1] not in titles:
        return False
    name, pid = line.process
    kind = name.partition("_")[0]
    return kind == "APIServer" or kind in titles[pid]


def read(log: Path) -> LogFacts:
    """Read a log of any size, with lines of any length, in a fixed amount of memory."""
    lines: dict[str, list[Line]] = {mark: [] for mark in MARKS}
    counts = dict.fromkeys(MARKS, 0)
    for number, raw in _lines(log):
        for mark, text in MARKS.items():
            if text in raw:
                counts[mark] += 1
                if len(lines[mark]) < _KEPT_PER_MARK:
                    lines[mark].append(Line(number, raw.decode("utf-8", "replace").rstrip()))
    return LogFacts(log.name, {mark: tuple(found) for mark, found in lines.items()}, counts)


def _lines(log: Path) -> Iterator[tuple[int, bytes]]:
    """Marked lines with their numbers; what exceeds 32 KiB of a line is passed over."""
    before, rest = 0, b""
    with log.open("rb") as file:
        while block := file.read(_BLOCK):
            whole, newline, rest = (rest + block).rpartition(b"\n")
            rest = rest[:_LONGEST_LINE]
            for number, line in _marked(whole):
                yield before + number, line
            before += whole.count(b"\n") + len(newline)
    for number, line in _marked(rest):
        yield before + number, line


def _marked(block: bytes) -> Iterator[tuple[int, bytes]]:
    """The marked lines of a block, found without looking at any other."""
    number, counted = 1, 0
    for start in sorted({block.rfind(b"\n", 0, at) + 1 for at in _positions(block)}):
        number, counted = number + block.count(b"\n", counted, start), start
        end = block.find(b"\n", start)
        line = block[start : end if end >= 0 else len(block)][:_LONGEST_LINE]
        yield number, line


def _positions(block: bytes) -> Iterator[int]:
    for mark in MARKS.values():
        at = block.find(mark)
        while at >= 0:
            yield at
            at = block.find(mark, at + len(mark))


def _literal(text: str) -> object:
    """The Python literal at the start of `text`; its text up to a comma where it is none."""
    depth, quote = 0, ""
    for end, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        if depth < 0 or (char == "," and depth == 0 and not quote):
            text = text[:end]
            break
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return text.strip()
