"""One check of what a case needs before anything is launched."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CheckResult:
    """`seen` is what is there; `mend` what to do about it, empty where the check holds."""

    name: str
    held: bool
    seen: str
    mend: str = ""


def passed(name: str, seen: str) -> CheckResult:
    return CheckResult(name, True, seen)


def failed(name: str, seen: str, mend: str) -> CheckResult:
    return CheckResult(name, False, seen, mend)
