"""Wheels that hold nothing but their own metadata.

The format is the binary distribution format of the Python packaging specifications:
https://packaging.python.org/en/latest/specifications/binary-distribution-format/
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

from tools.setup_venv.settings import StandIn

_METADATA = """\
Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: Stand-in of afd-e2e: metadata alone, no module; see its pyproject.toml.
"""
_WHEEL = """\
Wheel-Version: 1.0
Generator: afd-e2e
Root-Is-Purelib: true
Tag: py3-none-any
"""


def write(stand_in: StandIn, folder: Path) -> Path:
    """Write the wheel of a stand-in into `folder` and return its path."""
    members = {
        f"{stand_in.dist_info}/METADATA": _METADATA.format(
            name=stand_in.name, version=stand_in.version
        ).encode(),
        f"{stand_in.dist_info}/WHEEL": _WHEEL.encode(),
    }
    record = f"{stand_in.dist_info}/RECORD"
    lines = [f"{name},sha256={_digest(body)},{len(body)}\n" for name, body in members.items()]
    members[record] = "".join([*lines, f"{record},,\n"]).encode()

    wheel = folder / f"{stand_in.dist_info.removesuffix('.dist-info')}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return wheel


def _digest(body: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
