"""Goose's store: ``sessions.db`` with the tables ``sessions`` and ``messages``."""

from __future__ import annotations

from typing import Final

from ....protocol.json_value import JSON
from ...sqlite import Connection
from ..corelog.foreign_db import json_column, rows_of, signatures_of
from ..corelog.session_db import Loaded
from ..corelog.shapes import text_of
from .mapper import VERSION, GooseMapper


class GooseStore:
    """See ``Store``."""

    version: Final = VERSION
    tables: Final = frozenset(("sessions", "messages"))

    def signatures(self, connection: Connection) -> dict[str, bytes]:
        return signatures_of(connection, "sessions", {"messages": "content_json"}, order="created_at, id")

    def load(self, connection: Connection, session_id: str) -> Loaded | None:
        sessions = rows_of(connection, "sessions", session_id, key="id", order="id")
        if not sessions:
            return None
        mapper = GooseMapper(session_id, None)
        mapper.header({key: value for key, value in sessions[0].items() if value is not None})
        rows = rows_of(connection, "messages", session_id, order="created_timestamp, id")
        lost = size = 0
        for row in rows:
            size += len(text_of(row.get("content_json")))
            message = _message(row)
            if message is None:
                lost += 1
            else:
                mapper.message(message)
        (delta,) = mapper.take()
        return Loaded(delta, 1 + len(rows), lost, size)


def _message(row: dict[str, JSON]) -> dict[str, JSON] | None:
    """A row in the shape of a line: its JSON columns as values."""
    content = json_column(row.get("content_json"))
    if not isinstance(content, list):
        return None
    rest = {key: value for key, value in row.items() if key not in ("content_json", "metadata_json")}
    message_id = text_of(row.get("message_id")) or None
    return {
        **rest,
        "id": message_id,
        "created": row.get("created_timestamp"),
        "content": content,
        "metadata": json_column(row.get("metadata_json")),
    }
