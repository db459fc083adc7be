"""Where a foreign session's log is, for exact reads. Works over any connection that sees the index file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import attrs

from ...protocol.event import Event
from ...protocol.outward import SessionKey
from ..index.rows import from_sql
from ..readers.discovery import printable
from ..readers.seam import LogUnit, Reader
from ..sqlite import Connection
from .catalog_rows import path_of
from .stamps import Stamp, unpack_stamp
from .whereabouts import unpack_whereabouts

_BY_SID: Final = """SELECT r.format, r.root, r.label, u.lies, u.stamp, s.id, s.place
    FROM catalog_session AS c JOIN session AS s ON s.sid = c.number
    JOIN catalog_unit AS u ON u.unit_id = c.unit_id JOIN catalog_root AS r ON r.root_id = u.root_id
    WHERE c.number = ? AND NOT u.gone"""


_PATH: Final = """SELECT r.root, u.lies FROM catalog_session AS c
    JOIN catalog_unit AS u ON u.unit_id = c.unit_id JOIN catalog_root AS r ON r.root_id = u.root_id
    WHERE c.number = ?"""


@attrs.frozen(kw_only=True)
class Located:
    """A session's log as a unit its reader takes, and the session's id within it.

    ``stamp``: how the log looked when it was read, None if it has to be read again.
    """

    format: str
    key: SessionKey
    unit: LogUnit
    stamp: Stamp | None


def locate(connection: Connection, sid: int) -> Located | None:
    """The log that tells the session with this index number; None if its log is gone or it has none."""
    rows = connection.execute(_BY_SID, (sid,)).fetchall()
    if not rows:
        return None
    name, root, label, lies, stamp, id_, session_place = rows[0]
    found = unpack_whereabouts(lies, path_of(root), label)
    unit = LogUnit(
        format=name,
        root=Path(path_of(root)),
        path=Path(found.path),
        place=found.place.removeprefix(f"{label}/") if label else found.place,
        files=tuple(map(Path, found.files)),
    )
    key = SessionKey(name, from_sql(session_place), from_sql(id_))
    return Located(format=name, key=key, unit=unit, stamp=unpack_stamp(stamp))


def log_path(connection: Connection, sid: int) -> str | None:
    """Where the log that tells this session lies, or lay; None if it has none."""
    rows = connection.execute(_PATH, (sid,)).fetchall()
    if not rows:
        return None
    root, lies = rows[0]
    return printable(unpack_whereabouts(lies, path_of(root), "").path)


def read_located(
    reader: Reader, located: Located, stopped: Callable[[], bool] = lambda: False
) -> list[Event]:
    """The session's events as its log tells them now, in order.

    ``stopped`` is asked between batches; what was read by then is returned.
    Raises: OSError: the log cannot be read.
    """
    events: list[Event] = []
    for batch in reader.read(located.unit, None, stopped):
        for delta in batch.sessions:
            if delta.header.id == located.key.id:
                events[delta.first_seq :] = delta.events
    return events


def read_first(reader: Reader, located: Located) -> Event | None:
    """The session's first event; as little is read as that takes. Raises: OSError."""
    for batch in reader.read(located.unit, None, lambda: False):
        for delta in batch.sessions:
            if delta.header.id == located.key.id and delta.first_seq == 0 and delta.events:
                return delta.events[0]
    return None
