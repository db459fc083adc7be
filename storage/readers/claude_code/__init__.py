"""Claude Code transcripts (README.md has the mapping)."""

from .reader import ClaudeCodeReader

__all__ = ["ClaudeCodeReader"]
