"""Reader of Kimi sessions (README.md)."""

from .reader import KimiReader

__all__ = ["KimiReader"]
