"""What the editors of both formats share: the refusal, and the habits of a file."""

from __future__ import annotations


class EditRefused(Exception):
    """The file cannot be edited without risk; it is as it was. The message says why, for a person."""


def newline_of(text: str) -> str:
    """The line ending a file uses: that of its first line."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"
