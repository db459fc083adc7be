"""How the catalog's records lie in its tables: nothing twice, nothing lost."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import attrs
from hypothesis import given
from hypothesis import strategies as st

from session_query.protocol.event import Event
from session_query.protocol.header import SessionHeader
from session_query.protocol.json_value import JSON
from session_query.protocol.outward import SessionKey
from session_query.protocol.records import Title
from session_query.protocol.titles import TITLE, title_of
from session_query.storage import sqlite
from session_query.storage.index.door import SessionState
from session_query.storage.index.schema import INDEX_VERSION, create_index
from session_query.storage.index.writer import open_writer
from session_query.storage.projection import title_of_log
from session_query.storage.readers.discovery import one_file
from session_query.storage.readers.seam import Checkpoint, LogUnit
from session_query.storage.sources.catalog import Catalog
from session_query.storage.sources.catalog_rows import (
    CatalogSession,
    SessionNote,
    Unit,
    flags_of,
    pack_note,
    unpack_note,
)
from session_query.storage.sources.catalog_schema import create_catalog
from session_query.storage.sources.spec import SourceSpec
from session_query.storage.sources.whereabouts import Whereabouts, pack_whereabouts, unpack_whereabouts
from session_query.storage.sqlite import Connection
from session_query.storage.text_dictionary import DICTIONARY

names = st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=8)


def title_event(text: str, more: dict[str, JSON]) -> Event:
    data: JSON = {"title": text, "messageSeqs": [1], "source": {"kind": "fallback"}, **more}
    return Event(type=TITLE, seq=4, time=9, data=data)


def test_a_changed_dictionary_needs_a_new_version() -> None:
    assert (INDEX_VERSION, zlib.crc32(DICTIONARY)) == (13, 0x666025A9)


parts = st.binary(min_size=1, max_size=6).map(lambda raw: raw.replace(b"\0", b"0")) | st.sampled_from(
    [b"/", b"a", b"\xff", b"7acd37a8-2745-4b58-a8a9-46164b22ad9e", b"/logs", b".jsonl"]
)
paths = st.lists(parts, max_size=5).map(lambda found: os.fsdecode(b"".join(found)))


@given(st.sampled_from(["/logs", "/", "/lo\udcff", "C:\\x"]), st.sampled_from(["", "l", "/b"]), st.data())
def test_whereabouts_come_back_whatever_they_are(root: str, label: str, data: st.DataObject) -> None:
    path = data.draw(paths | paths.map(lambda rest: f"{root}/{rest}"))
    below = path.removeprefix(f"{root}/")
    derived = [below, below.rpartition("/")[0], f"{label}/{below}", f"{label}/{below.rpartition('/')[0]}"]
    place = data.draw(st.sampled_from(derived) | names)
    home = data.draw(st.just(place) | st.sampled_from(derived) | names)
    files = data.draw(st.just((path,)) | st.lists(st.just(path) | paths, max_size=3).map(tuple))
    found = Whereabouts(path, place, home, files)
    assert unpack_whereabouts(pack_whereabouts(found, root, label), root, label) == found


def test_what_follows_from_a_path_takes_no_room() -> None:
    uuid = "7acd37a8-2745-4b58-a8a9-46164b22ad9e"
    path = f"/home/a/.tool/projects/-work-b/{uuid}.jsonl"
    found = Whereabouts(path, "-work-b", "-work-b", (path,))
    assert len(pack_whereabouts(found, "/home/a/.tool/projects", "")) == 32
    labelled = Whereabouts(path, "l/-work-b", "l/-work-b", (path,))
    assert len(pack_whereabouts(labelled, "/home/a/.tool/projects", "l")) == 32
    beside = found._replace(files=(path, f"/home/a/.tool/projects/-work-b/{uuid}.meta.json"))
    assert len(pack_whereabouts(beside, "/home/a/.tool/projects", "")) == 55


notes = st.builds(
    SessionNote,
    header=st.builds(SessionHeader, id=st.just("s"), created_at=st.just(5), cwd=st.none() | names),
    title_event=st.none() | st.builds(title_event, names, st.sampled_from([{}, {"native": [1, "\ud800"]}])),
    settled_title=st.none() | st.builds(title_event, names, st.just({})),
    reported=st.none() | st.builds(title_of, st.builds(title_event, names, st.just({}))),
    calls=st.lists(names, max_size=2).map(tuple),
    inherited=st.integers(0, 3),
    notes=st.lists(names, max_size=2).map(tuple),
    broken=st.none() | st.just("X"),
    digest=st.none() | st.just(b"\0\xff"),
    losses=st.integers(0, 2**50),
)


@given(notes, st.booleans(), st.booleans(), st.booleans())
def test_a_note_comes_back_whatever_of_it_the_index_has(
    note: SessionNote, indexed: bool, same_header: bool, titled: bool
) -> None:
    known = None
    if note.title_event is not None and titled:
        note.settled_title = note.title_event
    if indexed:
        header = note.header if same_header else attrs.evolve(note.header, origin="subagent")
        title, _ = title_of_log(note.title_event, note.reported)
        known = SessionState(header=header, rank=0, title=title, length=0, revision="r")
    session = CatalogSession(unit_id=1, key=SessionKey("toy", "", "s"), note=note)
    flags = flags_of(session, known)
    packed = pack_note(note, flags, known)
    found = unpack_note(packed, flags, "s", known)
    for field in attrs.fields(SessionNote):
        assert getattr(found, field.name) == getattr(note, field.name), field.name


def opened() -> Connection:
    connection = sqlite.connect_writer(sqlite.memory_path(), journal_mode=None)
    create_index(connection)
    create_catalog(connection)
    return connection


def test_units_come_back_with_their_files_where_they_lie_and_how_far_they_were_read() -> None:
    connection = opened()
    catalog = Catalog(connection)
    root = catalog.use_root(SourceSpec(format="toy", root=Path("/logs")))
    one, two = (
        catalog.add_unit(root, LogUnit(format="toy", root=Path("/logs"), path=path, place=place, files=files))
        for path, place, files in (
            (Path("/logs/a/x.toy"), "a", (Path("/logs/a/x.toy"),)),
            (Path("/logs/b/y"), "b", (Path("/logs/b/y/1"), Path("/logs/b/y/2"))),
        )
    )
    state = b"where it stands " * 50
    catalog.put_checkpoint(one, Checkpoint(offset=7, prefix=b"p", state=state))
    catalog.put_checkpoint(two, Checkpoint(offset=0, prefix=b"", state=b""))
    moved = LogUnit(
        format="toy", root=Path("/logs"), path=Path("/logs/c/x"), place="c", files=(Path("/logs/c/x"),)
    )
    catalog.move_unit(one, root, moved)
    session = CatalogSession(
        unit_id=one.unit_id,
        key=SessionKey("toy", "a", "s"),
        note=SessionNote(header=SessionHeader(id="s", created_at=1, cwd="/w"), notes=("odd",)),
    )
    catalog.put_session(session)
    again = Catalog(connection)
    found, other = again.units[one.unit_id], again.units[two.unit_id]
    assert (found.path, found.place, found.home, found.files) == ("/logs/c/x", "a", "c", ("/logs/c/x",))
    assert found.has_moved
    assert (other.place, other.home, other.files) == ("b", "b", ("/logs/b/y/1", "/logs/b/y/2"))
    assert not other.has_moved
    assert again.checkpoint(found) == Checkpoint(offset=7, prefix=b"p", state=state)
    assert again.checkpoint(other) == Checkpoint(offset=0, prefix=b"", state=b"")
    (told,) = again.sessions_of(found, "toy").values()
    assert (told.key, told.note.header, told.note.notes) == (session.key, session.note.header, ("odd",))
    ((kept,),) = connection.execute(
        "SELECT length(state) FROM catalog_unit WHERE unit_id = ?", (one.unit_id,)
    ).fetchall()
    assert kept < len(state) // 4
    connection.close()


def toy_session(unit: Unit, session_id: str, cwd: str = "/w", **more: str) -> CatalogSession:
    header = SessionHeader(id=session_id, created_at=7, cwd=cwd, **more)
    note = SessionNote(
        header=header, reported=Title(title="T", message_seqs=(), source=None, seq=None, time=1)
    )
    return CatalogSession(
        unit_id=unit.unit_id, key=SessionKey("toy", unit.place, session_id), note=note, last_time=5
    )


def state_of(row: CatalogSession) -> SessionState:
    return SessionState(header=row.note.header, rank=0, title=row.note.reported, length=0, revision="r")


def told(catalog: Catalog, unit: Unit) -> dict[str, tuple[int | None, SessionHeader, Title | None]]:
    found = catalog.sessions_of(unit, "toy").items()
    return {name: (row.sid, row.note.header, row.note.reported) for name, row in found}


def test_a_session_keeps_its_row_apart_from_others_in_and_out_of_the_index() -> None:
    connection = opened()
    writer, catalog = open_writer(connection), Catalog(connection)
    root = catalog.use_root(SourceSpec(format="toy", root=Path("/logs")))
    unit, other = (
        catalog.add_unit(root, one_file("toy", Path("/logs"), Path(f"/logs/a/{name}.toy"))) for name in "xy"
    )
    rows = [toy_session(unit, "a"), toy_session(unit, "\ud800"), toy_session(other, "a")]
    with writer.transaction():
        for row in rows[:2]:
            state = SessionState(
                header=row.note.header, rank=0, title=row.note.reported, length=0, revision="r"
            )
            row.sid = writer.put_session(row.key, state)
            catalog.put_session(row, state)
        catalog.put_session(rows[2])
    expected = {row.key.id: (row.sid, row.note.header, row.note.reported) for row in rows[:2]}
    assert told(catalog, unit) == expected
    assert told(catalog, other) == {"a": (None, rows[2].note.header, rows[2].note.reported)}
    assert {row.unit_id for row in catalog.tellers(rows[0].key)} == {unit.unit_id, other.unit_id}
    assert catalog.tellers(SessionKey("toy", "b", "a")) == []
    assert connection.execute("SELECT count(note), count(id) FROM catalog_session").fetchall() == [(1, 1)]
    stale = toy_session(unit, "\ud800")
    stale.number = rows[0].sid  # as a transaction that was undone would leave it
    catalog.put_session(stale)
    assert told(catalog, unit)["a"] == expected["a"], "another's row is not touched"


def test_forgetting_leaves_no_word_in_any_row_of_the_session() -> None:
    connection = opened()
    writer, catalog = open_writer(connection), Catalog(connection)
    root = catalog.use_root(SourceSpec(format="toy", root=Path("/logs")))
    units = [
        catalog.add_unit(root, one_file("toy", Path("/logs"), Path(f"/logs/a/{name}.toy"))) for name in "xy"
    ]
    with writer.transaction():
        for unit in units:
            row = toy_session(unit, "a", agent_preset="secret")
            state = SessionState(
                header=row.note.header, rank=0, title=row.note.reported, length=0, revision="r"
            )
            row.sid = writer.put_session(row.key, state) if unit is units[0] else None
            row.owner = row.sid is not None
            catalog.put_session(row, state if row.owner else None)
        (sid,) = (row.sid for row in catalog.tellers(row.key) if row.sid is not None)
        assert sorted(catalog.forget([sid])) == [unit.unit_id for unit in units]
        writer.delete(sid)
    left = SessionHeader(id="a", created_at=7)
    for unit in units:
        (row,) = catalog.sessions_of(unit, "toy").values()
        assert (row.forgotten, row.sid, row.note.header, row.note.reported) == (True, None, left, None)
    connection.close()
