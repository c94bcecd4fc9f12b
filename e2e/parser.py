"""The arguments of `afd-e2e`, and the help that teaches them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import fill
from typing import TypeAlias

Command = Callable[[argparse.Namespace], int]
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_EPILOG = """\
a first run, on any machine:
  afd-e2e run canary-cpu                  a real server, seven questions, every proof

exit codes of run:
  0 passed                 5 evaluation invalid      70 the harness failed
  2 profile or usage       6 wrong answers          130 interrupted
  3 set-up missing         7 claim not proven
  4 server failed          8 residue left
"""


def build(run_by: Mapping[str, Command]) -> argparse.ArgumentParser:
    """The command line; `run_by` has what runs each command, `canary build` and all."""
    whole = argparse.ArgumentParser(
        prog="afd-e2e",
        description="End-to-end tests of distributed LLM serving: launch the real servers of a "
        "hardware profile, prove what they claim, prove that nothing is left.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = whole.add_subparsers(required=True, metavar="COMMAND")

    plan = _command(
        commands,
        "plan",
        "print the exact commands of a profile, and what will be proven; runs nothing",
        "qwen3_5-122b-8gpu --case afd-eager-4a4f",
        "./my-profile.yaml --json",
    )
    plan.add_argument(
        "profile", nargs="?", help="name or path as for run; default: all that are shipped"
    )
    part = plan.add_mutually_exclusive_group()
    _case_option(part)
    part.add_argument(
        "--performance",
        action="store_true",
        help="native against AFD on equal hardware: servers, load and how it is judged",
    )
    plan.add_argument("--json", action="store_true", help="one JSON document a case")
    plan.set_defaults(command=run_by["plan"])

    doctor = _command(
        commands,
        "doctor",
        "check everything that can be known before a run, each miss with its mend",
        "qwen3_5-122b-8gpu",
    )
    _profile_and_case(doctor)
    doctor.set_defaults(command=run_by["doctor"])

    run = _command(
        commands,
        "run",
        "run the cases of a profile, one after another",
        "canary-cpu",
        "qwen3_5-122b-8gpu --case baseline-eager --evidence /data/runs",
        more="Naming the profile here is the opt-in: its opt-in variables need not be set, but "
        "must not contradict it.",
    )
    _profile_and_case(run)
    run.add_argument(
        "--evidence", metavar="DIR", help="where runs are kept (AFD_E2E_EVIDENCE, default runs/)"
    )
    run.set_defaults(command=run_by["run"])

    schema = _command(
        commands, "schema", "print the JSON Schema of profiles, for editors", "> schema.json"
    )
    schema.set_defaults(command=run_by["schema"])

    prompts = _command(
        commands, "prompts", "print GSM8K prompts with their SHA-256", "--dataset gsm8k --json"
    )
    _dataset_option(prompts)
    prompts.add_argument(
        "--shots", type=int, default=8, metavar="N", help="worked examples before it (default 8)"
    )
    prompts.add_argument(
        "--samples", default="7", metavar="N", help="how many prompts, or all (default 7)"
    )
    prompts.add_argument("--json", action="store_true", help="JSON lines")
    prompts.set_defaults(command=run_by["prompts"])

    score = _command(
        commands,
        "score",
        "score saved answers again, without a server",
        "--responses answers.jsonl",
        "--responses runs/RUN/CASE --json",
    )
    _dataset_option(score)
    score.add_argument(
        "--responses",
        metavar="FILE",
        required=True,
        help="JSON lines with doc_id and text, or an evidence folder",
    )
    score.add_argument("--json", action="store_true", help="one JSON document")
    score.set_defaults(command=run_by["score"])

    compare = _command(
        commands,
        "compare",
        "put the evidence of cases side by side: what each showed, token by token",
        "runs/RUN",
        "runs/RUN/baseline-eager runs/RUN/afd-eager-4a4f --require identical",
    )
    compare.add_argument(
        "folders", nargs="+", type=Path, metavar="FOLDER", help="evidence of a run, or of a case"
    )
    compare.add_argument(
        "--require",
        choices=["identical", "within-noise"],
        help="fail unless all others answered as the first",
    )
    compare.add_argument(
        "--noise", type=Path, metavar="FOLDER", help="evidence of a second run of the first case"
    )
    compare.set_defaults(command=run_by["compare"])

    reap = _command(
        commands,
        "reap",
        "show what lost runs left on this host, and end it",
        "",
        "--yes",
        more="Lost is a run of this harness whose process is gone; what it left are processes, "
        "ports, shared memory, sockets. Other people's are never listed.",
    )
    reap.add_argument("--yes", action="store_true", help="end it all")
    reap.set_defaults(command=run_by["reap"])

    _canary_commands(commands, run_by)
    return whole


def _command(
    commands: Commands,
    name: str,
    summary: str,
    *examples: str,
    more: str = "",
) -> argparse.ArgumentParser:
    """A command whose --help says what it does, and shows it."""
    return commands.add_parser(
        name,
        help=summary,
        description=fill(f"{summary[0].upper()}{summary[1:]}. {more}", 79),
        epilog="\n".join(["examples:", *(f"  %(prog)s {one}".rstrip() for one in examples)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _profile_and_case(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", help="name of a shipped profile, or the path of a YAML file")
    _case_option(parser)


def _dataset_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dataset",
        default="bundled",
        metavar="NAME",
        help="bundled (the default), gsm8k (AFD_E2E_GSM8K, else from the hub), or a folder of "
        "train.jsonl and test.jsonl",
    )


def _case_option(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--case", action="append", metavar="ID", help="only this case (may be repeated)"
    )


def _canary_commands(commands: Commands, run_by: Mapping[str, Command]) -> None:
    canary = commands.add_parser("canary", help="tiny checkpoints that have learnt the answers")
    actions = canary.add_subparsers(required=True, metavar="ACTION")
    build = _command(
        actions,
        "build",
        "train a canary (minutes, on a CPU)",
        "--family deepseek_v2 --out ~/canary",
    )
    build.add_argument(
        "--family", default="qwen3_moe", help="qwen3_moe (default), deepseek_v2 or qwen3_5_moe"
    )
    build.add_argument("--out", type=Path, required=True, metavar="DIR", help="a folder to make")
    _dataset_option(build)
    build.add_argument("--seed", type=int, default=0, metavar="N", help="of the weights")
    build.set_defaults(command=run_by["canary build"])
    audit = _command(
        actions, "audit", "measure what a canary notices, and print the table", "~/canary"
    )
    audit.add_argument("folder", type=Path, metavar="DIR")
    audit.set_defaults(command=run_by["canary audit"])
