"""Where a foreign session's log is, for exact reads. Works over any connection that sees the index file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs

from ...protocol.event import Event
from ...protocol.outward import SessionKey
from ..readers.seam import LogUnit, Reader
from ..sqlite import Connection
from .catalog_rows import path_of, text_of, unpack_files

_BY_SID = """SELECT r.format, r.root, r.label, u.path, u.place, u.files, s.id, s.place
    FROM catalog_session AS s JOIN catalog_unit AS u ON u.unit_id = s.unit_id
    JOIN catalog_root AS r ON r.root_id = u.root_id
    WHERE s.sid = ? AND s.owner AND NOT s.forgotten AND NOT u.gone"""


@attrs.frozen(kw_only=True)
class Located:
    """A session's log as a unit its reader takes, and the session's id within it."""

    format: str
    key: SessionKey
    unit: LogUnit


def locate(connection: Connection, sid: int) -> Located | None:
    """The log that tells the session with this index number; None if its log is gone or it has none."""
    rows = connection.execute(_BY_SID, (sid,)).fetchall()
    if not rows:
        return None
    name, root, label, path, place, files, id_, session_place = rows[0]
    unit = LogUnit(
        format=name,
        root=Path(path_of(root)),
        path=Path(path_of(path)),
        place=text_of(place).removeprefix(f"{label}/") if label else text_of(place),
        files=tuple(map(Path, unpack_files(files, path))),
    )
    return Located(format=name, key=SessionKey(name, text_of(session_place), text_of(id_)), unit=unit)


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
