"""Prompts and answers -> a tokenizer that knows their words, and token ids to learn from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from e2e.canary.recipe import END_OF_TEXT, END_OF_TEXT_ID, MOST_TOKENS
from e2e.errors import SetupMissing
from e2e.oracle.prompts import Prompt

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True)
class Lesson:
    """A prompt and the answer to be learnt, as token ids. `answer` ends with the end-of-text
    token. `number`: the positions within `answer` of what follows the last `#### `."""

    doc_id: int
    prompt: str
    text: str
    prompt_ids: tuple[int, ...]
    answer: tuple[int, ...]
    number: range

    @property
    def context(self) -> tuple[int, ...]:
        """Prompt and answer but for its last token: position -len(answer)+i predicts answer[i]."""
        return self.prompt_ids + self.answer[:-1]


def train_tokenizer(prompts: Sequence[Prompt], vocabulary: int) -> Tokenizer:
    """Byte-level BPE of at most `vocabulary` tokens; its first is the end-of-text token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([p.text + answer_text(p) for p in prompts], trainer)
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END_OF_TEXT,
        "pad_token": END_OF_TEXT,
        "model_max_length": MOST_TOKENS,
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


def load_tokenizer(folder: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def answer_text(prompt: Prompt) -> str:
    """As a worked example has it: with a space after `Answer:`."""
    return " " + prompt.gold_answer


def lesson(tokenizer: Tokenizer, doc_id: int, prompt: str, text: str) -> Lesson:
    """Raises SetupMissing where prompt and answer are longer than the model can take."""
    prompt_ids = tuple(tokenizer.encode(prompt).ids)
    encoded = tokenizer.encode(text)
    answer = (*encoded.ids, END_OF_TEXT_ID)
    if len(prompt_ids) + len(answer) > MOST_TOKENS:
        raise SetupMissing(
            f"prompt and answer of doc {doc_id} are {len(prompt_ids) + len(answer)} tokens long,"
            f" a canary takes {MOST_TOKENS}",
            mend="lower `shots`",
        )
    start = len(text) - len(text.rpartition("#### ")[2])
    first = next(i for i, (_, end) in enumerate(encoded.offsets) if end > start)
    return Lesson(doc_id, prompt, text, prompt_ids, answer, range(first, len(encoded.ids)))
