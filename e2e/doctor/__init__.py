"""Everything that can be known before a launch; the same checks run first in every case."""

from e2e.doctor.check import check, require
from e2e.doctor.result import CheckResult

__all__ = ["CheckResult", "check", "require"]
