"""Reader of Agent Client Protocol captures (README.md)."""

from .reader import AcpReader

__all__ = ["AcpReader"]
