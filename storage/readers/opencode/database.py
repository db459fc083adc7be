"""OpenCode's newer store: one SQLite database for all sessions (README.md)."""

from __future__ import annotations

from typing import Final

from ...sqlite import Connection
from ..corelog.foreign_db import columns_of, json_column, rows_of, signatures_of
from ..corelog.session_db import Loaded
from ..corelog.shapes import text_of
from .mapper import VERSION, Message, Record, map_session

NOTE_ELSEWHERE: Final = "its messages stand in the table session_message, which this reader cannot read"


class OpenCodeStore:
    """See ``Store``."""

    version: Final = VERSION
    tables: Final = frozenset(("session", "message", "part"))

    def signatures(self, connection: Connection) -> dict[str, bytes]:
        owned = {"message": "data", "part": "data"}
        return signatures_of(connection, "session", owned, order="time_created, id")

    def load(self, connection: Connection, session_id: str) -> Loaded | None:
        """Messages by (created, id), parts by id. A part of no message is lost."""
        sessions = rows_of(connection, "session", session_id, key="id", order="id")
        if not sessions:
            return None
        message_rows = rows_of(connection, "message", session_id, order="time_created, id")
        part_rows = rows_of(connection, "part", session_id, order="message_id, id")
        messages = _messages(message_rows, part_rows)
        rows = 1 + len(message_rows) + len(part_rows)
        held = 1 + len(messages) + sum(len(message.parts) for message in messages)
        size = sum(len(text_of(row.get("data"))) for row in (*message_rows, *part_rows))
        info: Record = {key: value for key, value in sessions[0].items() if value is not None}
        delta = map_session(info, messages, session_id)
        if not message_rows and _tells_elsewhere(connection, session_id):
            delta.notes.append(NOTE_ELSEWHERE)
        return Loaded(delta, rows, rows - held, size)


def _tells_elsewhere(connection: Connection, session_id: str) -> bool:
    """Whether a session without messages has rows in the table of newer builds, whose shape is not public."""
    if "session_id" not in columns_of(connection, "session_message"):
        return False
    sql = "SELECT 1 FROM session_message WHERE session_id = ? LIMIT 1"
    return bool(connection.execute(sql, (session_id,)).fetchall())


def _messages(message_rows: list[Record], part_rows: list[Record]) -> list[Message]:
    parts: dict[str, list[Record]] = {}
    for row in part_rows:
        part = _whole(row, {"id": "id", "messageID": "message_id", "sessionID": "session_id"})
        if part is not None:
            parts.setdefault(text_of(row.get("message_id")), []).append(part)
    messages = []
    for row in message_rows:
        info = _whole(row, {"id": "id", "sessionID": "session_id"})
        if info is not None:
            messages.append(Message(info, parts.pop(text_of(row.get("id")), [])))
    return messages


def _whole(row: Record, columns: dict[str, str]) -> Record | None:
    """The JSON of a row with the ids it leaves to the columns; None if it is no object."""
    data = json_column(row.get("data"))
    if not isinstance(data, dict):
        return None
    missing = {key: row.get(column) for key, column in columns.items() if key not in data}
    return {**data, **missing}
