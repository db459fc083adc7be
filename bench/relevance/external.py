"""Other people's question sets, scored the same way: long conversations, each question with its sessions.

The file is a JSON list of entries::

    {"question": "...", "sessions": [{"id": "...", "turns": [{"role": "user", "content": "..."}]}],
     "answer_session_ids": ["..."]}

``question_type`` groups entries if it is there. ``haystack_sessions`` with ``haystack_session_ids`` may
stand for ``sessions``, and plain strings for turns. Each entry is searched in its own sessions alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from ...protocol.header import SessionHeader
from ...protocol.json_codec import decode_json
from ...protocol.json_value import JSON
from .composing import EPOCH_MS, LabelledSession, written_log
from .notation import Part, Turn
from .scoring import Case

UNGROUPED: Final = "question"
WORKSPACE: Final = "/external"


class ExternalSetError(ValueError):
    """The file is not of the shape above; the message names the entry."""


@attrs.frozen
class Entry:
    """One question with the sessions it is asked of."""

    case: Case
    sessions: tuple[LabelledSession, ...]


def read_external(path: Path) -> list[Entry]:
    """Read a whole file. Entries without an answer among their sessions are negatives.

    Raises: ExternalSetError: not such a list. JsonError: no JSON.
    """
    value = decode_json(path.read_bytes())
    if not isinstance(value, list):
        raise ExternalSetError("the file holds no list")
    return [_entry(number, item) for number, item in enumerate(value)]


def by_sessions(entries: Sequence[Entry]) -> Iterator[tuple[tuple[LabelledSession, ...], list[Case]]]:
    """Neighbouring entries over the same sessions together, so that these are indexed once."""
    at = 0
    while at < len(entries):
        sessions = entries[at].sessions
        cases = []
        while at < len(entries) and entries[at].sessions == sessions:
            cases.append(entries[at].case)
            at += 1
        yield sessions, cases


def _entry(number: int, item: JSON) -> Entry:
    if not isinstance(item, dict) or not isinstance(question := item.get("question"), str):
        raise ExternalSetError(f"entry {number} has no question")
    sessions = [_session(number, *pair) for pair in _raw_sessions(number, item)]
    ids = {session.header.id for session in sessions}
    answers = item.get("answer_session_ids")
    if not isinstance(answers, list):
        raise ExternalSetError(f"entry {number} has no answer_session_ids")
    group = item.get("question_type")
    case = Case(
        text=question,
        group=group if isinstance(group, str) else UNGROUPED,
        answers=tuple(frozenset((str(answer),)) for answer in answers if str(answer) in ids),
    )
    return Entry(case, tuple(sessions))


def _raw_sessions(number: int, item: dict[str, JSON]) -> list[tuple[str, JSON]]:
    sessions = item.get("sessions", item.get("haystack_sessions"))
    ids = item.get("haystack_session_ids")
    if not isinstance(sessions, list):
        raise ExternalSetError(f"entry {number} has no sessions")
    found: dict[str, JSON] = {}
    for place, session in enumerate(sessions):
        if isinstance(session, dict):
            found[str(session.get("id", place))] = session.get("turns")
        else:
            found[str(ids[place]) if isinstance(ids, list) and place < len(ids) else str(place)] = session
    return list(found.items())


def _session(number: int, name: str, turns: JSON) -> LabelledSession:
    if not isinstance(turns, list):
        raise ExternalSetError(f"session {name} of entry {number} has no turns")
    digest = int(hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8], 16)
    header = SessionHeader(id=name, created_at=EPOCH_MS + digest, cwd=WORKSPACE)
    events = written_log(_exchanges(turns), header.created_at, name)
    return LabelledSession(
        slug=name,
        topic="external",
        header=header,
        events=tuple(events),
        inherited=0,
        asks=False,
        searches=False,
        aside=False,
        parent=None,
        is_sub_agent=False,
    )


def _exchanges(turns: list[JSON]) -> list[Turn]:
    """Prompts with the answers behind them. Whoever is no assistant prompts; a named speaker stays named."""
    found: list[list[Part]] = []
    for turn in turns:
        role, text = _said(turn)
        if role == "assistant" and found:
            found[-1].append(Part("<", text))
        elif role == "assistant":
            found.append([Part("<", text)])
        else:
            found.append([Part(">", text)])
    return [tuple(parts) for parts in found]


def _said(turn: JSON) -> tuple[str, str]:
    if isinstance(turn, str):
        return "user", turn
    if not isinstance(turn, dict):
        return "user", ""
    text = next((turn[key] for key in ("content", "text") if isinstance(turn.get(key), str)), "")
    role = turn.get("role", "user")
    speaker = turn.get("speaker")
    said = f"{speaker}: {text}" if isinstance(speaker, str) else str(text)
    return str(role), said
