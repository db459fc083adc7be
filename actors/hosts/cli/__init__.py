"""The command line host (`session-query`). Imports the service's public door; nothing imports it."""

from __future__ import annotations

from .app import main

__all__ = ["main"]
