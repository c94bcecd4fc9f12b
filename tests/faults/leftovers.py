"""Whatever a run can leave, looked for from outside."""

from __future__ import annotations

from pathlib import Path

from e2e import leases
from e2e.errors import SetupMissing
from e2e.process.guardian import runs, table


def leftovers(host: Path, folder: Path, token: str) -> list[str]:
    """Of the runs whose host folder is `host` and whose evidence is in `folder`: processes by
    their marker or by `token` in their name, leases, ports, segments, private folders, evidence
    that is half written. A line each."""
    return [
        *(row.command for row in processes(host, token)),
        *held(host),
        *(str(path) for path in Path("/dev/shm").glob(f"*{token}*")),
        *(str(path) for path in Path("/tmp").glob(f"*{token}*")),
        *(path for file in runs.run_files(str(host)) for path in _unfinished(file)),
        *(str(path) for path in folder.glob("*.partial")),
    ]


def processes(host: Path, token: str) -> list[table.ProcessInfo]:
    """Living ones, guardians among them."""
    return [
        row
        for row in table.snapshot().values()
        if row.state != "Z"
        and (
            any(f"={host}/runs/" in variable for variable in table.environment(row.pid))
            or token in row.command
        )
    ]


def held(host: Path) -> list[str]:
    """Devices and ports that no other run could have now."""
    found = []
    for file in (host / "leases").glob("*-*"):
        kind, _, name = file.name.partition("-")
        devices, ports = ([name], []) if kind == "device" else ([], [int(name)])
        try:
            with leases.hold(devices, ports, "the next run"):
                continue
        except SetupMissing as error:
            found.append(error.what)
    return found


def _unfinished(file: str) -> list[str]:
    """The file of a killed run stays until the next run has told of it; its folder does not."""
    _, state = runs.read(file)
    private = state["private"]
    left = [private] if Path(private).exists() else []
    return left + ([] if state.get("ended") else [f"{file} is not ended"])
