"""The same evaluation with lm-evaluation-harness, run by an interpreter that has it."""

# pyright: reportMissingImports=false
import sys
from pathlib import Path

import lm_eval
import yaml

url, folder = sys.argv[1:]
own = Path(str(lm_eval.__file__)).parent / "tasks" / "gsm8k" / "gsm8k.yaml"
config = yaml.safe_load(own.read_text())
config.update(
    dataset_path="json",
    dataset_name=None,
    dataset_kwargs={"data_files": {s: f"{folder}/{s}.jsonl" for s in ("train", "test")}},
)
done = lm_eval.simple_evaluate(
    model="local-completions",
    model_args={
        "model": "stub",
        "base_url": f"{url}/v1/completions",
        "num_concurrent": 64,
        "max_gen_toks": 512,
        "tokenizer_backend": None,
        "tokenized_requests": False,
    },
    tasks=[config],
    num_fewshot=8,
)
print(f"exact_match,strict-match: {done['results']['gsm8k']['exact_match,strict-match']:.4f}")
