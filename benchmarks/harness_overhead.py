"""What the harness adds to a case: its wall time beside the same servers launched, asked and
stopped by hand, in turns, in one run.

    python benchmarks/harness_overhead.py --profile canary-cpu --case baseline-eager --rounds 3

By hand means: the plan's commands and environment, ready at the first token, the same questions
through the same client, SIGTERM, exit. The harness adds ownership, guardian, leases, doctor,
claims, proofs and evidence. Servers differ by seconds from start to start, so the medians of the
parts say more than the totals.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from e2e import oracle, profile, session
from e2e.oracle.client import Endpoint, ask, probe
from e2e.oracle.request import RequestSettings
from e2e.plan import CasePlan, RolePlan
from e2e.profile.model import Profile
from e2e.run import execute
from e2e.systems.environment import role_environment
from e2e.systems.executable import resolve
from e2e.systems.readiness import LogLine, served_models

POLL_SECONDS = 0.05
KEY = "benchmark"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--profile", default="canary-cpu")
    parser.add_argument("--case", default="baseline-eager")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    chosen = profile.load(profile.find(arguments.profile))
    by_hand: list[dict[str, float]] = []
    harness: list[dict[str, float]] = []
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
            by_hand.append(run_by_hand(chosen, arguments.case, Path(folder)))
            harness.append(run_in_harness(chosen, arguments.case, Path(folder)))
    for name in harness[0]:
        ours = statistics.median(run[name] for run in harness)
        theirs = statistics.median(run.get(name, 0.0) for run in by_hand)
        ratio = f"{ours / theirs:6.2f} x" if theirs > 0.01 else ""
        print(f"{name:12} by hand {theirs:7.2f} s   harness {ours:7.2f} s   {ratio}")
    return 0


def run_in_harness(chosen: Profile, case: str, folder: Path) -> dict[str, float]:
    """Seconds of each phase, outside of them (doctor, guardian, proofs), of all, and of CPU."""
    variables = {**chosen.gate.opt_in, **os.environ}
    evidence = session.open_evidence(folder / "runs", "run", chosen.profile, case)
    cpu, begin = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    outcome = execute(chosen, case, variables, evidence)
    total = time.monotonic() - begin
    spent = resource.getrusage(resource.RUSAGE_SELF)
    if outcome != "passed":
        raise SystemExit(f"{outcome}: {evidence.record.failures}")
    phases = {phase.name: phase.seconds for phase in evidence.record.phases}
    own = {name: phases.pop(name) for name in ("ready", "evaluation", "stop")}
    return {
        **own,
        **phases,
        "outside": total - sum(own.values()) - sum(phases.values()),
        "total": total,
        "harness CPU": spent.ru_utime + spent.ru_stime - cpu.ru_utime - cpu.ru_stime,
    }


def run_by_hand(chosen: Profile, case: str, folder: Path) -> dict[str, float]:
    """Seconds until the first token, of the questions, of the stop, and of all."""
    plan = session.prepare(
        chosen, case, {**chosen.gate.opt_in, **os.environ}, progress=lambda text: None
    )
    asked = oracle.questions(plan)
    begin = time.monotonic()
    with ExitStack() as servers:
        processes = [servers.enter_context(server(role, folder)) for role in plan.roles]
        wait_ready(plan, folder)
        ready = time.monotonic()
        answers = ask(endpoint(plan), asked.prompts, settings(plan), lambda: None, lambda *_: None)
        asking = time.monotonic()
        assert len(answers) == len(asked.prompts)
        for process in sorted(processes, key=lambda p: p is not processes[-1]):
            process.terminate()
            process.wait()
    end = time.monotonic()
    return {
        "ready": ready - begin,
        "evaluation": asking - ready,
        "stop": end - asking,
        "total": end - begin,
    }


@contextmanager
def server(role: RolePlan, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    private = folder / role.role
    private.mkdir()
    environment = role_environment(role, os.environ, private, KEY)
    with (folder / f"{role.role}.log").open("wb") as log:
        process = subprocess.Popen(
            [str(resolve(role.argv[0])), *role.argv[1:]],
            env=environment,
            cwd=private,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def endpoint(plan: CasePlan) -> Endpoint:
    entry = plan.entry_role
    return Endpoint(f"http://127.0.0.1:{entry.ports['http']}", entry.served_name, KEY)


def settings(plan: CasePlan) -> RequestSettings:
    return RequestSettings(
        max_tokens=plan.evaluation.max_tokens,
        concurrency=plan.evaluation.concurrency,
        logprobs=5 if plan.evaluation.canary_checks else None,
    )


def wait_ready(plan: CasePlan, folder: Path) -> None:
    deadline = time.monotonic() + plan.limits.ready
    for role in plan.roles:
        line = role.ready_line
        seen = LogLine(folder / f"{role.role}.log", line).seen if line else serves(role)
        while not seen():
            if time.monotonic() > deadline:
                raise SystemExit(f"{role.role} was not ready in time")
            time.sleep(POLL_SECONDS)
    if told := probe(endpoint(plan), plan.limits.probe, lambda: None):
        raise SystemExit(f"no token: {told}")


def serves(role: RolePlan):
    return lambda: role.served_name in (served_models(role.ports["http"], KEY, 0.5) or [])


if __name__ == "__main__":
    raise SystemExit(main())
