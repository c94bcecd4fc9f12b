"""Run by an interpreter that has lm_eval: its own prompts, requests and verdicts, as JSON.

Standard input: {"folder": data set, "cache": scratch folder, "shots": [0, 8], "answers":
[[doc_id, text], ...]}. Standard output: {"prompts": {shots: [sha256, ...]}, "turns": [...],
"request": {...}, "verdicts": [[strict, flexible, extracted strict, extracted flexible], ...]}.
"""

# pyright: reportMissingImports=false
import hashlib
import json
import sys
from pathlib import Path

import lm_eval
import yaml
from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask
from lm_eval.models.openai_completions import LocalCompletionsAPI

SEED = 1234


def gsm8k(folder: str, cache: str, shots: int) -> ConfigurableTask:
    """lm_eval's own gsm8k task; only where the rows come from is another."""
    own = Path(str(lm_eval.__file__)).parent / "tasks" / "gsm8k" / "gsm8k.yaml"
    config = yaml.safe_load(own.read_text())
    files = {split: f"{folder}/{split}.jsonl" for split in ("train", "test")}
    config.update(
        dataset_path="json",
        dataset_name=None,
        dataset_kwargs={"data_files": files, "cache_dir": cache},
        num_fewshot=shots,
    )
    task = ConfigurableTask(config=config)
    task.set_fewshot_seed(seed=SEED)
    return task


def prompts(task: ConfigurableTask) -> list[str]:
    task.build_all_requests()
    return [hashlib.sha256(i.args[0].encode()).hexdigest() for i in task.instances]


def turns(task: ConfigurableTask) -> list[dict[str, str]]:
    """The chat messages of the first question."""
    kept = []
    task.build_all_requests(
        limit=1,
        apply_chat_template=True,
        fewshot_as_multiturn=True,
        chat_template=lambda messages, **_: kept.append(messages) or "",
    )
    return kept[0]


def request(task: ConfigurableTask) -> dict[str, object]:
    """What it posts for a question, where requests are not sequential."""
    task.build_all_requests(limit=1)
    prompt, settings = task.instances[0].args
    server = LocalCompletionsAPI(
        base_url="http://127.0.0.1:9/v1/completions", model="stub", tokenizer_backend=None
    )
    settings = {**settings, "max_gen_toks": 512}
    return server._create_payload(prompt, generate=True, gen_kwargs=settings, seed=SEED)


def verdicts(task: ConfigurableTask, answers: list[tuple[int, str]]) -> list[list[object]]:
    documents = list(task.test_docs())
    instances = [
        Instance("generate_until", documents[doc_id], (), place, resps=[text])
        for place, (doc_id, text) in enumerate(answers)
    ]
    for ensemble in task._filters:
        ensemble.apply(instances)
    judged = []
    for instance in instances:
        read = [instance.filtered_resps[name] for name in ("strict-match", "flexible-extract")]
        right = [
            bool(task.process_results(instance.doc, [text])["exact_match"] == 1) for text in read
        ]
        judged.append([*right, *read])
    return judged


def main() -> None:
    asked = json.load(sys.stdin)

    def fresh(shots: int) -> ConfigurableTask:
        return gsm8k(asked["folder"], asked["cache"], shots)

    most = max(asked["shots"])
    json.dump(
        {
            "prompts": {shots: prompts(fresh(shots)) for shots in asked["shots"]},
            "turns": turns(fresh(most)),
            "request": request(fresh(most)),
            "verdicts": verdicts(fresh(most), asked["answers"]),
        },
        sys.stdout,
    )


main()
