"""One evaluation with this project's client: URL and data set are the arguments."""

from __future__ import annotations

import sys

from e2e.oracle import client, dataset, prompts
from e2e.oracle.request import Endpoint, RequestSettings
from e2e.oracle.scoring import score

url, name = sys.argv[1:]
questions = prompts.build(dataset.load(name), shots=8, samples="all")
answers = client.ask(
    Endpoint(url, "stub"),
    questions,
    RequestSettings(concurrency=64),
    alive=lambda: None,
    progress=lambda answered, asked: None,
)
invalid = [answer for answer in answers if answer.invalid]
if invalid:
    sys.exit(f"{len(invalid)} invalid, first {invalid[0]}")
right = sum(
    score(answer.text or "", question.gold_answer).strict
    for answer, question in zip(answers, questions, strict=True)
)
print(f"{right} of {len(answers)} strict")
