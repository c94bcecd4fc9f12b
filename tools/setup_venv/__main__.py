"""`python3 -m tools.setup_venv`: starts on Python 3.7 or later, goes on in one that fits."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

from tools.setup_venv.errors import SetupError
from tools.setup_venv.interpreter import OLDEST, choose

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Exit codes: 0 complete, 1 failed and said why, 130 interrupted."""
    parser = argparse.ArgumentParser(prog="setup_venv", description=__doc__)
    parser.add_argument(
        "--venv", type=Path, default=ROOT / ".venv", help="the environment's folder"
    )
    venv = parser.parse_args().venv.absolute()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        python = choose(os.environ.get("PYTHON"))
        if sys.version_info[:2] < OLDEST:
            os.execv(
                python.executable,
                [python.executable, "-m", "tools.setup_venv", *sys.argv[1:]],
            )
        from tools.setup_venv import build, settings

        asked = settings.read(ROOT, os.environ.get("AFD_E2E_EXTRAS"))
        build.ensure(ROOT, venv, asked, python)
    except SetupError as error:
        print(f"set-up failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("set-up interrupted; the next `make setup` starts over", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
