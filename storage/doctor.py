"""Is the index what the logs say? Whole checks of the files, and samples read again and compared.

Everything here only reads, but for the mark of a damaged index. What is wrong is mended by
``Sources.rebuild``, by the next start, or by ``discard_index`` before the store is opened; the journal has
no second copy and is only reported on.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import attrs

from ..protocol.documents import Document, build_documents
from ..protocol.event import Event
from ..protocol.json_codec import to_utf8_text
from ..protocol.surface import SurfaceError
from .damage import file_of, problems_of, set_aside_files
from .index.door import StoredSession
from .journal import PUBLISHED, JournalDamaged
from .readers.discovery import printable
from .readers.seam import Reader
from .sources.catalog_rows import path_of
from .sources.locate import Located, locate, read_located
from .sources.report import DamagedPlace, Skipped, report_losses
from .sources.stamps import take_stamp
from .sources.whereabouts import unpack_whereabouts
from .sqlite import Connection, DatabaseError
from .store_reader import StoreReader

T = TypeVar("T")

DIFFERENCES_SHOWN: Final = 5


@attrs.frozen
class Check:
    """One question and its answer; ``detail`` holds numbers and places, never content."""

    name: str
    ok: bool
    detail: str


@attrs.frozen(kw_only=True)
class Examination:
    """What a doctor has to say. ``unread``: logs that are none, or could not be read, with the reason."""

    checks: tuple[Check, ...]
    losses: tuple[DamagedPlace, ...]
    unread: tuple[Skipped, ...]

    @property
    def healthy(self) -> bool:
        """Every check passed. Damaged records in logs are the logs' affair."""
        return all(check.ok for check in self.checks)


def examine(
    reader: StoreReader,
    readers: Mapping[str, Reader],
    samples: int,
    *,
    stopped: Callable[[], bool] = lambda: False,
    seed: int | None = None,
) -> Examination:
    """Check both files whole and ``samples`` sessions against what their logs say now.

    Runs inside the caller's snapshot of the index. Seconds for a million events. ``stopped`` is asked
    between samples. ``seed`` makes the choice of samples repeatable.
    """
    checks = (
        check_index_file(reader),
        check_file("journal file", reader.journal.connection),
        _or_failed("journal and index", lambda: check_journal_in_step(reader)),
        _or_failed("samples", lambda: check_samples(reader, readers, samples, stopped=stopped, seed=seed)),
    )
    return Examination(
        checks=checks,
        losses=_or_none(lambda: tuple(report_losses(reader.connection))),
        unread=_or_none(lambda: tuple(unread_logs(reader.connection))),
    )


def _or_failed(name: str, check: Callable[[], Check]) -> Check:
    """A check that a damaged file stops has failed; the others still run."""
    try:
        return check()
    except (DatabaseError, JournalDamaged) as exc:
        return Check(name, False, f"stopped by a damaged file: {exc}"[:500])


def _or_none(listed: Callable[[], tuple[T, ...]]) -> tuple[T, ...]:
    """A list that the damaged index cannot give is empty; its own check has failed then."""
    try:
        return listed()
    except DatabaseError:
        return ()


def check_file(name: str, connection: Connection) -> Check:
    """SQLite's own check of pages and indexes, full-text ones included."""
    found = problems_of(connection)
    return Check(name, not found, "; ".join(found)[:500] or "ok")


def check_index_file(reader: StoreReader) -> Check:
    """The index's file; says also which damaged one it took the place of, as long as that is kept.

    A damaged one is marked, so that the next start builds it anew.
    """
    check = check_file("index file", reader.connection)
    if not check.ok:
        reader.suspect(DatabaseError(f"database disk image is malformed: {check.detail}"))
        return attrs.evolve(check, detail=f"{check.detail}; the next start builds it anew")
    path = _or_empty(reader.connection)
    aside = [file.name for file in set_aside_files(Path(path))] if path else []
    if not aside:
        return check
    told = f"{check.detail}; built anew, a damaged one was set aside as {printable(aside[0])}"
    return attrs.evolve(check, detail=told)


def _or_empty(connection: Connection) -> str:
    try:
        return file_of(connection)
    except DatabaseError:
        return ""


def check_journal_in_step(reader: StoreReader) -> Check:
    """Every published session is in the index, as long as it is in the journal."""
    published = reader.journal.sessions(PUBLISHED)
    behind = 0
    for stored in published:
        row = reader.index.find(stored.key)
        behind += row is None or row.state.length < stored.length
    return Check("journal and index", not behind, f"{len(published)} published sessions, {behind} behind")


def check_samples(
    reader: StoreReader,
    readers: Mapping[str, Reader],
    samples: int,
    *,
    stopped: Callable[[], bool] = lambda: False,
    seed: int | None = None,
) -> Check:
    """Read some sessions' logs again and compare every document with the index.

    A log that changed since it was indexed is passed over: the next refresh will read it.
    """
    sids = [row[0] for row in reader.connection.execute("SELECT sid FROM session ORDER BY sid").fetchall()]
    random.Random(seed).shuffle(sids)
    compared, different = 0, list[str]()
    for sid in sids:
        if compared >= samples or stopped():
            break
        row = reader.index.session(sid)
        if row is None or row.state.error is not None:
            continue
        verdict = _compare(reader, readers, row)
        compared += verdict is not None
        if verdict:
            different.append(f"{row.key.source}:{printable(row.key.id)}: {verdict}")
    detail = f"{compared} sessions compared with their logs, {len(different)} differ"
    return Check("samples", not different, "; ".join([detail, *different[:DIFFERENCES_SHOWN]]))


def unread_logs(connection: Connection) -> list[Skipped]:
    """Every log that could not be read, or that a walk passed over, with the reason."""
    units = connection.execute(
        "SELECT u.lies, r.root, u.problem, u.message FROM catalog_unit AS u"
        " JOIN catalog_root AS r ON r.root_id = u.root_id WHERE u.problem IS NOT NULL"
    ).fetchall()
    logs = sorted((unpack_whereabouts(row[0], path_of(row[1]), "").path, *row[2:]) for row in units)
    skipped = connection.execute("SELECT path, reason FROM catalog_skipped ORDER BY path").fetchall()
    return [
        *(Skipped(path=printable(path), reason=f"{what}: {why or ''}") for path, what, why in logs),
        *(Skipped(path=printable(path_of(path)), reason=reason) for path, reason in skipped),
    ]


def _compare(reader: StoreReader, readers: Mapping[str, Reader], row: StoredSession) -> str | None:
    """What differs, an empty text if nothing does, None if it cannot be compared now."""
    try:
        events = _events(reader, readers, row)
    except (OSError, JournalDamaged, DatabaseError) as exc:
        return f"its log cannot be read: {type(exc).__name__}"
    if events is None:
        return None
    if len(events) != row.state.length:
        return f"{row.state.length} events indexed, {len(events)} in the log"
    try:
        expected = build_documents(events)
    except SurfaceError:
        return "its log breaks the surface and is indexed all the same"
    return _difference(reader.index.documents(row.sid), expected)


def _events(reader: StoreReader, readers: Mapping[str, Reader], row: StoredSession) -> Sequence[Event] | None:
    located = locate(reader.connection, row.sid)
    if located is None or located.format not in readers:
        stored = reader.journal.find(row.key)
        if stored is None:
            return None
        pages = reader.journal.read_all(stored.sid)
        return [event for page in pages for event in page][: row.state.length]
    if not _is_as_indexed(located):
        return None
    return read_located(readers[located.format], located)


def _is_as_indexed(located: Located) -> bool:
    if located.stamp is None:
        return False
    return take_stamp(located.unit.files, time.time_ns()).files == located.stamp.files


def _difference(found: Sequence[Document], expected: Sequence[Document]) -> str:
    if len(found) != len(expected):
        return f"{len(found)} documents indexed, {len(expected)} in the log"
    for one, other in zip(found, expected, strict=True):
        if one != _as_kept(other):
            return f"event {other.seq} is indexed differently"
    return ""


def _as_kept(document: Document) -> Document:
    """The document as an index keeps it: lone surrogates replaced (SPEC 0)."""
    return Document(
        seq=document.seq,
        type=to_utf8_text(document.type),
        time=document.time,
        surface=document.surface,
        text=to_utf8_text(document.text),
        is_search=document.is_search,
    )
