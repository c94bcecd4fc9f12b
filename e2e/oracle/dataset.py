"""GSM8K and sets of the same form: worked examples to learn from (train), questions (test)."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from e2e.errors import SetupMissing
from e2e.oracle.strict_json import is_unicode

VARIABLE = "AFD_E2E_GSM8K"
HUB_ID = "openai/gsm8k"
BUNDLED = Path(__file__).parent / "data"
_NUMBER = re.compile(r"#### -?[$0-9.,]*[0-9]")
_HUB_ID_FORM = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True)
class Row:
    """A question and its worked answer, raw: `<<a=b>>` marks and the last line `#### N`."""

    question: str
    answer: str


@dataclass(frozen=True)
class Dataset:
    """`sha256` is that of the rows alone: the same for a folder and for the hub."""

    train: tuple[Row, ...]
    test: tuple[Row, ...]
    sha256: str
    source: str


def chosen(name: str, variables: Mapping[str, str]) -> str:
    """What `load` is to be given for a profile's data set: the folder or hub id in AFD_E2E_GSM8K,
    else the project's own set for `bundled`, and the hub's for `gsm8k`."""
    return variables.get(VARIABLE) or (HUB_ID if name == "gsm8k" else name)


def load(name: str, variables: Mapping[str, str] = os.environ) -> Dataset:
    """`bundled` (the project's own set), `gsm8k` (see `chosen`), a folder of train.jsonl and
    test.jsonl, or a hub id `owner/name` where there is no such folder.

    Raises SetupMissing with file:line where there is one.
    """
    if name == "bundled":
        return _from_folder(BUNDLED, name)
    source = chosen(name, variables) if name == "gsm8k" else name
    folder = Path(source).expanduser()
    if folder.is_dir() or not _HUB_ID_FORM.fullmatch(source):
        return _from_folder(folder, source)
    return _from_hub(source)


def _from_folder(folder: Path, source: str) -> Dataset:
    """Read directly, not through `datasets`: its JSON builder leaves a copy in the user's home,
    turns a missing key into null, and cannot name the line that is wrong. The rows are the same.
    """
    if not folder.is_dir():
        raise SetupMissing(
            f"data set folder {folder} does not exist",
            mend=f"give a folder that holds train.jsonl and test.jsonl (variable {VARIABLE})",
        )
    return _dataset(_read(folder / "train.jsonl"), _read(folder / "test.jsonl"), source)


def _from_hub(hub_id: str) -> Dataset:
    """Through `datasets`, which honours HF_HUB_OFFLINE, HF_DATASETS_OFFLINE and HF_HOME."""
    import datasets

    try:
        splits = datasets.load_dataset(hub_id, "main")
        rows = [
            [_row(dict(row), f"{hub_id}, {split}, row {n}") for n, row in enumerate(splits[split])]
            for split in ("train", "test")
        ]
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        # `datasets` documents no base class; offline, missing and unreadable are among these.
        raise SetupMissing(
            f"data set {hub_id} is no folder and cannot be had from the hub:"
            f" {type(error).__name__}: {str(error)[:300]}",
            mend=f"set {VARIABLE} to a folder of train.jsonl and test.jsonl, or fill the hub's"
            " cache on this machine first (HF_HUB_OFFLINE and HF_DATASETS_OFFLINE are honoured)",
        ) from error
    return _dataset(rows[0], rows[1], hub_id)


def _read(path: Path) -> list[Row]:
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise SetupMissing(
            f"data set file {path} cannot be read: {error.strerror}",
            mend="the folder must hold train.jsonl and test.jsonl",
        ) from error
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            value = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise SetupMissing(f"{where}: not JSON: {error}", mend=_LINE_FORM) from error
        rows.append(_row(value, where))
    if not rows:
        raise SetupMissing(f"data set file {path} is empty", mend=_LINE_FORM)
    return rows


_LINE_FORM = 'each line is an object {"question": "...", "answer": "... #### N"} in UTF-8'


def _row(value: object, where: str) -> Row:
    if not isinstance(value, dict):
        raise SetupMissing(f"{where}: not an object but {type(value).__name__}", mend=_LINE_FORM)
    for key in ("question", "answer"):
        text = value.get(key)
        if key not in value:
            found = ", ".join(sorted(map(str, value))[:8]) or "none"
            raise SetupMissing(f"{where}: no key {key!r} (keys: {found})", mend=_LINE_FORM)
        if not isinstance(text, str) or not text.strip():
            raise SetupMissing(f"{where}: {key!r} is not a text, or empty", mend=_LINE_FORM)
        if not is_unicode(text):
            raise SetupMissing(f"{where}: {key!r} holds half a surrogate pair", mend=_LINE_FORM)
    if not _NUMBER.search(value["answer"]):
        raise SetupMissing(f"{where}: the answer has no number after '#### '", mend=_LINE_FORM)
    return Row(value["question"], value["answer"])


def _dataset(train: Iterable[Row], test: Iterable[Row], source: str) -> Dataset:
    train, test = tuple(train), tuple(test)
    digest = hashlib.sha256()
    for rows in (train, test):
        for row in rows:
            digest.update(json.dumps([row.question, row.answer]).encode() + b"\n")
        digest.update(b"\n")
    return Dataset(train, test, digest.hexdigest(), source)
