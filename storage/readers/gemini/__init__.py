"""Reader of Gemini CLI chats (README.md)."""

from .reader import GeminiReader

__all__ = ["GeminiReader"]
