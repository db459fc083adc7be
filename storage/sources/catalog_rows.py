"""The catalog's records and how they lie in its tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
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
from ..readers.seam import LogUnit
from ..sqlite import Row
from ..text_codec import TextCodec
from .spec import SourceSpec
from .stamps import Stamp, unpack_stamp


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

    def place(self, unit: LogUnit) -> str:
        """The place of a unit's sessions: its folder, behind the root's own name if it is not the first."""
        return f"{self.label}/{unit.place}" if self.label else unit.place

    def reader_place(self, unit: Unit) -> str:
        """The place as the reader knows it."""
        return unit.place.removeprefix(f"{self.label}/") if self.label else unit.place


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


UNIT_COLUMNS: Final = (
    "unit_id, root_id, path, place, home, files, stamp, version, epoch, problem, message, gone"
)
SESSION_COLUMNS: Final = (
    "unit_id, place, id, sid, owner, forgotten, epoch, length, settled, last_time, serial, state"
)


def unit_of(row: Row) -> Unit:
    """A row of ``UNIT_COLUMNS``."""
    unit_id, root_id, path, place, home, files, stamp, version, epoch, problem, message, gone = row
    # a hundred thousand units are held at once: what is equal is one object
    log, lies_in = path_of(path), intern(text_of(place))
    return Unit(
        unit_id,
        root_id,
        log,
        lies_in,
        intern(text_of(home)) if home else lies_in,
        tuple(log if file == log else file for file in unpack_files(files, path)),
        unpack_stamp(stamp),
        version,
        epoch,
        problem,
        message,
        bool(gone),
    )


def session_of(format_name: str, row: Row, codec: TextCodec) -> CatalogSession:
    """A row of ``SESSION_COLUMNS`` of a unit of this format."""
    unit_id, place, id_, sid, owner, forgotten, epoch, length, settled, last_time, serial, state = row
    return CatalogSession(
        unit_id=unit_id,
        key=SessionKey(format_name, text_of(place), text_of(id_)),
        note=unpack_note(codec.unpack_bytes(state), text_of(id_)),
        sid=sid,
        owner=bool(owner),
        forgotten=bool(forgotten),
        epoch=epoch,
        length=length,
        settled=settled,
        last_time=last_time,
        serial=serial,
    )


def pack_note(note: SessionNote) -> bytes:
    """A note as it is kept, without the session's id; any depth, lone surrogates included."""
    title = note.reported
    header = {
        name: value for name, value in attrs.asdict(note.header).items() if value is not None and name != "id"
    }
    value: dict[str, JSON] = {"header": header}
    for name, event in (("title_event", note.title_event), ("settled_title", note.settled_title)):
        if event is not None:
            value[name] = [event.seq, event.time, event.data]
    if title is not None:
        value["reported"] = [title.title, list(title.message_seqs), title.source, title.seq, title.time]
    if note.calls:
        value["calls"] = list(note.calls)
    if note.notes:
        value["notes"] = list(note.notes)
    if note.inherited:
        value["inherited"] = note.inherited
    if note.broken is not None:
        value["broken"] = note.broken
    if note.losses:
        value["losses"] = note.losses
    if note.digest is not None:
        value["digest"] = note.digest.hex()
    return encode_json(value)


def unpack_note(packed: bytes, session_id: str) -> SessionNote:
    """What ``pack_note`` was given for this session."""
    value = cast(dict[str, JSON], decode_json(packed))
    header: dict[str, JSON] = {"id": session_id, **cast(dict[str, JSON], value["header"])}
    return SessionNote(
        header=msgspec.convert(header, SessionHeader),
        title_event=_title_event(value.get("title_event")),
        settled_title=_title_event(value.get("settled_title")),
        reported=_title(value.get("reported")),
        calls=tuple(cast(list[str], value.get("calls", []))),
        inherited=cast(int, value.get("inherited", 0)),
        notes=tuple(cast(list[str], value.get("notes", []))),
        broken=cast(str | None, value.get("broken")),
        losses=cast(int, value.get("losses", 0)),
        digest=bytes.fromhex(digest) if isinstance(digest := value.get("digest"), str) else None,
    )


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


def blob(text: str) -> bytes:
    """A place or an id as it is stored and compared."""
    return text.encode("utf-8", "surrogatepass")


def text_of(value: bytes) -> str:
    """What ``blob`` was given."""
    return value.decode("utf-8", "surrogatepass")


def path_blob(path: str | Path) -> bytes:
    """A path as the file system's own bytes."""
    return os.fsencode(path)


def path_of(value: bytes) -> str:
    """What ``path_blob`` was given."""
    return os.fsdecode(value)


_decode_files: Final = msgspec.msgpack.Decoder(list[bytes]).decode


def pack_files(files: Sequence[str], path: str) -> bytes:
    """The files of a unit; empty for one that is a single file, its path."""
    return b"" if tuple(files) == (path,) else msgspec.msgpack.encode([path_blob(file) for file in files])


def unpack_files(packed: bytes, path: bytes) -> tuple[str, ...]:
    """What ``pack_files`` was given, from two columns."""
    return tuple(map(path_of, _decode_files(packed) if packed else (path,)))
