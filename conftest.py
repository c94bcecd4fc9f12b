"""Makes the fixtures of `e2e.pytest_plugin` available where afd-e2e is not installed."""

import importlib.metadata


def _installed() -> bool:
    return any(
        entry.value == "e2e.pytest_plugin"
        for entry in importlib.metadata.entry_points(group="pytest11")
    )


pytest_plugins = [] if _installed() else ["e2e.pytest_plugin"]
