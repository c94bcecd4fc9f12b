"""Owning processes: launching, watching and stopping them, and proving that they are gone."""

from e2e.process.guardian.table import ProcessInfo
from e2e.process.owned import Command, OwnedProcess, StopReport
from e2e.process.owner import Owner

__all__ = ["Command", "OwnedProcess", "Owner", "ProcessInfo", "StopReport"]
