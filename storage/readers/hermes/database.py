"""Hermes's store: ``state.db`` with the tables ``sessions`` and ``messages``."""

from __future__ import annotations

from typing import Final

from ....protocol.json_value import JSON
from ...sqlite import Connection
from ..corelog.foreign_db import json_column, rows_of, signatures_of
from ..corelog.session_db import Loaded
from ..corelog.shapes import text_of
from .mapper import VERSION, HermesMapper


class HermesStore:
    """See ``Store``."""

    version: Final = VERSION
    tables: Final = frozenset(("sessions", "messages"))

    def signatures(self, connection: Connection) -> dict[str, bytes]:
        return signatures_of(connection, "sessions", {"messages": "content"}, order="started_at, id")

    def load(self, connection: Connection, session_id: str) -> Loaded | None:
        sessions = rows_of(connection, "sessions", session_id, key="id", order="id")
        if not sessions:
            return None
        mapper = HermesMapper(session_id, None)
        mapper.header(_told(sessions[0]))
        rows = rows_of(connection, "messages", session_id, order="id")
        for row in rows:
            mapper.message(_told(row))
        (delta,) = mapper.take()
        size = sum(len(text_of(row.get("content"))) for row in rows)
        return Loaded(delta, 1 + len(rows), 0, size)


def _told(row: dict[str, JSON]) -> dict[str, JSON]:
    """A row without empty columns, its JSON columns as values, as documents have them."""
    told: dict[str, JSON] = {key: value for key, value in row.items() if value is not None}
    for key in ("tool_calls", "model_config"):
        value = json_column(told.get(key))
        if value is not None:
            told[key] = value
    content = json_column(told.get("content")) if text_of(told.get("content")).startswith("[{") else None
    if isinstance(content, list):
        told["content"] = content
    return told
