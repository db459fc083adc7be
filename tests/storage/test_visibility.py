"""Which rows of equal identity are shown (SPEC 16.6.1, 16.6.3)."""

from __future__ import annotations

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
