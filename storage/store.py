"""Everything that is kept, opened together: the lock, the journal, the index, the sources.

A store is synchronous. Its owner, the storage actor, uses it from one thread at a time; readers opened
from it are used elsewhere, each by one owner at a time.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import attrs

from ..protocol.errors import Code, QueryError
from ..protocol.outward import SessionKey
from ..protocol.tokens import TOKENS_VERSION
from . import sqlite
from .catching_up import JOURNAL_RANK, catch_up_all, catch_up_one
from .damage import (
    clear_suspicion,
    is_damage,
    is_sound,
    is_suspect,
    look_over,
    problems_of,
    refuse_damaged_journal,
    set_aside,
    suspect,
)
from .forgetting import Forgetting
from .guard import Opening, Schema, discard, open_guarded
from .index.door import IndexWriter
from .index.reader import open_reader as open_index_reader
from .index.schema import INDEX_TABLES, INDEX_VERSION, create_index
from .index.writer import open_writer as open_index_writer
from .journal import PUBLISHED, Journal, JournalReader
from .journal.schema import SCHEMA as JOURNAL_SCHEMA
from .lock import LOCK_NAME, DataLock, Holder, acquire, find_owner
from .news import News, put_news
from .readers.registry import READERS
from .readers.seam import Reader
from .sources.catalog_schema import CATALOG_TABLES, CATALOG_VERSION, create_catalog
from .sources.locate import log_path
from .sources.sources import Sources, open_sources
from .sources.spec import SourceSpec
from .sqlite import Connection, JournalMode
from .store_reader import StoreReader

logger = logging.getLogger(__name__)

INDEX_NAME: Final = "index.db"
JOURNAL_NAME: Final = "journal.db"

READER_RANK: Final = 2
"""Ranks of SPEC 16.6.3: live 0, the journal, then the readers in their order."""

CLEAN: Final = "journal-in-step"
"""Set while the store is closed in good order: the index then holds all that the journal holds."""
SMALL_CACHE_KIB: Final = 1024
"""Page cache of connections that look things up by key; those that search have the usual one."""
JOURNAL_CACHE_KIB: Final = 512
"""The journal is read by key and written at its end: its pages are hardly ever met again."""
JOURNAL_OF_INDEX: Final = "journal"
"""Which journal the index was made with."""


def _create_index_file(connection: Connection) -> None:
    create_index(connection)
    create_catalog(connection)


INDEX_SCHEMA: Final = Schema(
    name="index",
    application_id=0x53514958,  # "SQIX"
    version=zlib.crc32(f"{INDEX_VERSION}/{TOKENS_VERSION}/{CATALOG_VERSION}".encode()) & 0x7FFFFFFF,
    tables=INDEX_TABLES | CATALOG_TABLES,
    create=_create_index_file,
    gives_back=True,
)
"""One version for tables, tokens and catalog: when any of them changes, the index is built again."""


@attrs.frozen(kw_only=True)
class StoreSettings:
    """What a store can be told.

    ``data_dir`` None: journal and index in memory, gone on close. ``index_path``: another file for the
    index, or ``:memory:``. ``sources``: the logs to read, in any order; ``readers`` in order of rank.
    """

    data_dir: Path | None = None
    index_path: str | None = None
    journal_mode: JournalMode = "wal"
    sources: tuple[SourceSpec, ...] = ()
    readers: Mapping[str, Reader] = attrs.field(factory=lambda: READERS)


@attrs.define(eq=False)
class Store:
    """An open store. Made by ``open_store``; owner: the storage actor's writer thread."""

    settings: StoreSettings
    index_path: str
    journal_path: str
    connection: Connection
    index: IndexWriter
    journal: Journal
    sources: Sources
    forgetting: Forgetting
    opening: Opening
    """What became of the index file: ``USED``, or ``CREATED`` or ``REBUILT`` and therefore empty."""
    set_aside: Path | None = None
    """Where the damaged index lies that this one was made in place of, if there was one."""
    unclean: bool = False
    """The last owner did not close the store: it was killed, or the machine stopped."""
    _locks: list[DataLock] = attrs.field(factory=list)
    _behind: set[SessionKey] = attrs.field(factory=set)
    _caught: dict[SessionKey, int] = attrs.field(factory=dict)
    _closed: bool = False
    _closing: ExitStack = attrs.field(factory=ExitStack)

    def open_reader(self, *, cache_kib: int | None = None) -> StoreReader:
        """A reader with connections of its own, the index's with so much page cache. Raises: sqlite.Error."""
        index = sqlite.connect_reader(self.index_path, cache_kib=cache_kib)
        try:
            journal = sqlite.connect_reader(self.journal_path, cache_kib=JOURNAL_CACHE_KIB)
        except BaseException:
            index.close()
            raise
        return StoreReader(
            index,
            open_index_reader(index, log_path),
            JournalReader(journal),
            self.index_path,
            cache_kib is None,
        )

    def suspect(self, error: BaseException) -> None:
        """As ``StoreReader.suspect``, of what a write met."""
        suspect(self.index_path, error)

    def take_news(self, news: Sequence[News]) -> None:
        """Index what was appended. If the index cannot take it, its sessions are behind until ``catch_up``.

        News of sessions that are behind are passed over: the journal holds them.
        """
        fresh = [one for one in news if one.key not in self._behind and not self._has(one)]
        try:
            put_news(self.index, fresh)
        except Exception as exc:
            logger.exception("the index did not take what was appended; it catches up from the journal")
            self.suspect(exc)
            self._behind.update(one.key for one in fresh)

    def _has(self, news: News) -> bool:
        """Whether a session's catching up was ahead of what is told of it now."""
        caught = self._caught.get(news.key)
        if caught is None:
            return False
        if news.state.length > caught:
            del self._caught[news.key]
        return news.state.length <= caught

    def mark_behind(self, key: SessionKey) -> None:
        """The index did not take what the journal has of this session."""
        self._behind.add(key)

    def is_behind(self, key: SessionKey | None = None) -> bool:
        """Whether the index misses something of a session, or of any, that the journal has. Any thread."""
        return bool(self._behind) if key is None else key in self._behind

    def catch_up(self, key: SessionKey | None = None) -> int:
        """Index what the journal holds and the index does not, of one session or of all marked ones.

        Returns: how many events were indexed. Raises: sqlite.Error, and the session stays marked.
        """
        count = 0
        for one in [key] if key is not None else list(self._behind):
            count += catch_up_one(self.journal, self.index, one)
            self._behind.discard(one)
            stored = self.journal.find(one)
            self._caught.pop(one, None)
            if key is None and stored is not None:
                self._caught[one] = stored.length  # what is told later may be in it already
        return count

    def announce(self, url: str) -> None:
        """Say in the lock file where the service listens."""
        for lock in self._locks:
            lock.announce(url)

    def close(self) -> None:
        """Close everything and give the directory up. Idempotent; readers are closed by their owners."""
        closed, self._closed = self._closed, True
        if closed:
            return
        try:
            if not self._behind:
                with self.index.transaction():
                    self.index.set_meta(CLEAN, self.journal.store.encode())
        finally:
            self._closing.close()


def open_store(settings: StoreSettings) -> Store:
    """Open or create a store, take its lock, and bring the index up to the journal.

    Sources are set up and marked, not yet looked at: see ``Store.sources.refresh``.

    Raises: DataDirectoryLocked (INDEX_FAILED) when another engine owns the directory or the index file;
        QueryError PERSISTENCE_FAILED for the journal's file, INDEX_FAILED for the index's. Nothing stays
        open or locked then, and a refused file is as it was.
    """
    with ExitStack() as stack:
        paths = _lock_paths(settings, stack)
        with _failing_as(Code.PERSISTENCE_FAILED, "the journal"):
            journal_connection, _ = open_guarded(
                paths.journal, JOURNAL_SCHEMA, synchronous="FULL", cache_kib=JOURNAL_CACHE_KIB
            )
            stack.callback(journal_connection.close)
            journal = Journal(journal_connection)
        with _failing_as(Code.INDEX_FAILED, "the index"):
            return _open_or_replace(settings, paths, journal, stack)


def discard_index(settings: StoreSettings) -> None:
    """Delete the index's file, damaged or not; the next ``open_store`` builds it anew from logs and journal.

    Raises: DataDirectoryLocked while a store is open; QueryError PERSISTENCE_FAILED if the journal is damaged
        or lost: the index may be the last to know of what it held; INDEX_FAILED if the file is no index.
    """
    with ExitStack() as stack:
        paths = _lock_paths(settings, stack)
        if not sqlite.is_memory(paths.index) and Path(paths.index).exists():
            if not sqlite.is_memory(paths.journal):
                _refuse_bad_journal(paths)
            discard(Path(paths.index), INDEX_SCHEMA)


def _refuse_bad_journal(paths: _Paths) -> None:
    """Raises: QueryError PERSISTENCE_FAILED: the index is not to be built from what the journal is now."""
    with ExitStack() as stack, _failing_as(Code.PERSISTENCE_FAILED, "the journal"):
        connection, _ = open_guarded(paths.journal, JOURNAL_SCHEMA, synchronous="FULL")
        stack.callback(connection.close)
        refuse_damaged_journal(Path(paths.journal))
        with suppress(sqlite.Error):  # an index that cannot be asked knows of nothing
            stack.callback((index := sqlite.open_uri(sqlite.uri(paths.index, "rw"))).close)
            _refuse_lost_journal(index, Journal(connection))


def find_running(data_dir: Path) -> Holder | None:
    """Who owns a data directory now, with the address of its service if it has one; None if nobody does."""
    return find_owner(data_dir / LOCK_NAME)


@attrs.frozen
class _Paths:
    """The two files, whose locks are held."""

    index: str
    journal: str
    locks: list[DataLock]


def _lock_paths(settings: StoreSettings, stack: ExitStack) -> _Paths:
    """Where the files are; the locks that make them ours are released by ``stack``."""
    locks: list[DataLock] = []

    def take(path: Path) -> None:
        lock = acquire(path)
        stack.callback(lock.release)
        locks.append(lock)

    directory = None if settings.data_dir is None else settings.data_dir.absolute()
    journal = sqlite.memory_path()
    if directory is not None:
        take(directory / LOCK_NAME)
        journal = str(directory / JOURNAL_NAME)
    named = settings.index_path
    if named is None:
        index = sqlite.memory_path() if directory is None else str(directory / INDEX_NAME)
    elif sqlite.is_memory(named):
        index = sqlite.memory_path()
    else:
        index = str(Path(named).absolute())
        if directory is None or Path(index).parent != directory:
            take(Path(f"{index}.lock"))
    return _Paths(index, journal, locks)


@contextmanager
def _failing_as(code: Code, what: str) -> Iterator[None]:
    """What SQLite says of a damaged file while it is opened, in the words of SPEC 13."""
    try:
        yield
    except sqlite.Error as exc:
        raise QueryError(code, f"{what} cannot be used: {exc}") from exc


def _open_or_replace(settings: StoreSettings, paths: _Paths, journal: Journal, stack: ExitStack) -> Store:
    """Open the index; one of ours that is damaged is set aside and built anew (SPEC 6.12.7)."""
    with ExitStack() as attempt:
        try:
            store = _open_rest(settings, paths, journal, attempt)
        except (sqlite.Error, QueryError) as exc:
            if sqlite.is_memory(paths.index) or not is_damage(exc):
                raise
            attempt.close()  # nothing may hold the file open while it is renamed
            if is_sound(Path(paths.index)):  # opening reads the journal, too
                refuse_damaged_journal(Path(paths.journal))
            aside = set_aside(Path(paths.index), INDEX_SCHEMA)
            logger.warning("the index is damaged (%s): set aside as %s, building it anew", exc, aside.name)
            try:
                store = _open_rest(settings, paths, journal, attempt)
            except (sqlite.Error, QueryError) as again:
                if not is_damage(again):
                    raise
                raise QueryError(Code.PERSISTENCE_FAILED, f"the journal is damaged: {again}") from again
            store.set_aside = aside
        stack.push(attempt.pop_all())
    store._closing = stack.pop_all()
    return store


def _check_suspect(path: str, connection: Connection) -> None:
    """Look into an index before it is used; all of it if a query or a write met damage.

    Raises: sqlite.DatabaseError.
    """
    look_over(connection)
    if sqlite.is_memory(path) or not is_suspect(Path(path)):
        return
    problems = problems_of(connection)
    if problems:
        raise sqlite.DatabaseError(f"database disk image is malformed: {problems[0]}")
    clear_suspicion(Path(path))


def _open_rest(settings: StoreSettings, paths: _Paths, journal: Journal, stack: ExitStack) -> Store:
    connection, opening = _open_index(paths.index, settings, journal)
    stack.callback(connection.close)
    index = open_index_writer(connection)
    reading = sqlite.connect_reader(paths.index, cache_kib=SMALL_CACHE_KIB)
    stack.callback(reading.close)
    ranks = {name: READER_RANK + at for at, name in enumerate(settings.readers)}
    in_step = _take_clean_mark(journal, index)
    reader = open_index_reader(reading)
    # a connection of its own: logs are read while another thread commits appends
    copies = sqlite.connect_reader(paths.journal, cache_kib=JOURNAL_CACHE_KIB)
    stack.callback(copies.close)
    sources = open_sources(connection, index, reader, journal, settings.readers, ranks, JournalReader(copies))
    sources.use(settings.sources)
    forgetting = Forgetting(connection, index, reader, journal, sources)
    if not in_step:
        forgetting.finish()
        sqlite.resize_cache(connection, sqlite.BULK_CACHE_KIB)  # it may be all there is
        caught = catch_up_all(journal, index, ranks)
        sqlite.resize_cache(connection, sqlite.WRITER_CACHE_KIB)
        logger.info("the index caught up with %d events of the journal", caught)
    return Store(
        settings=settings,
        index_path=paths.index,
        journal_path=paths.journal,
        connection=connection,
        index=index,
        journal=journal,
        sources=sources,
        forgetting=forgetting,
        opening=opening,
        unclean=any(lock.previous is not None for lock in paths.locks),
        locks=paths.locks,
    )


def _take_clean_mark(journal: Journal, index: IndexWriter) -> bool:
    """Whether the index holds all that the journal holds; from now on nobody knows, until it is closed."""
    in_step = index.get_meta(CLEAN) == journal.store.encode()
    with index.transaction():
        index.set_meta(CLEAN, None)
        index.set_meta(JOURNAL_OF_INDEX, journal.store.encode())
    return in_step


def _open_index(path: str, settings: StoreSettings, journal: Journal) -> tuple[Connection, Opening]:
    """The index's file; one that was made for another journal is built anew."""
    connection, opening = open_guarded(path, INDEX_SCHEMA, journal_mode=settings.journal_mode)
    try:
        _check_suspect(path, connection)
        made_for = open_index_reader(connection).get_meta(JOURNAL_OF_INDEX)
    except BaseException:
        connection.close()
        raise
    if made_for is None or made_for == journal.store.encode():
        return connection, opening
    try:
        _refuse_lost_journal(connection, journal)
    finally:
        connection.close()
    discard(Path(path), INDEX_SCHEMA)
    return open_guarded(path, INDEX_SCHEMA, journal_mode=settings.journal_mode)


def _refuse_lost_journal(connection: Connection, journal: Journal) -> None:
    """An empty journal beside an index of published sessions is a loss, not a beginning: say so, keep both.

    Raises: QueryError PERSISTENCE_FAILED.
    """
    published = open_index_reader(connection).of_source(PUBLISHED)
    if published and not journal.sessions(PUBLISHED):
        raise QueryError(
            Code.PERSISTENCE_FAILED,
            f"the journal is empty, but {len(published)} published sessions are known: restore {JOURNAL_NAME}"
            f" from a backup, or delete {INDEX_NAME} to go on without them",
        )


__all__ = [
    "INDEX_SCHEMA",
    "JOURNAL_RANK",
    "PUBLISHED",
    "READER_RANK",
    "Store",
    "StoreReader",
    "StoreSettings",
    "discard_index",
    "find_running",
    "open_store",
]
