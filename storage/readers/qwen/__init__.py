"""Qwen Code chats (README.md has the mapping)."""

from .reader import QwenReader

__all__ = ["QwenReader"]
