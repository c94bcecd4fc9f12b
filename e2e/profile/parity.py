"""Rules of parity: what it is demanded of, and that both cases are asked the same."""

from __future__ import annotations

from collections.abc import Iterator

from e2e.profile.problems import Problem, did_you_mean
from e2e.profile.view import View

_ASKED = {"dataset": None, "shots": 8, "samples": 7, "max_tokens": 512}


def check_parity(profile: View, case: View) -> Iterator[Problem]:
    """`against` is a native case that runs before, is asked the same and demands no parity."""
    if not case.says("parity"):
        return
    parity, cases = case.sub("parity"), profile.sub("cases")
    if parity.children and not (parity.says("tokens") or parity.says("logprobs")):
        yield parity.here("nothing is demanded: needs tokens: identical or logprobs: within noise")
    against = parity.get("against", str)
    if against is None:
        return
    other = cases.sub(against)
    if against == case.path[-1]:
        yield parity.at_value("against", "is the case itself")
    elif against not in cases.children:
        names = [name for name in cases.children if cases.sub(name).says("native")]
        what = f"there is no case {against!r}{did_you_mean(against, names)}"
        yield parity.at_value("against", what)
    elif other.says("attention") or other.says("ffn"):
        yield parity.at_value("against", f"{against!r} is no native case")
    elif (names := list(cases.children)).index(against) > names.index(str(case.path[-1])):
        what = f"{against!r} stands after this case, and cases run in their order"
        yield parity.at_value("against", what)
    elif other.says("parity"):
        yield parity.at_value("against", f"{against!r} demands parity itself; name what it names")
    else:
        for key in _ASKED:
            asked, theirs = _asked(profile, case, key), _asked(profile, other, key)
            if asked != theirs:
                what = f"{against!r} is asked with {key} {theirs}, this case with {asked}"
                yield parity.at_value("against", what)


def _asked(profile: View, case: View, key: str) -> object:
    """What the case's evaluation says, or else the profile's."""
    own, shared = case.sub("evaluation"), profile.sub("evaluation")
    saying = own if own.says(key) else shared
    return saying.children[key].value if saying.says(key) else _ASKED[key]
