"""How the catalog's records lie in its tables: nothing twice, nothing lost."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from session_query.protocol.header import SessionHeader
from session_query.protocol.outward import SessionKey
from session_query.protocol.records import Title
from session_query.storage import sqlite
from session_query.storage.index.schema import INDEX_VERSION
from session_query.storage.readers.seam import Checkpoint, LogUnit
from session_query.storage.sources.catalog import Catalog
from session_query.storage.sources.catalog_rows import (
    CatalogSession,
    SessionNote,
    pack_files,
    pack_note,
    path_blob,
    unpack_files,
    unpack_note,
)
from session_query.storage.sources.catalog_schema import create_catalog
from session_query.storage.sources.spec import SourceSpec
from session_query.storage.text_dictionary import DICTIONARY

names = st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=8)


def test_a_changed_dictionary_needs_a_new_version() -> None:
    assert (INDEX_VERSION, zlib.crc32(DICTIONARY)) == (9, 0x666025A9)


@given(st.binary(min_size=1, max_size=9), st.lists(st.binary(min_size=1, max_size=9), max_size=3))
def test_files_of_any_name_come_back(path: bytes, others: list[bytes]) -> None:
    own = os.fsdecode(path)
    for files in ((own,), (own, *map(os.fsdecode, others)), tuple(map(os.fsdecode, others))):
        packed = pack_files(files, own)
        assert unpack_files(packed, path_blob(own)) == files
        assert (packed == b"") == (files == (own,))


@given(names, names, st.none() | names)
def test_a_note_comes_back_for_its_session(session_id: str, title: str, cwd: str | None) -> None:
    note = SessionNote(
        header=SessionHeader(id=session_id, created_at=5, cwd=cwd),
        reported=Title(title=title, message_seqs=(1, 2), source={"kind": "x"}, seq=None, time=9),
        calls=("c",),
        digest=b"\0\xff",
        losses=2,
    )
    found = unpack_note(pack_note(note), session_id)
    assert (found.header, found.reported) == (note.header, note.reported)
    assert (found.calls, found.digest, found.losses) == (note.calls, note.digest, 2)


def test_units_come_back_with_their_files_where_they_lie_and_how_far_they_were_read() -> None:
    connection = sqlite.connect_writer(sqlite.memory_path(), journal_mode=None)
    create_catalog(connection)
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
