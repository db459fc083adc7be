"""OpenCode's newer store: one SQLite database for all sessions (README.md).

Only sessions whose signature moved are read again. A signature is the session's row, and count, last
update and last row of its messages and parts; where a store keeps no update times, the size of their
data too.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import attrs
import msgspec

from ...sqlite import Connection
from ..corelog.foreign_db import columns_of, json_column, rows_of
from ..corelog.shapes import text_of
from .mapper import Message, Record

TABLES: Final = frozenset(("session", "message", "part"))


class Known(msgspec.Struct):
    """What a checkpoint remembers: session id to signature."""

    signatures: dict[str, bytes] = {}


def signatures(connection: Connection) -> dict[str, bytes]:
    """Every session with what tells whether it changed, oldest first."""
    rows: dict[str, list[object]] = {}
    for (name,) in _query(connection, "SELECT id FROM session ORDER BY time_created, id"):
        if isinstance(name, str):
            rows[name] = [rows_of(connection, "session", name, key="id", order="id")]
    for table in ("message", "part"):
        timed = "time_updated" in columns_of(connection, table)
        updated = "max(time_updated)" if timed else "0"
        for name, *facts in _query(
            connection, f"SELECT session_id, count(*), max(rowid), {updated} FROM {table} GROUP BY session_id"
        ):
            if name in rows:
                if not facts[-1]:
                    facts += _sizes(connection, table, name)
                rows[name].append(facts)
    return {
        name: blake2b(repr(facts).encode("utf-8", "replace"), digest_size=8).digest()
        for name, facts in rows.items()
    }


def _sizes(connection: Connection, table: str, session_id: str) -> list[object]:
    return [*_query(connection, f"SELECT total(length(data)) FROM {table} WHERE session_id = ?", session_id)]


def _query(connection: Connection, sql: str, *values: str) -> list[tuple[object, ...]]:
    return connection.execute(sql, values).fetchall()


@attrs.frozen
class Loaded:
    """One session's rows: ``lost`` are rows whose data is no JSON object, or parts of no message."""

    info: Record
    messages: list[Message]
    rows: int
    lost: int
    bytes_read: int


def load(connection: Connection, session_id: str) -> Loaded | None:
    """The rows of one session: messages by (created, id), parts by id. None if it is gone."""
    sessions = rows_of(connection, "session", session_id, key="id", order="id")
    if not sessions:
        return None
    message_rows = rows_of(connection, "message", session_id, order="time_created, id")
    part_rows = rows_of(connection, "part", session_id, order="message_id, id")
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
    rows = 1 + len(message_rows) + len(part_rows)
    held = 1 + len(messages) + sum(len(message.parts) for message in messages)
    size = sum(len(text_of(row.get("data"))) for row in (*message_rows, *part_rows))
    return Loaded(sessions[0], messages, rows, rows - held, size)


def _whole(row: Record, columns: dict[str, str]) -> Record | None:
    """The JSON of a row with the ids it leaves to the columns; None if it is no object."""
    data = json_column(row.get("data"))
    if not isinstance(data, dict):
        return None
    missing = {key: row.get(column) for key, column in columns.items() if key not in data}
    return {**data, **missing}
