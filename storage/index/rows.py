"""Session rows: how a session's state is stored and read back.

Of 356 real sessions a state takes 57 bytes in the mean. As JSON with names, ``cwd`` and the log's path it was
280, and was read no faster (7 us a row).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, cast

import msgspec

from ...protocol.header import SessionHeader
from ...protocol.json_codec import decode_json, encode_json
from ...protocol.json_value import JSON
from ...protocol.records import Title
from ..sqlite import Connection, Row, SqlValue
from .door import SessionKey, SessionState, StoredSession

SUB_AGENT: Final = "subagent"

COLUMNS: Final = (
    "s.sid, s.source, s.place, s.id, s.created_at, s.parent, s.rank, s.visible, s.error, s.durable,"
    " s.persisted, s.inherited, s.losses, s.documents, s.generation, s.state,"
    " (SELECT cwd FROM workspace WHERE ws = s.ws)"
)
"""What ``stored`` reads, of ``session AS s``."""

_FALLBACK: Final[dict[str, JSON]] = {"kind": "fallback"}
"""The source of most titles: left out."""
_OF_A_LOG: Final = re.compile(r"([0-9a-f]{8}):([1-9][0-9]{0,17})\.([1-9][0-9]{0,17})")
"""How revisions of logs are written (SPEC 1.9.1): kept as three numbers."""
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[Any]).decode
_DEFAULTS: Final[tuple[JSON, ...]] = (0, "", None, None, None, None, None, 0, None, False)
"""Of the values of a state, in their order."""
_MSGPACK_LIST: Final = range(0x90, 0xA0)
"""What a state of up to 15 values begins with; one as JSON, for what MessagePack cannot say, with ``[``."""


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


def key_hash(key: SessionKey) -> int:
    """What a key is looked up by; the key itself is compared as well. Those of one source lie together."""
    rest = blake2b(f"{len(key.place)},{key.place}{key.id}".encode("utf-8", "surrogatepass"), digest_size=6)
    return _first_of(key.source) + int.from_bytes(rest.digest(), "big")


@lru_cache(maxsize=64)
def _first_of(source: str) -> int:
    """The least hash of a source's keys."""
    digest = blake2b(source.encode("utf-8", "surrogatepass"), digest_size=2).digest()
    return int.from_bytes(digest, "big", signed=True) << 48


OF_SOURCE: Final = "s.key BETWEEN ? AND ? AND s.source = ?"
"""Sessions of a source, given ``of_source``'s values."""


def of_source(source: str) -> tuple[SqlValue, ...]:
    """The values of ``OF_SOURCE``."""
    first = _first_of(source)
    return first, first + (1 << 48) - 1, source


def encode_state(state: SessionState) -> bytes:
    """The part of a state that no query looks into, by place, what is default at its end left out."""
    header = state.header
    values: list[JSON] = [
        state.length,
        _packed_revision(state.revision),
        _packed_title(state.title, header.created_at),
        header.origin,
        header.delegation_depth,
        header.agent_preset,
        header.seed_length,
        header.version,
        state.title_error,
        state.source_gone,
    ]
    while values and values[-1] == _DEFAULTS[len(values) - 1]:
        values.pop()
    try:
        return _encode(values)
    except (UnicodeEncodeError, OverflowError):
        return encode_json(values)  # lone surrogates, numbers beyond 64 bits


def stored(row: Row) -> StoredSession:
    """A row of ``COLUMNS`` as a session."""
    (sid, source, place, id_, created_at, parent, rank, visible, error, durable, persisted, inherited, losses,
     documents, generation, blob, cwd) = row  # fmt: skip
    values = _decode(blob) if blob[0] in _MSGPACK_LIST else cast(list[Any], decode_json(blob))
    values += _DEFAULTS[len(values) :]
    length, revision, title, origin, depth, preset, seed_length, version, title_error, source_gone = values
    key = SessionKey(source, from_sql(place), from_sql(id_))
    header = SessionHeader(
        id=key.id,
        created_at=created_at,
        cwd=None if cwd is None else from_sql(cwd),
        parent_session=None if parent is None else from_sql(parent),
        seed_length=seed_length,
        origin=origin,
        delegation_depth=depth,
        agent_preset=preset,
        version=version,
    )
    state = SessionState(
        header=header,
        rank=rank,
        title=None if title is None else _title(title, created_at),
        title_error=title_error,
        length=length,
        revision=revision if isinstance(revision, str) else _revision(*revision),
        inherited=inherited,
        persisted=bool(persisted),
        source_gone=source_gone,
        error=error,
        losses=losses,
        durable=bool(durable),
    )
    return StoredSession(
        sid=sid, key=key, state=state, generation=generation, documents=documents, visible=bool(visible)
    )


def _packed_revision(revision: str) -> JSON:
    found = _OF_A_LOG.fullmatch(revision)
    return revision if found is None else [int(found[1], 16), int(found[2]), int(found[3])]


def _revision(store: int, unit: int, serial: int) -> str:
    return f"{store:08x}:{unit}.{serial}"


def _packed_title(title: Title | None, created_at: int) -> JSON:
    if title is None:
        return None
    values: list[JSON] = [title.title, title.time - created_at, [*title.message_seqs], title.seq]
    return values if title.source == _FALLBACK else [*values, encode_json(title.source).decode()]


def _title(value: list[JSON], created_at: int) -> Title:
    text, since, seqs, seq = value[:4]
    return Title(
        title=cast(str, text),
        message_seqs=tuple(cast(list[int], seqs)),
        source=decode_json(cast(str, value[4]).encode()) if len(value) > 4 else {**_FALLBACK},
        seq=cast(int | None, seq),
        time=created_at + cast(int, since),
    )


_IS_KEY: Final = "s.key = ? AND s.source = ? AND s.place = ? AND s.id = ?"


def _identity(key: SessionKey) -> tuple[SqlValue, ...]:
    return key_hash(key), key.source, to_sql(key.place), to_sql(key.id)


def find(connection: Connection, key: SessionKey) -> StoredSession | None:
    """The session with this key."""
    row = connection.execute(f"SELECT {COLUMNS} FROM session AS s WHERE {_IS_KEY}", _identity(key)).fetchone()
    return None if row is None else stored(row)


def sid_of(connection: Connection, key: SessionKey) -> int | None:
    """The number of the session with this key."""
    row = connection.execute(f"SELECT s.sid FROM session AS s WHERE {_IS_KEY}", _identity(key)).fetchone()
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
