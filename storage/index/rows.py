"""Session rows: how a session's state is stored and read back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, cast

import attrs

from ...protocol.header import SessionHeader
from ...protocol.json_codec import decode_json, encode_json
from ...protocol.json_value import JSON
from ...protocol.records import Title
from ..sqlite import Connection, Row, SqlValue
from .door import SessionKey, SessionState, StoredSession

SUB_AGENT: Final = "subagent"

COLUMNS: Final = (
    "s.sid, s.source, s.place, s.id, s.created_at, s.parent, s.rank, s.visible, s.error, s.durable,"
    " s.persisted, s.inherited, s.losses, s.documents, s.generation, s.state"
)
"""What ``stored`` reads, of ``session AS s``."""


_IN_COLUMNS: Final = ("id", "created_at", "parent_session")


def to_sql(text: str | None) -> SqlValue:
    """A text as a column value. Lone surrogates have no UTF-8: such a text is kept as a blob."""
    if text is None or text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def from_sql(value: SqlValue) -> str:
    """The text that ``to_sql`` stored."""
    return value if isinstance(value, str) else cast(bytes, value).decode("utf-8", "surrogatepass")


def encode_state(state: SessionState) -> bytes:
    """The part of a state that no query looks into."""
    title = state.title
    value: dict[str, JSON] = {
        "header": {
            name: item
            for name, item in attrs.asdict(state.header).items()
            if item is not None and name not in _IN_COLUMNS
        },
        "length": state.length,
        "revision": state.revision,
    }
    if title is not None:
        value["title"] = [title.title, list(title.message_seqs), title.source, title.seq, title.time]
    if state.title_error is not None:
        value["title_error"] = state.title_error
    if state.source_gone:
        value["source_gone"] = True
    if state.path is not None:
        value["path"] = state.path
    return encode_json(value)


def stored(row: Row) -> StoredSession:
    """A row of ``COLUMNS`` as a session."""
    (sid, source, place, id_, created_at, parent, rank, visible, error, durable, persisted, inherited, losses,
     documents, generation, blob) = row  # fmt: skip
    value = cast(dict[str, JSON], decode_json(blob))
    key = SessionKey(source, from_sql(place), from_sql(id_))
    header = SessionHeader(
        id=key.id,
        created_at=created_at,
        parent_session=None if parent is None else from_sql(parent),
        **cast(dict[str, object], value["header"]),  # type: ignore[arg-type]  # our own writing
    )
    state = SessionState(
        header=header,
        rank=rank,
        title=_title(value.get("title")),
        title_error=cast(str | None, value.get("title_error")),
        length=cast(int, value["length"]),
        revision=cast(str, value["revision"]),
        inherited=inherited,
        persisted=bool(persisted),
        source_gone=bool(value.get("source_gone", False)),
        error=error,
        losses=losses,
        path=cast(str | None, value.get("path")),
        durable=bool(durable),
    )
    return StoredSession(
        sid=sid, key=key, state=state, generation=generation, documents=documents, visible=bool(visible)
    )


def _title(value: JSON) -> Title | None:
    if value is None:
        return None
    text, seqs, source, seq, time = cast(list[JSON], value)
    return Title(
        title=cast(str, text),
        message_seqs=tuple(cast(list[int], seqs)),
        source=source,
        seq=cast(int | None, seq),
        time=cast(int, time),
    )


def find(connection: Connection, key: SessionKey) -> StoredSession | None:
    """The session with this key."""
    row = connection.execute(
        f"SELECT {COLUMNS} FROM session AS s WHERE s.source = ? AND s.place = ? AND s.id = ?",
        (key.source, to_sql(key.place), to_sql(key.id)),
    ).fetchone()
    return None if row is None else stored(row)


def sid_of(connection: Connection, key: SessionKey) -> int | None:
    """The number of the session with this key."""
    row = connection.execute(
        "SELECT sid FROM session WHERE source = ? AND place = ? AND id = ?",
        (key.source, to_sql(key.place), to_sql(key.id)),
    ).fetchone()
    return None if row is None else int(row[0])


def by_sid(connection: Connection, sid: int) -> StoredSession | None:
    """The session with this sid."""
    row = connection.execute(f"SELECT {COLUMNS} FROM session AS s WHERE s.sid = ?", (sid,)).fetchone()
    return None if row is None else stored(row)


def by_sids(connection: Connection, sids: Iterable[int]) -> list[StoredSession]:
    """Those of some sessions that exist, in any order."""
    found = connection.execute(
        f"SELECT {COLUMNS} FROM json_each(?) AS j CROSS JOIN session AS s ON s.sid = j.value",
        (json.dumps(list(sids)),),
    ).fetchall()
    return [stored(row) for row in found]
