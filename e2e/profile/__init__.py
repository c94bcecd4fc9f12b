"""Profiles: YAML files that are checked as a whole, every problem at its line and column."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from e2e.profile import extends, rules, typed
from e2e.profile.model import Profile
from e2e.profile.problems import InvalidProfile, Problem
from e2e.profile.schema import schema
from e2e.profile.shipped import find, names

__all__ = ["Profile", "find", "load", "names", "schema"]


def load(path: Path) -> Profile:
    """The profile in a file, with what it extends.

    Raises InvalidProfile (a ProfileError) with all problems of the file and of those it extends.
    """
    root, problems = extends.read_extended(path)
    profile, type_problems = typed.check(root)
    problems = [*problems, *type_problems, *rules.check(root)]
    if profile is None or problems:
        raise InvalidProfile([_as_extended(problem, path) for problem in problems])
    profile.inherited.update(extends.inherited(root, path))
    return profile


def _as_extended(problem: Problem, path: Path) -> Problem:
    """What is wrong in another file only together with what this one says tells so."""
    other = problem.at.file
    if other == path:
        return problem
    try:
        load(other)
    except InvalidProfile as error:
        if problem in error.problems:
            return problem
    return replace(problem, what=f"{problem.what} (as {path.name} extends it)")
