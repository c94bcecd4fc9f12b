"""What must come back after a case: processes, ports, device memory, shared memory, sockets.

Each proof is a context manager: it takes a picture on entry, must find it again on exit within a
deadline, and records what it found. It never raises on exit, so that no failure hides another.
"""

from e2e.proofs.device_memory import device_memory_returns
from e2e.proofs.ports import ports_released
from e2e.proofs.processes import no_process_left
from e2e.proofs.shared_memory import shared_memory_returns

__all__ = [
    "device_memory_returns",
    "no_process_left",
    "ports_released",
    "shared_memory_returns",
]
