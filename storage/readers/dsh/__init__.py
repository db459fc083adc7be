"""DeepSeek Harness logs; see README.md."""

from __future__ import annotations

from .reader import READER, DshReader

__all__ = ["READER", "DshReader"]
