"""Factory Droid sessions (README.md has the mapping)."""

from .reader import DroidReader

__all__ = ["DroidReader"]
