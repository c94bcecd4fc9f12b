"""An audit as a table on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from e2e.canary.auditing import AuditReport

_NOTE = """\
Noticed: the number after #### is another, the text is another (both teacher-forced), the
fingerprint is beyond its limit for servers of that dtype. Experts, heads and router rows: all;
other rows: those of each layer that matter least. Smallest effects are in nats."""


def table(report: AuditReport) -> str:
    """Lines without colour, at most 100 wide."""
    dtypes = list(report.canary.bands)
    head = ["change", "tried", "smallest", "number", "text", *dtypes]
    rows = [
        [
            kind.change,
            str(kind.tried),
            f"{kind.smallest_effect:.2g}",
            str(kind.noticed_by_number),
            str(kind.noticed_by_text),
            *(str(kind.noticed_by_fingerprint[dtype]) for dtype in dtypes),
        ]
        for kind in report.sensitivity
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in [head, *rows]
    ]
    return "\n".join([report.canary.summary(), _genuine(report), "", *lines, "", _NOTE])


def _genuine(report: AuditReport) -> str:
    if report.genuine:
        return f"  weights: as the fingerprint has them (distance {report.distance:.2g})"
    return f"  weights: CHANGED since the fingerprint was made (distance {report.distance:.2g})"
