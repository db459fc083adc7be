"""Which rows of equal identity are shown (SPEC 16.6.1, 16.6.3)."""

from __future__ import annotations

import attrs

from session_query.protocol.header import SessionHeader
from session_query.protocol.outward import SessionKey
from session_query.storage.index.door import SessionState
from session_query.storage.store import StoreSettings, open_store

HEADER = SessionHeader(id="a", created_at=0, cwd="/w")


def test_one_id_in_two_folders_of_a_source_is_two_sessions_and_both_are_shown() -> None:
    store = open_store(StoreSettings())
    try:
        with store.index.transaction():
            for place in ("x", "y"):
                store.index.put_session(SessionKey("dsh", place, "a"), SessionState(header=HEADER, rank=2))
        reader = store.open_reader()
        with reader.index.snapshot():
            assert [row.key.place for row in reader.index.with_id("a")] == ["x", "y"]
        reader.close()
    finally:
        store.close()


def test_the_same_session_in_two_sources_is_shown_once_from_the_better() -> None:
    store = open_store(StoreSettings())
    try:
        with store.index.transaction():
            for source, rank in (("dsh", 3), ("journal", 1)):
                store.index.put_session(SessionKey(source, "", "a"), SessionState(header=HEADER, rank=rank))
        reader = store.open_reader()
        with reader.index.snapshot():
            assert [row.key.source for row in reader.index.with_id("a")] == ["journal"]
        reader.close()
    finally:
        store.close()


def test_a_row_that_is_covered_covers_what_is_below_it_all_the_same() -> None:
    parted = attrs.evolve(HEADER, parent_session="p")
    store = open_store(StoreSettings())
    try:
        with store.index.transaction():
            for source, rank, header in (("live", 0, HEADER), ("journal", 1, HEADER), ("dsh", 2, parted)):
                store.index.put_session(SessionKey(source, "", "a"), SessionState(header=header, rank=rank))
        reader = store.open_reader()
        with reader.index.snapshot():
            assert [row.key.source for row in reader.index.with_id("a")] == ["live"]
        with store.index.transaction():
            store.index.delete(
                store.index.put_session(SessionKey("journal", "", "a"), SessionState(header=HEADER, rank=1))
            )
        with reader.index.snapshot():
            assert [row.key.source for row in reader.index.with_id("a")] == ["live", "dsh"]
        reader.close()
    finally:
        store.close()
