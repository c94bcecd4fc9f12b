"""What the live deployment must show: one small file a family of claims."""

from e2e.claims.prove import prove

__all__ = ["prove"]
