"""Reader of Hermes sessions (README.md)."""

from .reader import HermesReader

__all__ = ["HermesReader"]
