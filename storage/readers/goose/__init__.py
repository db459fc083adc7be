"""Reader of Goose sessions (README.md)."""

from .reader import GooseReader

__all__ = ["GooseReader"]
