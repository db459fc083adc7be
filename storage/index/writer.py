"""All changes to the index, on the one connection that may make them.

Generations: a change marks its session; when the transaction commits, the global counter moves by one
and every marked session and its workspace take the new value (SPEC 6.9).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from ...protocol.documents import Document
from ...protocol.event import Surface
from .. import sqlite
from ..sqlite import Connection, SqlValue
from ..text_codec import TextCodec
from . import rows, visibility
from .documents import DocumentStore
from .door import SessionKey, SessionState, Skeleton, StoredSession
from .rows import SUB_AGENT, to_sql
from .schema import NO_WORKSPACE
from .shrinking import Shrinker
from .skeletons import cut_skeleton, put_skeleton

_UPDATE: Final = (
    "UPDATE session SET ws = ?, created_at = ?, parent = ?, rank = ?, error = ?, durable = ?, persisted = ?,"
    " sub_agent = ?, inherited = ?, losses = ?, state = ? WHERE sid = ?"
)
_INSERT: Final = (
    "INSERT INTO session(ws, created_at, parent, rank, error, durable, persisted, sub_agent, inherited,"
    " losses, state, source, place, id, key, visible) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)"
)
CHECKPOINT_PAGES: Final = 8_000
"""Log pages (32 MB) after which a commit has to copy them back itself; idle steps do it long before."""
BULK_HASH_BYTES: Final = 32 * 1024 * 1024
USUAL_HASH_BYTES: Final = 1024 * 1024
BULK_TAGGED: Final = 1 << 30
"""All there are: 5 us each, and the documents that follow are tagged as they come."""
TAGGED_AT_ONCE: Final = 10_000
"""60 ms, when an index grows past the number from which it has tags while there is no silence."""
LARGE_FLUSH: Final = 500
"""Documents written at once after which idle time makes commits cheap again: ``Writer._forget_words``."""


class Writer:
    """See ``door.IndexWriter``, which this fills."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._codec = TextCodec()
        self._documents = DocumentStore(connection, self._codec)
        self._shrinker = Shrinker(connection)
        self._marked: set[int] = set()
        self._marked_workspaces: set[int] = set()
        self._moved = False
        self._inside = False
        self._bulk = False
        self._turn = 0
        """Pressed steps so far: each does another kind of idle work."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self._inside:
            with self._part():
                yield
            return
        self._inside = True
        try:
            with sqlite.transaction(self._connection):
                yield
                self._finish()
        except BaseException:
            self._documents.forget_all()
            raise
        finally:
            self._inside = False
            self._marked.clear()
            self._marked_workspaces.clear()
            self._moved = False
        self._documents.committed()

    @contextmanager
    def _part(self) -> Iterator[None]:
        """A transaction inside another one: what it raises undoes it alone."""
        self._flush()  # nothing of the outer one may still wait in memory
        before = set(self._marked), set(self._marked_workspaces), self._moved
        try:
            with sqlite.transaction(self._connection):
                yield
                self._flush()
        except BaseException:
            self._documents.forget_all()
            self._marked, self._marked_workspaces, self._moved = before
            raise

    def _finish(self) -> None:
        self._documents.flush()
        if not self._moved:
            return
        self._documents.store_all_counts()
        if self._bulk:  # a first build goes on with spans and tags instead of making them up later
            if self._documents.spans.choose():
                self._set_hash_size()
            self._documents.tagging.step(BULK_TAGGED)
        generation = self.generation() + 1
        self.set_meta("generation", str(generation).encode())
        execute = self._connection.execute
        for sid in self._marked:
            execute("UPDATE session SET generation = ? WHERE sid = ?", (generation, sid))
            execute(
                "UPDATE workspace SET generation = ? WHERE ws = (SELECT ws FROM session WHERE sid = ?)",
                (generation, sid),
            )
        for ws in self._marked_workspaces:
            execute("UPDATE workspace SET generation = ? WHERE ws = ?", (generation, ws))

    def _mark(self, sid: int) -> None:
        self._moved = True
        self._marked.add(sid)

    def generation(self) -> int:
        value = self.get_meta("generation")
        return int(value) if value else 0

    def get_meta(self, name: str) -> bytes | None:
        row = self._connection.execute("SELECT value FROM index_meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else bytes(row[0])

    def set_meta(self, name: str, value: bytes | None) -> None:
        if value is None:
            self._connection.execute("DELETE FROM index_meta WHERE name = ?", (name,))
        else:
            self._connection.execute("INSERT OR REPLACE INTO index_meta VALUES(?, ?)", (name, value))

    def find(self, key: SessionKey) -> StoredSession | None:
        self._store_counts()
        return rows.find(self._connection, key)

    def _flush(self) -> None:
        self._documents.flush()
        self._documents.store_all_counts()

    def _store_counts(self) -> None:
        self._documents.store_all_counts()

    def put_session(self, key: SessionKey, state: SessionState) -> int:
        before = self.find(key)
        if before is not None and before.state == state:
            return before.sid
        if before is not None and _only_grew(before.state, state):
            self.grow(before.sid, state)
            return before.sid
        execute = self._connection.execute
        execute("INSERT OR IGNORE INTO source VALUES(?, 1)", (key.source,))
        header = state.header
        values = (
            self._workspace(header.cwd), header.created_at, to_sql(header.parent_session), state.rank,
            state.error, int(state.durable), int(state.persisted), int(header.origin == SUB_AGENT),
            state.inherited, state.losses, rows.encode_state(state),
        )  # fmt: skip
        if before is None:
            named = (key.source, to_sql(key.place), to_sql(key.id), rows.key_hash(key))
            cursor = execute(_INSERT, (*values, *named))
            assert cursor.lastrowid is not None, "an INSERT has a row id"
            sid = cursor.lastrowid
        else:
            sid = before.sid
            self._update(before, state, values)
        self._mark(sid)
        if before is None or not _same_standing(before.state, state):
            self._changed(visibility.settle(self._connection, header))
            if before is not None:
                self._changed(visibility.settle(self._connection, before.state.header))
        return sid

    def grow(self, sid: int, state: SessionState) -> None:
        self._mark(sid)
        values = (rows.encode_state(state), sid)
        self._connection.execute("UPDATE session SET state = ? WHERE sid = ?", values)

    def _update(self, before: StoredSession, state: SessionState, values: tuple[SqlValue, ...]) -> None:
        sid = before.sid
        moved = before.state.header.cwd != state.header.cwd
        kept: list[Document] = []
        if moved:  # the workspace is written into every posting
            self._marked_workspaces.add(self._workspace(before.state.header.cwd))
            kept = self._documents.read(sid)
        if moved or state.error is not None:
            self._documents.truncate(sid, 0)
        if state.error is not None:
            kept = []
            cut_skeleton(self._documents.bodies, sid, 0)
        self._connection.execute(_UPDATE, (*values, sid))
        self._documents.drop_slot(sid)
        if kept:
            self._documents.add(sid, kept)

    def _workspace(self, cwd: str | None) -> int:
        if cwd is None:
            return NO_WORKSPACE
        execute = self._connection.execute
        row = execute("SELECT ws FROM workspace WHERE cwd = ?", (to_sql(cwd),)).fetchone()
        if row is None:
            row = (execute("INSERT INTO workspace(cwd) VALUES(?)", (to_sql(cwd),)).lastrowid,)
        number: int = row[0]
        return number

    def _changed(self, sids: Iterable[int]) -> None:
        for sid in sids:
            self._mark(sid)

    def append(self, sid: int, documents: Sequence[Document], skeleton: Sequence[Skeleton] = ()) -> None:
        if documents or skeleton:
            self._mark(sid)
            self._documents.add(sid, documents)
            put_skeleton(self._documents.bodies, sid, skeleton)

    def reclassify(self, sid: int, surfaces: Mapping[int, Surface]) -> None:
        if surfaces:
            self._mark(sid)
            self._documents.reclassify(sid, surfaces)

    def truncate(self, sid: int, from_seq: int = 0) -> None:
        self._store_counts()
        cut = self._documents.truncate(sid, from_seq)
        if cut_skeleton(self._documents.bodies, sid, from_seq) or cut:
            self._mark(sid)

    def delete(self, sid: int) -> None:
        self._store_counts()
        session = rows.by_sid(self._connection, sid)
        if session is None:
            return
        self._documents.truncate(sid, 0)
        cut_skeleton(self._documents.bodies, sid, 0)
        header = session.state.header
        self._marked_workspaces.add(self._workspace(header.cwd))
        self._moved = True
        self._marked.discard(sid)
        self._connection.execute("DELETE FROM session WHERE sid = ?", (sid,))
        self._documents.drop_slot(sid)
        self._changed(visibility.settle(self._connection, header))

    def wipe_unpersisted(self) -> None:
        for (sid,) in self._connection.execute("SELECT sid FROM session WHERE durable = 0").fetchall():
            self.delete(sid)

    def show_source(self, source: str, shown: bool) -> None:
        execute = self._connection.execute
        row = execute("SELECT shown FROM source WHERE name = ?", (source,)).fetchone()
        if row is not None and row[0] == int(shown):
            return
        execute("INSERT OR REPLACE INTO source VALUES(?, ?)", (source, int(shown)))
        sql = f"SELECT {rows.COLUMNS} FROM session AS s WHERE {rows.OF_SOURCE}"
        found = execute(sql, rows.of_source(source)).fetchall()
        self._moved = self._moved or bool(found)
        for row in found:
            self._changed(visibility.settle(self._connection, rows.stored(row).state.header))

    def touch(self, sids: Iterable[int]) -> None:
        self._changed(sids)

    def merge_step(self, pages: int = 64, *, copy_log: bool = True, pressed: bool = False) -> bool:
        more = self._merge(pages)
        try:
            with sqlite.transaction(self._connection):
                more = self._idle_work(pressed, more)
        except BaseException:
            self._documents.forget_all()
            raise
        more = more or (not pressed and self._shrinker.step(pages))
        if not more and self._documents.most_flushed > LARGE_FLUSH:
            self._forget_words()
        if copy_log:
            sqlite.checkpoint(self._connection)
        return more

    def _idle_work(self, pressed: bool, more: bool) -> bool:
        """A step of each kind that makes searches quick; when none of those is left, one that saves space.

        ``pressed``: one kind in turn, packing only if very much waits for it, and tags in one go, once in the
        life of an index: in small steps they would not catch up with what is appended.
        True while more is left or may be: without silence not everything is looked at.
        """
        documents = self._documents
        quickening = [documents.spans.step]
        if documents.spans.made:
            quickening.append(documents.repeats_later.step)
        if pressed:
            documents.tagging.step(TAGGED_AT_ONCE)
            self._turn += 1
            turn = self._turn % (len(quickening) + 1)
            if turn < len(quickening):
                quickening[turn]()
            else:
                documents.packing.step(pressed=True)
            return True
        left = [documents.tagging.step(), *(step() for step in quickening)]  # each, whatever the others say
        return any(left) or more or documents.packing.step()

    def _merge(self, pages: int) -> bool:
        more = False
        with sqlite.transaction(self._connection):
            for table in self._full_text:
                before = self._connection.total_changes
                self._connection.execute(f"INSERT INTO {table}({table}, rank) VALUES('merge', ?)", (pages,))
                more = more or self._connection.total_changes - before > 1
        return more

    def scrub(self) -> None:
        with sqlite.transaction(self._connection):
            tables = ["span"] if self._documents.spans.drop_unheld() else []
            if not sqlite.FTS5_SECURE_DELETE:
                tables.append("fts")
            for table in tables:
                self._connection.execute(f"INSERT INTO {table}({table}) VALUES('optimize')")

    def bulk(self, on: bool) -> None:
        if self._bulk and not on:
            self._shrinker.built()
        self._bulk = self._documents.is_bulk = on
        self._set_hash_size()
        if not on:
            self._forget_words()
        sqlite.resize_cache(self._connection, sqlite.BULK_CACHE_KIB if on else sqlite.WRITER_CACHE_KIB)

    @property
    def _full_text(self) -> Sequence[str]:
        return ("fts", "span") if self._documents.spans.made else ("fts",)

    def _set_hash_size(self) -> None:
        size = BULK_HASH_BYTES if self._bulk else USUAL_HASH_BYTES
        for table in self._full_text:
            self._connection.execute(f"INSERT INTO {table}({table}, rank) VALUES('hashsize', ?)", (size,))

    def _forget_words(self) -> None:
        """Let the engine begin with a small table of the words that wait for a commit.

        It grows with the largest transaction and never shrinks, and every commit walks all of it: after a
        first build that was 0.4 of 0.59 ms. It goes with all else the connection remembers of its schema.
        """
        self._connection.execute("PRAGMA writable_schema=RESET")
        self._documents.most_flushed = 0


def _only_grew(before: SessionState, after: SessionState) -> bool:
    """Whether nothing but what no query looks into changed: setting a column rewrites every index over it."""
    return (
        before.header == after.header
        and before.rank == after.rank
        and before.error == after.error
        and before.durable == after.durable
        and before.persisted == after.persisted
        and before.inherited == after.inherited
        and before.losses == after.losses
    )


def _same_standing(before: SessionState, after: SessionState) -> bool:
    """Whether nothing changed that decides which row of a session is visible."""
    return (
        before.header == after.header
        and before.rank == after.rank
        and (before.error is None) == (after.error is None)
    )


def open_writer(connection: Connection) -> Writer:
    """The writer of an index whose tables exist (see ``schema.create_index`` and the guard).

    Sessions nobody stored are removed, so that a stopped process leaves none behind (SPEC 6.10.6).
    """
    connection.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}").fetchall()
    writer = Writer(connection)
    with writer.transaction():
        writer.wipe_unpersisted()
    return writer
