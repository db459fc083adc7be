"""The catalog's records and how they lie in its tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from sys import intern
from typing import Final, cast

import attrs
import msgspec

from ...protocol.event import Event
from ...protocol.header import SessionHeader
from ...protocol.json_codec import decode_json, encode_json
from ...protocol.json_value import JSON
from ...protocol.outward import SessionKey
from ...protocol.records import Title
from ...protocol.titles import TITLE
from ..index import rows as index_rows
from ..index.door import SessionState
from ..readers.seam import LogUnit
from ..sqlite import Row
from ..text_codec import TextCodec
from .spec import SourceSpec
from .stamps import Stamp, unpack_stamp
from .whereabouts import Whereabouts, pack_whereabouts, unpack_whereabouts


@attrs.define(eq=False)
class Root:
    """A source's root. ``label`` keeps the places of a second root of one format apart from the first's.

    ``missing``: the root itself was not there when it was last looked for.
    """

    root_id: int
    spec: SourceSpec
    label: str
    walked_ms: int = 0
    missing: bool = False

    @property
    def top(self) -> str:
        """The root's path."""
        return str(self.spec.root)

    def place(self, unit: LogUnit) -> str:
        """The place of a unit's sessions: its folder, behind the root's own name if it is not the first."""
        return f"{self.label}/{unit.place}" if self.label else unit.place

    def reader_place(self, unit: Unit) -> str:
        """The place as the reader knows it."""
        return unit.place.removeprefix(f"{self.label}/") if self.label else unit.place

    def pack(self, found: Whereabouts) -> bytes:
        """Where a log of this root lies, as it is kept."""
        return pack_whereabouts(found, self.top, self.label)


@attrs.define(eq=False)
class Unit:
    """One log as it was when last read. ``stamp`` None: it has to be read, or read on.

    ``problem`` is a refusal's kind, ``error`` (it could not be read) or ``bug`` (its reader failed), with
    ``message``. ``gone``: it was deleted. ``place`` is where it was first seen and stays when it moves;
    ``home`` is where it lies now.
    """

    unit_id: int
    root_id: int
    path: str
    place: str
    home: str
    files: tuple[str, ...]
    stamp: Stamp | None = None
    version: int = 0
    epoch: int = 0
    problem: str | None = None
    message: str | None = None
    gone: bool = False
    handed: bool = False
    """A session became this log's to tell after the read that is being written had begun: it is read anew."""

    @property
    def has_moved(self) -> bool:
        """It no longer lies where its sessions say; they keep their names unless another log claims them."""
        return self.home != self.place


@attrs.define(eq=False, kw_only=True)
class SessionNote:
    """What reading on needs to know of a session beside its length. Stored with its row.

    ``title_event``: the last title event of the log, as the title fold holds it; ``settled_title`` that
    of the settled part.
    ``reported``: a title the source tells beside the log. ``calls``: state of the document builder.
    ``broken``: a code; the log breaks SPEC 2 and nothing more is indexed until it is read anew.
    ``digest``: of all events, for formats that are rewritten whole: an unchanged beginning is not
    indexed again. ``losses``: damaged records counted with this session.
    """

    header: SessionHeader
    title_event: Event | None = None
    settled_title: Event | None = None
    reported: Title | None = None
    calls: tuple[str, ...] = ()
    inherited: int = 0
    notes: tuple[str, ...] = ()
    broken: str | None = None
    digest: bytes | None = None
    losses: int = 0


@attrs.define(eq=False, kw_only=True)
class CatalogSession:
    """One session of one unit. ``sid``: its number in the index, None if it is not there.

    Only the unit that tells a session (``owner``) has its ``sid``. ``number``: of the row it was read from.
    ``serial`` grows with every change of what is told; with the unit it makes the revision (SPEC 1.9.1).
    """

    unit_id: int
    key: SessionKey
    note: SessionNote
    sid: int | None = None
    owner: bool = True
    forgotten: bool = False
    epoch: int = 0
    length: int = 0
    settled: int = 0
    last_time: int = 0
    serial: int = 0
    number: int | None = None


UNIT_COLUMNS: Final = "unit_id, root_id, lies, stamp, version, epoch, problem, message, gone"
_COLUMNS: Final = (
    "c.number, c.unit_id, c.flags, c.epoch, c.length, c.tail, c.last_time, c.serial, c.id, c.note"
)
SESSION_ROWS: Final = (
    f"SELECT {_COLUMNS}, {index_rows.COLUMNS} FROM catalog_session AS c"
    " LEFT JOIN session AS s ON s.sid = c.number"
)
_OWN_COLUMNS: Final = _COLUMNS.count(",") + 1

# Flags of a session's row: what of it is in the index, and not here.
_OWNER: Final = 1
_FORGOTTEN: Final = 2
_TITLED: Final = 4  # the title reported is the index's
_TITLE_EVENT: Final = 8  # the title event says what the index's title does, and no more
_SETTLED_TITLE: Final = 16  # the settled title event is the title event


def unit_of(row: Row, roots: Mapping[int, Root]) -> Unit:
    """A row of ``UNIT_COLUMNS``."""
    unit_id, root_id, lies, stamp, version, epoch, problem, message, gone = row
    root = roots[root_id]
    found = unpack_whereabouts(lies, root.top, root.label)
    # a hundred thousand units are held at once: what is equal is one object
    place = intern(found.place)
    return Unit(
        unit_id,
        root_id,
        found.path,
        place,
        place if found.home == place else intern(found.home),
        found.files,
        unpack_stamp(stamp),
        version,
        epoch,
        problem,
        message,
        bool(gone),
    )


def session_of(format_name: str, place: str, row: Row, codec: TextCodec) -> CatalogSession | None:
    """A row of ``SESSION_ROWS`` of a unit of this format and place; None if the index no longer has it."""
    number, unit_id, flags, epoch, length, tail, last_time, serial, id_, note = row[:_OWN_COLUMNS]
    known = None
    if number > 0:
        if row[_OWN_COLUMNS] is None:
            return None
        known = index_rows.stored(row[_OWN_COLUMNS:]).state
    session_id = index_rows.from_sql(id_) if known is None else known.header.id
    packed = b"" if note is None else codec.unpack_bytes(note)
    return CatalogSession(
        unit_id=unit_id,
        key=SessionKey(format_name, place, session_id),
        note=unpack_note(packed, flags, session_id, known),
        sid=number if number > 0 else None,
        owner=bool(flags & _OWNER),
        forgotten=bool(flags & _FORGOTTEN),
        epoch=epoch,
        length=length,
        settled=length - tail,
        last_time=last_time,
        serial=serial,
        number=number,
    )


def flags_of(session: CatalogSession, known: SessionState | None) -> int:
    """What need not be kept of a session whose state the index has, and how it stands."""
    note, title = session.note, None if known is None else known.title
    flags = _OWNER * session.owner | _FORGOTTEN * session.forgotten
    if title is not None:
        flags |= _TITLED * (note.reported == title)
        flags |= _TITLE_EVENT * (note.title_event is not None and note.title_event == _plain(title))
    return flags | _SETTLED_TITLE * (note.title_event is not None and note.title_event == note.settled_title)


def is_owner(flags: int) -> bool:
    """Whether the unit of a row with these flags tells the session."""
    return bool(flags & _OWNER)


def pack_note(note: SessionNote, flags: int, known: SessionState | None) -> bytes:
    """What is kept of a note, empty for nothing; any depth, lone surrogates included."""
    header: JSON = None
    if known is None or known.header != note.header:
        fields = attrs.asdict(note.header).items()
        header = {name: value for name, value in fields if value is not None and name != "id"}
    title = None if flags & _TITLED else note.reported
    values: list[JSON] = [
        header,
        None if title is None else [title.title, [*title.message_seqs], title.source, title.seq, title.time],
        None if flags & _TITLE_EVENT else _title_row(note.title_event),
        None if flags & _SETTLED_TITLE else _title_row(note.settled_title),
        [*note.calls],
        [*note.notes],
        note.inherited,
        note.broken,
        note.losses,
        None if note.digest is None else note.digest.hex(),
    ]
    while values and not values[-1]:
        values.pop()
    return encode_json(values) if values else b""


def unpack_note(packed: bytes, flags: int, session_id: str, known: SessionState | None) -> SessionNote:
    """What ``pack_note`` was given for this session."""
    values = cast(list[JSON], decode_json(packed)) if packed else []
    values += [None] * (10 - len(values))
    header, reported, title_event, settled, calls, notes, inherited, broken, losses, digest = values
    title = None if known is None else known.title
    event = _title_event(title_event)
    if flags & _TITLE_EVENT and title is not None:
        event = _plain(title)
    if header is None:
        assert known is not None, "a session outside the index has a header of its own"
        told = known.header
    else:
        told = msgspec.convert({"id": session_id, **cast(dict[str, JSON], header)}, SessionHeader)
    return SessionNote(
        header=told,
        title_event=event,
        settled_title=event if flags & _SETTLED_TITLE else _title_event(settled),
        reported=title if flags & _TITLED else _title(reported),
        calls=tuple(cast(list[str], calls or [])),
        notes=tuple(cast(list[str], notes or [])),
        inherited=cast(int, inherited or 0),
        broken=cast(str | None, broken),
        losses=cast(int, losses or 0),
        digest=bytes.fromhex(digest) if isinstance(digest, str) else None,
    )


def _plain(title: Title) -> Event | None:
    """The event that a title stands in, if it holds nothing else."""
    if title.seq is None:
        return None
    data: JSON = {"title": title.title, "messageSeqs": [*title.message_seqs], "source": title.source}
    return Event(type=TITLE, seq=title.seq, time=title.time, data=data)


def _title_row(event: Event | None) -> JSON:
    return None if event is None else [event.seq, event.time, event.data]


def _title_event(value: JSON) -> Event | None:
    if value is None:
        return None
    seq, time, data = cast(list[JSON], value)
    return Event(type=TITLE, seq=cast(int, seq), time=cast(int, time), data=data)


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


def path_blob(path: str | Path) -> bytes:
    """A path as the file system's own bytes."""
    return os.fsencode(path)


def path_of(value: bytes) -> str:
    """What ``path_blob`` was given."""
    return os.fsdecode(value)
