"""What is known of every log: where it is, how it looked when it was read, how far, and what it told.

All methods that write are called inside the index writer's transaction, so that a checkpoint is never
ahead of what it stands for. ``Catalog`` keeps the units of all roots in memory (about 1 KB each), without
their checkpoints; after a rolled-back transaction call ``reload``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from sys import intern
from typing import Final

from ...protocol.header import SessionHeader
from ...protocol.outward import SessionKey
from ..index import rows as index_rows
from ..index.door import SessionState
from ..index.rows import to_sql
from ..readers.discovery import printable
from ..readers.seam import Checkpoint, LogUnit, Loss, SkippedPath
from ..sqlite import Connection, Row, SqlValue
from ..text_codec import TextCodec
from .catalog_rows import (
    SESSION_ROWS,
    UNIT_COLUMNS,
    CatalogSession,
    Root,
    SessionNote,
    Unit,
    flags_of,
    is_owner,
    pack_note,
    path_blob,
    path_of,
    session_of,
    unit_of,
)
from .spec import SourceSpec
from .stamps import pack_stamp
from .whereabouts import Whereabouts

LOSSES_KEPT: Final = 1000
"""Damaged places kept for each unit with offset and cause; a log of nothing but damage has millions."""

_IS_IT: Final = (
    "number = ? AND unit_id = ? AND coalesce(id, (SELECT id FROM session WHERE sid = number), ?3) = ?3"
)
"""Whether a row is still a session's: a number known from an undone transaction may be another's."""


class Catalog:
    """The catalog over the index writer's connection. Owner: the writer thread."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._codec = TextCodec()
        self.roots: dict[int, Root] = {}
        self.units: dict[int, Unit] = {}
        self._by_path: dict[tuple[int, str], int] = {}
        self._by_file: dict[str, tuple[int, ...]] = {}
        self.reload()

    def reload(self) -> None:
        """Take roots and units from the database, as committed."""
        execute = self.connection.execute
        retained = {root_id: root.spec.retain for root_id, root in self.roots.items()}
        rows = execute("SELECT root_id, format, root, label, walked_ms, missing FROM catalog_root").fetchall()
        self.roots = {
            row[0]: Root(
                row[0],
                SourceSpec(format=row[1], root=Path(path_of(row[2])), retain=retained.get(row[0], False)),
                row[3],
                row[4],
                bool(row[5]),
            )
            for row in rows
        }
        units = execute(f"SELECT {UNIT_COLUMNS} FROM catalog_unit").fetchall()
        self.units = {row[0]: unit_of(row, self.roots) for row in units}
        self._by_path, self._by_file = {}, {}
        for unit in self.units.values():
            self._enter(unit)

    def reload_unit(self, unit_id: int) -> Unit | None:
        """Take one unit from the database, as committed; None if it is not there."""
        sql = f"SELECT {UNIT_COLUMNS} FROM catalog_unit WHERE unit_id = ?"
        rows = self.connection.execute(sql, (unit_id,)).fetchall()
        if not rows:
            return None
        if unit_id in self.units:
            self._leave(self.units[unit_id])
        unit = self.units[unit_id] = unit_of(rows[0], self.roots)
        self._enter(unit)
        return unit

    def use_root(self, spec: SourceSpec) -> Root:
        """The root of a source, added if it is new. The first root of a format has no label."""
        for root in self.roots.values():
            if (root.spec.format, root.spec.root) == (spec.format, spec.root):
                root.spec = spec
                return root
        first = all(root.spec.format != spec.format for root in self.roots.values())
        label = "" if first else printable(spec.root)
        sql = "INSERT INTO catalog_root(format, root, label) VALUES (?, ?, ?) RETURNING root_id"
        parameters = (spec.format, path_blob(spec.root), label)
        ((root_id,),) = self.connection.execute(sql, parameters).fetchall()
        self.roots[root_id] = Root(root_id, spec, label)
        return self.roots[root_id]

    def drop_root(self, root_id: int) -> None:
        """Forget a root whose units have been dropped."""
        self.connection.execute("DELETE FROM catalog_skipped WHERE root_id = ?", (root_id,))
        self.connection.execute("DELETE FROM catalog_root WHERE root_id = ?", (root_id,))
        self.roots.pop(root_id, None)

    def walked(self, root: Root, skipped: Iterable[SkippedPath], now_ms: int, *, missing: bool) -> None:
        """Note a whole walk of a root and what it passed over."""
        self.connection.execute("DELETE FROM catalog_skipped WHERE root_id = ?", (root.root_id,))
        self.connection.executemany(
            "INSERT OR REPLACE INTO catalog_skipped VALUES (?, ?, ?)",
            [(root.root_id, path_blob(one.path), printable(one.reason)) for one in skipped],
        )
        self.connection.execute(
            "UPDATE catalog_root SET walked_ms = ?, missing = ? WHERE root_id = ?",
            (now_ms, int(missing), root.root_id),
        )
        root.walked_ms, root.missing = now_ms, missing

    def distrust(self) -> None:
        """Let every unit be read again from its start."""
        self.connection.execute(
            "UPDATE catalog_unit SET stamp = NULL, offset = NULL, prefix = NULL, state = NULL"
        )
        for unit in self.units.values():
            unit.stamp = None

    def find_unit(self, root_id: int, path: str) -> Unit | None:
        """The unit at this path, gone ones included."""
        unit_id = self._by_path.get((root_id, path))
        return None if unit_id is None else self.units[unit_id]

    def units_with(self, path: str) -> list[Unit]:
        """The units that this path is a file of."""
        return [self.units[unit_id] for unit_id in self._by_file.get(path, ())]

    def units_of(self, root_id: int) -> list[Unit]:
        """Every unit of a root, gone ones included."""
        return [unit for unit in self.units.values() if unit.root_id == root_id]

    def add_unit(self, root: Root, found: LogUnit) -> Unit:
        """A unit seen for the first time; it has to be read."""
        path = str(found.path)
        files = tuple(path if file is found.path else str(file) for file in found.files)
        place = intern(root.place(found))
        lies = root.pack(Whereabouts(path, place, place, files))
        sql = "INSERT INTO catalog_unit(root_id, lies) VALUES (?, ?) RETURNING unit_id"
        ((unit_id,),) = self.connection.execute(sql, (root.root_id, lies)).fetchall()
        unit = Unit(unit_id, root.root_id, path, place, place, files)
        self.units[unit_id] = unit
        self._enter(unit)
        return unit

    def move_unit(self, unit: Unit, root: Root, found: LogUnit) -> None:
        """The log lies elsewhere now; it keeps its place, its sessions and its checkpoint."""
        self._leave(unit)
        unit.root_id, unit.path, unit.home = root.root_id, str(found.path), root.place(found)
        unit.files, unit.gone = tuple(map(str, found.files)), False
        self._enter(unit)
        self._put_whereabouts(unit)

    def settle_down(self, unit: Unit) -> None:
        """A log that moved takes the place where it lies now; whatever it told before has been dropped."""
        unit.place = unit.home
        self._put_whereabouts(unit)
        self.read_anew(unit)

    def read_anew(self, unit: Unit) -> None:
        """Let a unit be read again from its start."""
        unit.stamp = None
        self.put_checkpoint(unit, None)
        self.connection.execute("UPDATE catalog_unit SET stamp = NULL WHERE unit_id = ?", (unit.unit_id,))

    def _put_whereabouts(self, unit: Unit) -> None:
        self.connection.execute(
            "UPDATE catalog_unit SET root_id = ?, lies = ?, gone = 0 WHERE unit_id = ?",
            (unit.root_id, self._lies(unit), unit.unit_id),
        )

    def _lies(self, unit: Unit) -> bytes:
        found = Whereabouts(unit.path, unit.place, unit.home, unit.files)
        return self.roots[unit.root_id].pack(found)

    def drop_unit(self, unit: Unit) -> None:
        """Forget a unit; its sessions are the caller's affair."""
        for table in ("catalog_session", "catalog_loss", "catalog_unit"):
            self.connection.execute(f"DELETE FROM {table} WHERE unit_id = ?", (unit.unit_id,))
        self.units.pop(unit.unit_id, None)
        self._leave(unit)

    def checkpoint(self, unit: Unit) -> Checkpoint | None:
        """Where the next read of a unit may go on."""
        sql = "SELECT offset, prefix, state FROM catalog_unit WHERE unit_id = ?"
        ((offset, prefix, state),) = self.connection.execute(sql, (unit.unit_id,)).fetchall()
        if offset is None:
            return None
        return Checkpoint(offset=offset, prefix=prefix, state=self._codec.unpack_bytes(state))

    def put_unit(self, unit: Unit, files: Sequence[str], now_ms: int) -> None:
        """Store everything ``Unit`` holds."""
        stamp = None if unit.stamp is None else pack_stamp(unit.stamp)
        if unit.files != tuple(files):
            self._leave(unit)
            unit.files = tuple(files)
            self._enter(unit)
        self.connection.execute(
            "UPDATE catalog_unit SET lies = ?, stamp = ?, version = ?, epoch = ?, problem = ?, message = ?,"
            " gone = ?, read_ms = ? WHERE unit_id = ?",
            (
                self._lies(unit),
                stamp,
                unit.version,
                unit.epoch,
                unit.problem,
                unit.message,
                int(unit.gone),
                now_ms,
                unit.unit_id,
            ),
        )

    def put_checkpoint(self, unit: Unit, checkpoint: Checkpoint | None) -> None:
        """Where to go on after what this transaction stores."""
        values: tuple[SqlValue, ...] = (None, None, None)
        if checkpoint is not None:
            values = (checkpoint.offset, checkpoint.prefix, self._codec.pack_bytes(checkpoint.state))
        sql = "UPDATE catalog_unit SET offset = ?, prefix = ?, state = ? WHERE unit_id = ?"
        self.connection.execute(sql, (*values, unit.unit_id))

    def begin_read(self, unit: Unit, *, restart: bool) -> None:
        """Take back what will come again: everything on a restart, else the counts of the loose tail."""
        execute, only = self.connection.execute, (unit.unit_id,)
        if restart:
            execute("DELETE FROM catalog_loss WHERE unit_id = ?", only)
            execute(
                "UPDATE catalog_unit SET records = 0, lost = 0, bytes = 0, tail_records = 0, tail_lost = 0"
                " WHERE unit_id = ?",
                only,
            )
        else:
            execute("DELETE FROM catalog_loss WHERE unit_id = ? AND tail", only)
            execute(
                "UPDATE catalog_unit SET records = records - tail_records, lost = lost - tail_lost,"
                " tail_records = 0, tail_lost = 0 WHERE unit_id = ?",
                only,
            )

    def count(self, unit: Unit, *, records: int, held: int, read_bytes: int, tail: bool) -> None:
        """Add up what a batch read; ``tail``: it is taken back by the next ``begin_read``."""
        self.connection.execute(
            "UPDATE catalog_unit SET records = records + ?1, lost = lost + ?2, bytes = bytes + ?3,"
            " tail_records = tail_records + ?1 * ?4, tail_lost = tail_lost + ?2 * ?4 WHERE unit_id = ?5",
            (records, records - held, read_bytes, int(tail), unit.unit_id),
        )

    def add_losses(self, unit: Unit, losses: Sequence[Loss], *, tail: bool) -> None:
        """Keep damaged places, up to ``LOSSES_KEPT`` a unit."""
        if not losses:
            return
        sql = "SELECT count(*), max(number) FROM catalog_loss WHERE unit_id = ?"
        ((kept, last),) = self.connection.execute(sql, (unit.unit_id,)).fetchall()
        first = 0 if last is None else last + 1
        self.connection.executemany(
            "INSERT INTO catalog_loss VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    unit.unit_id,
                    first + at,
                    loss.path,
                    loss.offset,
                    loss.length,
                    printable(loss.cause),
                    loss.records,
                    int(tail),
                )
                for at, loss in enumerate(losses[: max(0, LOSSES_KEPT - kept)])
            ],
        )

    def lost_records(self, unit: Unit) -> int:
        """Damaged records of a unit: what was seen and not held."""
        sql = "SELECT lost FROM catalog_unit WHERE unit_id = ?"
        ((lost,),) = self.connection.execute(sql, (unit.unit_id,)).fetchall()
        return int(lost)

    def sessions_of(self, unit: Unit, format_name: str) -> dict[str, CatalogSession]:
        """The sessions a unit told, by id."""
        rows = self.connection.execute(f"{SESSION_ROWS} WHERE c.unit_id = ?", (unit.unit_id,)).fetchall()
        found = [session_of(format_name, unit.place, row, self._codec) for row in rows]
        return {session.key.id: session for session in found if session is not None}

    def tellers(self, key: SessionKey) -> list[CatalogSession]:
        """Every row of a session, whatever unit tells it, of units that are not gone."""
        return [session for session in self._with_key(key) if not self.units[session.unit_id].gone]

    def _with_key(self, key: SessionKey) -> list[CatalogSession]:
        session_id = to_sql(key.id)
        rows: list[Row] = []
        sid = index_rows.sid_of(self.connection, key)
        if sid is not None:
            rows += self.connection.execute(f"{SESSION_ROWS} WHERE c.number = ?", (sid,)).fetchall()
        rows += self.connection.execute(f"{SESSION_ROWS} WHERE c.id = ?", (session_id,)).fetchall()
        found: list[CatalogSession] = []
        for row in rows:
            unit = self.units.get(row[1])
            if unit is not None and unit.place == key.place and self._format_of(unit) == key.source:
                session = session_of(key.source, unit.place, row, self._codec)
                found += [] if session is None else [session]
        return found

    def standing_of(self, session: CatalogSession) -> tuple[bool, int | None] | None:
        """Whether this log tells the session, and its ``sid``, as stored now; None if nothing is stored.

        A row that was read before another log of this transaction took the session over knows neither.
        """
        if session.number is None:
            return None
        execute, session_id = self.connection.execute, to_sql(session.key.id)
        sql = f"SELECT number, flags FROM catalog_session WHERE {_IS_IT}"
        rows = execute(sql, self._identity(session)).fetchall()
        if not rows:
            sid = index_rows.sid_of(self.connection, session.key)
            sql = "SELECT number, flags FROM catalog_session WHERE number = ? AND unit_id = ?"
            rows = execute(sql, (sid, session.unit_id)).fetchall()
        if not rows:
            sql = "SELECT number, flags FROM catalog_session WHERE id = ? AND unit_id = ?"
            rows = execute(sql, (session_id, session.unit_id)).fetchall()
        if not rows:
            return None
        ((session.number, flags),) = rows
        return is_owner(flags), session.number if session.number > 0 else None

    def put_session(self, session: CatalogSession, known: SessionState | None = None) -> None:
        """Store one session's row. ``known``: what the index has just been given for its ``sid``."""
        if session.sid is None:
            known = None
        elif known is None:
            stored = index_rows.by_sid(self.connection, session.sid)
            known = None if stored is None else stored.state
        number = session.sid if session.sid is not None else self._number_outside(session)
        if session.number is not None and session.number != number:
            self.drop_session(session)
        session.number = number
        flags = flags_of(session, known)
        note = pack_note(session.note, flags, known)
        self.connection.execute(
            "INSERT OR REPLACE INTO catalog_session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number,
                session.unit_id,
                flags,
                session.epoch,
                session.length,
                session.length - session.settled,
                session.last_time,
                session.serial,
                to_sql(session.key.id) if number < 0 else None,
                self._codec.pack_bytes(note) if note else None,
            ),
        )

    def _number_outside(self, session: CatalogSession) -> int:
        """The number of a row that the index has no session for: below zero."""
        execute = self.connection.execute
        if session.number is not None and session.number < 0:
            sql = f"SELECT 1 FROM catalog_session WHERE {_IS_IT}"
            if execute(sql, self._identity(session)).fetchall():
                return session.number
        ((lowest,),) = execute("SELECT min(number) FROM catalog_session").fetchall()
        return min(0, lowest or 0) - 1

    def forget(self, sids: Collection[int]) -> list[int]:
        """Mark the sessions with these numbers as forgotten, without a word of them. Returns their units.

        Called before the index gives them up. Whatever other logs of their folders tell of them goes too.
        """
        found: dict[int, CatalogSession] = {}
        for sid in sids:
            stored = index_rows.by_sid(self.connection, sid)
            tellers = [] if stored is None else self._with_key(stored.key)
            found |= {session.unit_id: session for session in tellers}
        for session in found.values():
            header = session.note.header
            session.note = SessionNote(header=SessionHeader(id=header.id, created_at=header.created_at))
            session.forgotten, session.sid = True, None
            self.put_session(session)
        return list(found)

    def drop_session(self, session: CatalogSession) -> None:
        """Forget one session's row."""
        self.connection.execute(f"DELETE FROM catalog_session WHERE {_IS_IT}", self._identity(session))

    @staticmethod
    def _identity(session: CatalogSession) -> tuple[SqlValue, ...]:
        return session.number, session.unit_id, to_sql(session.key.id)

    def _format_of(self, unit: Unit) -> str | None:
        root = self.roots.get(unit.root_id)
        return None if root is None else root.spec.format

    def _enter(self, unit: Unit) -> None:
        self._by_path[unit.root_id, unit.path] = unit.unit_id
        for file in unit.files:
            known = self._by_file.get(file, ())
            if unit.unit_id not in known:
                self._by_file[file] = (*known, unit.unit_id)

    def _leave(self, unit: Unit) -> None:
        self._by_path.pop((unit.root_id, unit.path), None)
        for file in unit.files:
            left = tuple(one for one in self._by_file.get(file, ()) if one != unit.unit_id)
            if left:
                self._by_file[file] = left
            else:
                self._by_file.pop(file, None)
