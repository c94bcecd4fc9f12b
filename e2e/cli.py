"""`afd-e2e`: the command line. Thin: each command imports what it needs when it runs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from e2e.errors import HarnessError, Outcome, ProfileError, SetupMissing
from e2e.parser import build

if TYPE_CHECKING:
    from e2e.evidence.record import CaseRecord
    from e2e.profile import Profile


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code; every expected error is one message on standard error."""
    _open_standard_streams()
    arguments = _parser().parse_args(argv)
    try:
        return arguments.command(arguments)
    except HarnessError as error:
        return _tell(error)
    except KeyboardInterrupt:
        print("afd-e2e: interrupted", file=sys.stderr)
        return Outcome.INTERRUPTED.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _open_standard_streams() -> None:
    """Where cron or a daemon has closed them, what is opened first would be written to as if it
    were they."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # 0, 1, 2
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def _tell(error: HarnessError) -> int:
    print(f"afd-e2e: {error.outcome}: {error}", file=sys.stderr)
    return error.outcome.exit_code


def _parser() -> argparse.ArgumentParser:
    return build(
        {
            "plan": _plan,
            "doctor": _doctor,
            "run": _run,
            "schema": _schema,
            "prompts": _prompts,
            "score": _score,
            "compare": _compare,
            "reap": _reap,
            "canary build": _canary_build,
            "canary audit": _canary_audit,
        }
    )


def _plan(arguments: argparse.Namespace) -> int:
    from e2e import profile

    if arguments.profile is None and (arguments.case or arguments.performance):
        raise ProfileError("--case and --performance are of one profile", mend="name it")
    if arguments.profile is not None:
        return _print_plan(profile.load(profile.find(arguments.profile)), arguments)
    exit_code = 0
    for name in profile.names():
        try:
            _print_plan(profile.load(profile.find(name)), arguments)
        except SetupMissing as error:  # devices that are listed for one profile do not fit all
            exit_code = _tell(error)
    return exit_code


def _print_plan(chosen: Profile, arguments: argparse.Namespace) -> int:
    for document in _documents(chosen, arguments):
        print(document)
    return 0


def _documents(chosen: Profile, arguments: argparse.Namespace) -> Iterator[str]:
    import json

    from e2e import gate, plan_text, session
    from e2e.plan import plan_case, plan_performance

    gate.require_usable(chosen, os.environ)
    model = session.canary_folder(chosen, os.environ, build=None)
    if arguments.performance:
        for measurement in plan_performance(chosen, os.environ, model):
            if arguments.json:
                yield json.dumps(plan_text.measurement_as_json(measurement), indent=2)
            else:
                yield plan_text.measurement_as_shell(measurement)
        return
    for case in session.choose_cases(chosen, arguments.case):
        plan = plan_case(chosen, case, os.environ, model)
        yield (
            json.dumps(plan_text.as_json(plan), indent=2)
            if arguments.json
            else (plan_text.as_shell(plan))
        )


def _doctor(arguments: argparse.Namespace) -> int:
    from e2e import doctor, profile, session, terminal
    from e2e.doctor.table import table
    from e2e.plan import plan_case

    chosen = profile.load(profile.find(arguments.profile))
    variables = {**chosen.gate.opt_in, **os.environ}
    model = session.canary_folder(chosen, variables, build=None)
    console = terminal.LastingConsole()
    failed = False
    for case in session.choose_cases(chosen, arguments.case):
        results = doctor.check(plan_case(chosen, case, variables, model), chosen, variables)
        failed |= any(not result.held for result in results)
        console.print(table(f"{chosen.profile}/{case}", results))
    return Outcome.SETUP_MISSING.exit_code if failed else 0


def _run(arguments: argparse.Namespace) -> int:
    from rich.markup import escape

    from e2e import profile, run, session, terminal
    from e2e.process import reap

    console = terminal.LastingConsole()
    for line in reap.tell_lost_runs():
        console.print(f"[yellow]lost before:[/] {escape(line)}", highlight=False)
    chosen = profile.load(profile.find(arguments.profile))
    variables = {**chosen.gate.opt_in, **os.environ}
    cases = session.choose_cases(chosen, arguments.case)
    run_id = session.new_run_id(chosen.profile)
    root = session.evidence_root(arguments.evidence, variables)
    records: list[CaseRecord] = []
    for case in cases:
        reporter = terminal.TerminalReporter(console)
        console.print(f"[bold]{chosen.profile}/{case}[/]")
        evidence = session.open_evidence(root, run_id, chosen.profile, case, reporter)
        try:
            outcome = run.execute(chosen, case, variables, evidence)
        finally:
            reporter.done()
        records.append(evidence.record)
        terminal.print_case(console, evidence.record, str(evidence.folder))
        if outcome is Outcome.INTERRUPTED:
            break
    if len(records) > 1:
        terminal.print_side_by_side(console, records)
    outcomes = [record.outcome or Outcome.HARNESS_ERROR for record in records]
    return min(outcomes, key=list(Outcome).index).exit_code


def _schema(arguments: argparse.Namespace) -> int:
    import json

    from e2e import profile

    print(json.dumps(profile.schema(), indent=2))
    return 0


def _prompts(arguments: argparse.Namespace) -> int:
    from e2e.oracle.commands import prompts_command

    for line in prompts_command(
        arguments.dataset, arguments.shots, arguments.samples, arguments.json
    ):
        print(line)
    return 0


def _score(arguments: argparse.Namespace) -> int:
    from e2e.oracle.commands import score_command

    for line in score_command(arguments.dataset, Path(arguments.responses), arguments.json):
        print(line)
    return 0


def _compare(arguments: argparse.Namespace) -> int:
    from e2e import comparison, terminal

    records = comparison.read_cases(arguments.folders)
    terminal.print_side_by_side(terminal.LastingConsole(), records)
    if arguments.require is None:
        return 0
    noise = comparison.read_cases([arguments.noise])[0] if arguments.noise else None
    comparison.require(arguments.require, records, noise)
    return 0


def _reap(arguments: argparse.Namespace) -> int:
    from e2e.process import reap

    survivors: list[str] = []
    leftovers = reap.leftovers()
    for leftover in leftovers:
        print("\n".join(leftover.lines()))
        if arguments.yes:
            survivors += reap.end(leftover)
    if not leftovers:
        print("nothing is left of any run")
    elif not arguments.yes:
        print("to end it: afd-e2e reap --yes")
    for line in survivors:
        print(f"survives SIGKILL, quarantine its device: {line}")
    unsettled = bool(leftovers) and (not arguments.yes or bool(survivors))
    return Outcome.RESIDUE_LEFT.exit_code if unsettled else 0


def _canary_build(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from e2e import canary
    from e2e.oracle import dataset

    console = Console(stderr=True)
    manifest = canary.build(
        arguments.family,
        arguments.out,
        dataset.load(arguments.dataset),
        seed=arguments.seed,
        progress=lambda text: console.print(text, highlight=False),
    )
    print(manifest.summary())
    return 0


def _canary_audit(arguments: argparse.Namespace) -> int:
    from e2e import canary

    print(canary.audit(arguments.folder).table())
    return 0
