"""Every reader by its name. A new one is imported and listed here, nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from .acp import AcpReader
from .claude_code import ClaudeCodeReader
from .codex import CodexReader
from .copilot import CopilotReader
from .droid import DroidReader
from .dsh import DshReader
from .gemini import GeminiReader
from .goose import GooseReader
from .hermes import HermesReader
from .kimi import KimiReader
from .opencode import OpenCodeReader
from .pi import PiReader
from .qwen import QwenReader
from .seam import Reader

_ALL: Final[tuple[Reader, ...]] = (
    DshReader(),
    ClaudeCodeReader(),
    CodexReader(),
    OpenCodeReader(),
    GeminiReader(),
    QwenReader(),
    DroidReader(),
    CopilotReader(),
    AcpReader(),
    PiReader(),
    KimiReader(),
    GooseReader(),
    HermesReader(),
)

READERS: Final[Mapping[str, Reader]] = MappingProxyType({reader.format: reader for reader in _ALL})
"""In the order in which sources rank by default (SPEC 16.6.3)."""


def reader_named(name: str) -> Reader:
    """The reader of a format. Raises: KeyError: there is none of that name."""
    return READERS[name]
