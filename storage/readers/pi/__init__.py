"""Reader of pi sessions (README.md)."""

from .reader import PiReader

__all__ = ["PiReader"]
