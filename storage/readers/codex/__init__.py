"""Reader of OpenAI Codex CLI logs (README.md)."""

from .reader import CodexReader

__all__ = ["CodexReader"]
