"""Making foreign text safe to stand inside our lines (SPEC 14 L23, 16.9).

Titles, ids, types and snippets come from logs that anyone may have written. None of them may end a
line of ours, hide a part of it, or turn its direction; exact reads show them whole, as JSON.
"""

from __future__ import annotations

import json
import re
from typing import Final

from ..whitespace import collapse

TITLE_CHARS: Final = 120
_NAME_CHARS: Final = 400

# C0 and C1 controls, soft hyphen, Arabic letter mark, zero-width space to right-to-left mark,
# line and paragraph separators, bidirectional embeddings, word joiner to isolates, BOM, interlinear
# marks, tag characters. Zero-width (non-)joiners spell words and emoji: they stay inside snippets.
_CONTROLS: Final = "\\x00-\\x1f\\x7f-\\x9f"
_MARKS: Final = "\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufff9-\\ufffb\\U000e0000-\\U000e007f"
_UNSAFE: Final = re.compile(f"[{_CONTROLS}{_MARKS}]")
_INVISIBLE: Final = re.compile(f"[{_CONTROLS}{_MARKS}\\u00ad\\u180e\\u200b-\\u200d\\u2060-\\u2065\\ufeff]")
_TERMINAL_ESCAPE: Final = re.compile(
    "(?:\\x1b\\[|\\x9b)[0-?]*[ -/]*[@-~]"  # control sequences: colours, cursor movement
    "|(?:\\x1b[\\]PX^_]|[\\x9d\\x90\\x98\\x9e\\x9f])[^\\x07\\x1b\\x9c]*(?:\\x07|\\x1b\\\\|\\x9c)"  # strings
    "|\\x1b[ -/]*[0-~]"
)
_LINE_BREAK: Final = re.compile("(\\r\\n|[\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029])")
_SURROGATE: Final = re.compile("[\\ud800-\\udfff]")


def clean_title(text: str, limit: int = TITLE_CHARS) -> str:
    """Return a title as one visible line of at most ``limit`` code points; empty if nothing is left.

    Terminal escapes, controls, bidirectional and zero-width marks go; whitespace collapses.
    """
    # Nothing beyond this can be shown; a title of megabytes must not cost megabytes of work.
    head = text[: limit * 16]
    plain = _INVISIBLE.sub("", collapse(_TERMINAL_ESCAPE.sub("", head)))
    shown = collapse(plain)
    return _capped(_SURROGATE.sub("\ufffd", shown), limit)


def one_line(text: str, limit: int = _NAME_CHARS) -> str:
    """Return a name (a type, a path) in one line: each unsafe character becomes U+FFFD."""
    return _capped(_visible(text[: limit + 1]), limit)


def shown_id(session_id: str) -> str:
    """Return an id as it is, or as a JSON string if it could not stand in a line; never shortened.

    A model must be able to call back with it, so nothing is replaced.
    """
    if session_id and not _UNSAFE.search(session_id) and session_id == collapse(session_id):
        return session_id if not _SURROGATE.search(session_id) else json.dumps(session_id)
    return json.dumps(session_id)


def quoted_line(snippet: str) -> str:
    """Return a snippet marked as a quotation, in one line."""
    return "> " + _visible(snippet)


def indented(text: str, indent: str) -> str:
    """Return ``text`` with ``indent`` before every line, whatever breaks lines; no character is lost."""
    return indent + _LINE_BREAK.sub(lambda found: found[0] + indent, _SURROGATE.sub("\ufffd", text))


def fence_for(text: str) -> str:
    """Return a code fence that no run of backticks inside ``text`` can close."""
    if "`" not in text:
        return "```"  # found at memory speed, where the pattern takes 7 us a KiB
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(3, longest + 1)


def _visible(text: str) -> str:
    return _SURROGATE.sub("\ufffd", _UNSAFE.sub("\ufffd", text))


def _capped(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
