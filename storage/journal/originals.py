"""Retained logs byte for byte, beside their events: every byte of a log can be had back when it is gone.

A log is kept in parts of 64 KiB, each compressed by itself and stored once for the same content: a log that
grows costs its last part and what is new, one that is rewritten or copied costs what is different. Memory is
one part; every step is one transaction of at most ``STEP_BYTES``, so that appends get their turn between.

A log that grew is extended in place: a crash leaves a shorter prefix, completed by the next read. One that
was rewritten is stored beside its old copy and takes its place in one transaction.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Final

import attrs
import zstandard

from ...protocol.outward import SessionKey
from ..sqlite import Connection, transaction

PART_BYTES: Final = 1 << 16
STEP_BYTES: Final = 2 << 20
LEVEL: Final = 3
_RAW: Final = b"\x00"
_ZSTD: Final = b"\x01"

TABLES: Final = {
    # name: the path under the source's root, as the file system spells it. whole 0: being stored beside the
    # copy it will take the place of. changed_ns: the file's mtime when it was read.
    "original": """CREATE TABLE original(
        number INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, place BLOB NOT NULL,
        name BLOB NOT NULL, size INTEGER NOT NULL DEFAULT 0, changed_ns INTEGER NOT NULL DEFAULT 0,
        whole INTEGER NOT NULL DEFAULT 0) STRICT""",
    "original_part": """CREATE TABLE original_part(
        number INTEGER NOT NULL, at INTEGER NOT NULL, size INTEGER NOT NULL, digest BLOB NOT NULL,
        PRIMARY KEY(number, at)) STRICT, WITHOUT ROWID""",
    "original_body": """CREATE TABLE original_body(
        digest BLOB PRIMARY KEY, uses INTEGER NOT NULL, body BLOB NOT NULL) STRICT""",
    "original_session": """CREATE TABLE original_session(
        source TEXT NOT NULL, place BLOB NOT NULL, id BLOB NOT NULL, number INTEGER NOT NULL,
        PRIMARY KEY(source, place, id, number)) STRICT, WITHOUT ROWID""",
}
_INDEXES: Final = (
    "CREATE INDEX original_name ON original(source, place, name)",
    "CREATE INDEX original_told ON original_session(number)",
)
_COLUMNS: Final = "number, source, place, name, size, changed_ns"


class OriginalDamaged(Exception):
    """A kept part cannot be restored: something else changed the journal's file, or the disk failed."""


@attrs.frozen(kw_only=True)
class Original:
    """A kept log. ``name``: its path under the source's root; ``size``: bytes kept."""

    number: int
    source: str
    place: str
    name: str
    size: int
    changed_ns: int


def create_originals(connection: Connection) -> None:
    """Make the tables, inside the caller's transaction."""
    for statement in (*TABLES.values(), *_INDEXES):
        connection.execute(statement)


@attrs.define(eq=False)
class Originals:
    """Reads over any connection to the journal; writes over the writer's alone."""

    connection: Connection

    def all(self) -> list[Original]:
        """Every kept log, in the order they were first kept."""
        return self._listed("whole ORDER BY number")

    def of(self, source: str, session_id: str) -> list[Original]:
        """The kept logs that tell a session of this id."""
        told = "number IN (SELECT number FROM original_session WHERE source = ? AND id = ?) ORDER BY number"
        return self._listed(told, source, _blob(session_id))

    def sources_of(self, session_id: str) -> list[str]:
        """The formats that keep a log of a session with this id."""
        sql = "SELECT DISTINCT source FROM original_session WHERE id = ? ORDER BY source"
        return [str(source) for (source,) in self.connection.execute(sql, (_blob(session_id),)).fetchall()]

    def read(self, number: int) -> Iterator[bytes]:
        """The bytes of a kept log, a part at a time. Raises: OriginalDamaged."""
        at, more = 0, True
        while more:
            sql = (
                "SELECT p.digest, b.body FROM original_part AS p LEFT JOIN original_body AS b"
                " ON b.digest = p.digest WHERE p.number = ? AND p.at = ?"
            )
            rows = self.connection.execute(sql, (number, at)).fetchall()
            more = bool(rows)
            for digest, body in rows:
                yield _restored(bytes(digest), body)
            at += 1

    def keep(
        self, source: str, place: str, name: str, path: Path, told: Iterable[SessionKey], *, grown: bool
    ) -> Iterator[int]:
        """Keep what the file at ``path`` holds now; each ``next`` is one transaction and yields its bytes.

        Args: told: the sessions it tells. grown: a reader verified that what was read of it still stands.
        Raises: OSError: the file cannot be read; what was kept of it stays.
        """
        with open_for_copy(path) as file:
            seen = os.fstat(file.fileno())
            stored = self._find(source, place, name)
            if stored is not None and (stored.size, stored.changed_ns) == (seen.st_size, seen.st_mtime_ns):
                with transaction(self.connection):
                    self._tell(stored.number, told)
                return
            if stored is not None and grown and self._is_prefix(stored, file):
                number, at = stored.number, stored.size // PART_BYTES
            else:
                with transaction(self.connection):
                    self._drop_unfinished(source, place, name)
                    number, at = self._insert(source, place, name), 0
            more = True
            while more:
                with transaction(self.connection):
                    count, more = self._step(number, file, at)
                    if not more:
                        self._finish(number, seen.st_mtime_ns, told)
                at += STEP_BYTES // PART_BYTES
                yield count

    def forget(self, key: SessionKey) -> int:
        """Delete every kept log that tells this session, other sessions in it included. Returns how many."""
        sql = "SELECT number FROM original_session WHERE source = ? AND place = ? AND id = ?"
        with transaction(self.connection):
            parameters = (key.source, _blob(key.place), _blob(key.id))
            numbers = [number for (number,) in self.connection.execute(sql, parameters).fetchall()]
            for number in numbers:
                self._delete(number)
        return len(numbers)

    def _step(self, number: int, file: BinaryIO, at: int) -> tuple[int, bool]:
        """Store some parts from part ``at`` on; returns the bytes, and False at the end of the file."""
        count = 0
        file.seek(at * PART_BYTES)
        for place in range(at, at + STEP_BYTES // PART_BYTES):
            content = _full_read(file)
            if content:
                self._put(number, place, content)
                count += len(content)
            if len(content) < PART_BYTES:
                self.connection.execute(
                    "UPDATE original SET size = ? WHERE number = ?",
                    (place * PART_BYTES + len(content), number),
                )
                return count, False
        size = (at + STEP_BYTES // PART_BYTES) * PART_BYTES
        self.connection.execute("UPDATE original SET size = ? WHERE number = ?", (size, number))
        return count, True

    def _put(self, number: int, at: int, content: bytes) -> None:
        digest = _digest(content)
        self._release(number, at)
        added = self.connection.execute(
            "UPDATE original_body SET uses = uses + 1 WHERE digest = ?", (digest,)
        ).rowcount
        if not added:
            self.connection.execute("INSERT INTO original_body VALUES (?, 1, ?)", (digest, _packed(content)))
        self.connection.execute(
            "INSERT INTO original_part VALUES (?, ?, ?, ?)", (number, at, len(content), digest)
        )

    def _release(self, number: int, at: int) -> None:
        sql = "DELETE FROM original_part WHERE number = ? AND at = ? RETURNING digest"
        for (digest,) in self.connection.execute(sql, (number, at)).fetchall():
            self.connection.execute("UPDATE original_body SET uses = uses - 1 WHERE digest = ?", (digest,))
            self.connection.execute("DELETE FROM original_body WHERE digest = ? AND uses <= 0", (digest,))

    def _is_prefix(self, stored: Original, file: BinaryIO) -> bool:
        """Whether the file is at least as long and its last kept part still the same."""
        at = max(0, stored.size - 1) // PART_BYTES
        sql = "SELECT size, digest FROM original_part WHERE number = ? AND at = ?"
        rows = self.connection.execute(sql, (stored.number, at)).fetchall()
        if not rows:
            return stored.size == 0
        ((size, digest),) = rows
        file.seek(at * PART_BYTES)
        content = file.read(size)
        return len(content) == size and _digest(content) == bytes(digest)

    def _finish(self, number: int, changed_ns: int, told: Iterable[SessionKey]) -> None:
        sql = f"UPDATE original SET whole = 1, changed_ns = ? WHERE number = ? RETURNING {_COLUMNS}"
        ((_, source, place, name, _, _),) = self.connection.execute(sql, (changed_ns, number)).fetchall()
        older = "SELECT number FROM original WHERE source = ? AND place = ? AND name = ? AND number <> ?"
        for (other,) in self.connection.execute(older, (source, place, name, number)).fetchall():
            self._delete(other)
        self.connection.execute("DELETE FROM original_session WHERE number = ?", (number,))
        self._tell(number, told)

    def _tell(self, number: int, told: Iterable[SessionKey]) -> None:
        rows = [(key.source, _blob(key.place), _blob(key.id), number) for key in told]
        self.connection.executemany("INSERT OR IGNORE INTO original_session VALUES (?, ?, ?, ?)", rows)

    def _find(self, source: str, place: str, name: str) -> Original | None:
        where = "source = ? AND place = ? AND name = ? AND whole"
        return next(iter(self._listed(where, source, _blob(place), os.fsencode(name))), None)

    def _insert(self, source: str, place: str, name: str) -> int:
        sql = "INSERT INTO original(source, place, name) VALUES (?, ?, ?) RETURNING number"
        parameters = (source, _blob(place), os.fsencode(name))
        ((number,),) = self.connection.execute(sql, parameters).fetchall()
        return int(number)

    def _drop_unfinished(self, source: str, place: str, name: str) -> None:
        sql = "SELECT number FROM original WHERE source = ? AND place = ? AND name = ? AND NOT whole"
        parameters = (source, _blob(place), os.fsencode(name))
        for (number,) in self.connection.execute(sql, parameters).fetchall():
            self._delete(number)

    def _delete(self, number: int) -> None:
        sql = "SELECT at FROM original_part WHERE number = ?"
        for (at,) in self.connection.execute(sql, (number,)).fetchall():
            self._release(number, at)
        self.connection.execute("DELETE FROM original_session WHERE number = ?", (number,))
        self.connection.execute("DELETE FROM original WHERE number = ?", (number,))

    def _listed(self, where: str, *parameters: str | bytes) -> list[Original]:
        sql = f"SELECT {_COLUMNS} FROM original WHERE {where}"
        return [
            Original(
                number=number,
                source=source,
                place=bytes(place).decode("utf-8", "surrogatepass"),
                name=os.fsdecode(bytes(name)),
                size=size,
                changed_ns=changed_ns,
            )
            for number, source, place, name, size, changed_ns in self.connection.execute(
                sql, parameters
            ).fetchall()
        ]


def open_for_copy(path: Path) -> BinaryIO:
    """Open a regular file; see ``readers.lines.open_regular``. Raises: OSError."""
    from ..readers.lines import open_regular

    return open_regular(path)


def _full_read(file: BinaryIO) -> bytes:
    """One part, or what is left of the file."""
    parts: list[bytes] = []
    missing = PART_BYTES
    while missing and (block := file.read(missing)):
        parts.append(block)
        missing -= len(block)
    return b"".join(parts)


def _packed(content: bytes) -> bytes:
    packed = zstandard.ZstdCompressor(level=LEVEL).compress(content)
    return _ZSTD + packed if len(packed) < len(content) else _RAW + content


def _restored(digest: bytes, body: bytes | None) -> bytes:
    if body is None:
        raise OriginalDamaged("a part is missing")
    try:
        kind, packed = bytes(body[:1]), bytes(body[1:])
        content = (
            packed
            if kind == _RAW
            else zstandard.ZstdDecompressor().decompress(packed, max_output_size=PART_BYTES)
        )
    except zstandard.ZstdError as exc:
        raise OriginalDamaged(f"a part cannot be restored: {exc}") from exc
    if _digest(content) != digest:
        raise OriginalDamaged("a part is not what was kept")
    return content


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=20).digest()


def _blob(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
