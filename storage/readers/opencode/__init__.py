"""Reader of OpenCode sessions (README.md)."""

from .reader import OpenCodeReader

__all__ = ["OpenCodeReader"]
