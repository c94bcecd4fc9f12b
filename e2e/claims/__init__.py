"""What the live deployment must show: one small file a family of claims."""

from e2e.claims.prove import prove, under_load

__all__ = ["prove", "under_load"]
