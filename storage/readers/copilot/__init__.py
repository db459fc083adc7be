"""GitHub Copilot CLI sessions (README.md has the mapping)."""

from .reader import CopilotReader

__all__ = ["CopilotReader"]
