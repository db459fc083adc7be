"""How sessions stand in the index: their state, who tells them, and what happens when a log is gone.

Everything here runs inside the index writer's transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

import attrs

from ...protocol.errors import Code
from ...protocol.outward import SessionKey
from ..index.door import IndexWriter, SessionState
from ..journal import JournalReader
from ..projection import title_of_log
from .catalog import Catalog
from .catalog_rows import CatalogSession, Unit
from .reading import Piece

NAMING_PARTS: Final = 5
"""The last parts of a path, of which readers make ids."""


@attrs.define(eq=False)
class Standing:
    """Writes sessions' states. ``ranks``: a format's place in the order of SPEC 16.6.3, smaller is better.

    ``store`` qualifies revisions (SPEC 1.9.1).
    """

    catalog: Catalog
    writer: IndexWriter
    journal: JournalReader | None
    ranks: Mapping[str, int]
    store: str

    def put(self, unit: Unit, piece: Piece) -> None:
        """Apply one piece to the index and store its row."""
        row, known = piece.row, None
        stands = self.catalog.standing_of(row)
        if stands is not None and stands != (row.owner, row.sid):
            row.owner, row.sid = stands  # handed over meanwhile: its new teller is read anew
            self.catalog.put_session(row)
            return
        if row.forgotten:
            self._remove(row)
        elif row.owner:
            cut = None if row.sid is None and piece.cut == 0 and not self._is_indexed(row.key) else piece.cut
            known = self.state(unit, row)
            sid = row.sid = self.writer.put_session(row.key, known)
            if cut is not None:
                self.writer.truncate(sid, cut)
            if row.note.broken is None:
                if piece.restored:
                    self.writer.reclassify(sid, piece.restored)
                for change in piece.changes:
                    change.apply(self.writer, sid)
        self.catalog.put_session(row, known)

    def state(self, unit: Unit, row: CatalogSession, *, gone: bool = False) -> SessionState:
        """What the index keeps of a session beside its events."""
        note = row.note
        title, title_error = title_of_log(note.title_event, note.reported)
        return SessionState(
            header=note.header,
            rank=self.ranks.get(row.key.source, len(self.ranks) + 2),
            title=title,
            title_error=title_error,
            length=row.length,
            revision=f"{self.store}:{row.unit_id}.{row.serial}",
            inherited=note.inherited,
            source_gone=gone,
            error=note.broken,
            losses=note.losses,
        )

    def _is_indexed(self, key: SessionKey) -> bool:
        return self.writer.find(key) is not None

    def settle(self, unit: Unit, put: Collection[str] = (), begun: Collection[SessionKey] = ()) -> list[Unit]:
        """A unit was read to its end: what it no longer tells goes, losses are laid at a session's door.

        ``put``: ids of the sessions whose state this read has already written. ``begun``: sessions that a log
        of this transaction tells, perhaps one that is not written yet.
        Returns: units to be read from their start, because a session is theirs to tell now.
        """
        again: list[Unit] = []
        rows = self.catalog.sessions_of(unit, self._format(unit)).values()
        told = [row for row in rows if row.epoch == unit.epoch]
        for row in rows:
            if row.epoch != unit.epoch:
                again += self._vanish(unit, row)
        bearer = _bearer(told)
        for row in told:
            losses = self.catalog.lost_records(unit) if row is bearer else 0
            if row.owner and not row.forgotten:
                changed, row.note.losses = row.note.losses != losses, losses
                if changed or row.key.id not in put:
                    self._put(unit, row)
        for row in told:
            if unit not in again:  # else its sessions have just been dropped, to be told anew
                again += self._contest(row.key, begun)
        return again

    def lose(self, unit: Unit) -> list[Unit]:
        """A log was deleted: its sessions go, unless a copy is kept or another log tells them.

        Returns: as ``settle``.
        """
        again: list[Unit] = []
        unit.gone = True
        rows = list(self.catalog.sessions_of(unit, self._format(unit)).values())
        for row in rows:
            again += self._vanish(unit, row)
        if self.catalog.sessions_of(unit, self._format(unit)):
            self.catalog.put_unit(unit, unit.files, 0)
        else:
            self.catalog.drop_unit(unit)
        return again

    def renames(self, unit: Unit, path: Path) -> bool:
        """Whether a log that moves to ``path`` may tell its sessions under other ids from there.

        Many formats name a session by its file or by a folder of its own. What was indexed under the old name
        could not be read under the new one.
        """
        ids = self.catalog.sessions_of(unit, self._format(unit))
        parts = {part for session_id in ids for part in session_id.split("/")}
        before, after = ("/".join(one.parts[-NAMING_PARTS:]) for one in (Path(unit.path), path))
        return any(part in before and part not in after for part in parts)

    def joins(self, unit: Unit) -> bool:
        """Whether a log moved to where another one tells a session of its id: there they are one session.

        Logs of one folder with one id are generations of one (SPEC 16.6.1); kept under its first place, what
        moved would be a second session of the same identity, hidden behind the other.
        """
        if not unit.has_moved:
            return False
        format_name = self._format(unit)
        ids = self.catalog.sessions_of(unit, format_name)
        homes = [SessionKey(format_name, unit.home, session_id) for session_id in ids]
        return any(row.unit_id != unit.unit_id for key in homes for row in self.catalog.tellers(key))

    def evict(self, unit: Unit) -> Unit:
        """A log that moved gives up its first place, where another log tells a session of the same id.

        Its sessions are dropped and told anew, at the place where it lies now.
        """
        for row in self.catalog.sessions_of(unit, self._format(unit)).values():
            if row.owner:
                self._remove(row)
            self.catalog.drop_session(row)
        self.catalog.settle_down(unit)
        return unit

    def remove_unit(self, unit: Unit) -> None:
        """A source is not read any more: its sessions leave the index; copies and logs stay."""
        for row in self.catalog.sessions_of(unit, self._format(unit)).values():
            if row.owner:
                self._remove(row)
        self.catalog.drop_unit(unit)

    def missing(self, unit: Unit, *, missing: bool) -> None:
        """A whole root is not there (a disk that is not mounted) or is back: say so, remove nothing."""
        for row in self.catalog.sessions_of(unit, self._format(unit)).values():
            if row.owner and not row.forgotten and row.sid is not None and not unit.gone:
                self.writer.put_session(row.key, self.state(unit, row, gone=missing))

    def unreadable(self, unit: Unit) -> None:
        """The log is intact and cannot be read any more (a newer version wrote it): its sessions say so."""
        for row in self.catalog.sessions_of(unit, self._format(unit)).values():
            if row.owner and not row.forgotten:
                row.note.broken = Code.PERSISTENCE_FAILED.value
                row.note.digest = None
                row.serial += 1
                self._put(unit, row)

    def _put(self, unit: Unit, row: CatalogSession) -> None:
        known = self.state(unit, row)
        row.sid = self.writer.put_session(row.key, known)
        self.catalog.put_session(row, known)

    def _vanish(self, unit: Unit, row: CatalogSession) -> list[Unit]:
        if row.forgotten or not row.owner or row.sid is None:
            self.catalog.drop_session(row)
            return []
        rivals = [other for other in self.catalog.tellers(row.key) if other.unit_id != row.unit_id]
        if rivals:
            self.catalog.drop_session(row)
            return self._hand_over(row.sid, max(rivals, key=_claim))
        if self.journal is not None and self.journal.find(row.key) is not None:
            self.writer.put_session(row.key, self.state(unit, row, gone=True))
            return []
        self._remove(row)
        self.catalog.drop_session(row)
        return []

    def _remove(self, row: CatalogSession) -> None:
        if row.sid is not None:
            self.writer.delete(row.sid)
            row.sid = None

    def _contest(self, key: SessionKey, begun: Collection[SessionKey]) -> list[Unit]:
        """Several logs of one folder tell one session: the one that goes on furthest is believed."""
        tellers = [row for row in self.catalog.tellers(key) if not row.forgotten]
        if tellers and key not in begun and not any(row.owner for row in tellers):
            return self._hand_over(None, max(tellers, key=_claim))
        if len(tellers) < 2:
            return []
        moved = [row for row in tellers if self.catalog.units[row.unit_id].has_moved]
        if moved and len(moved) < len(tellers):
            return self._make_way(key, moved)
        best = max(tellers, key=_claim)
        owner = next((row for row in tellers if row.owner), None)
        if owner is None or owner is best or _claim(owner)[:2] == _claim(best)[:2]:
            return []
        sid, owner.owner, owner.sid = owner.sid, False, None
        self.catalog.put_session(owner)
        return self._hand_over(sid, best)

    def _make_way(self, key: SessionKey, moved: list[CatalogSession]) -> list[Unit]:
        """Of several that tell a session of one place, those that moved away from there tell another."""
        again = [self.evict(self.catalog.units[row.unit_id]) for row in moved]
        left = self.catalog.tellers(key)
        if left and not any(row.owner for row in left):
            heir = max(left, key=_claim)
            again += self._hand_over(None, heir)
        return again

    def _hand_over(self, sid: int | None, heir: CatalogSession) -> list[Unit]:
        """Let ``heir`` tell the session that the index has as ``sid``."""
        heir.owner, heir.sid = True, sid
        heir.note.digest = None
        self.catalog.put_session(heir)
        unit = self.catalog.units[heir.unit_id]
        unit.stamp, unit.handed = None, True
        self.catalog.put_checkpoint(unit, None)
        self.catalog.put_unit(unit, unit.files, 0)
        return [unit]

    def _format(self, unit: Unit) -> str:
        return self.catalog.roots[unit.root_id].spec.format


def _claim(row: CatalogSession) -> tuple[int, int, int]:
    return row.last_time, row.length, -row.unit_id


def _bearer(rows: list[CatalogSession]) -> CatalogSession | None:
    """The session that a unit's losses are counted with: its main one, if all share a workspace.

    A loss that no workspace can be given for appears to the operator only (SPEC 16.3).
    """
    mine = [row for row in rows if row.owner and not row.forgotten]
    if not mine or len({row.note.header.cwd for row in mine}) > 1:
        return None
    return min(
        mine,
        key=lambda row: (row.note.header.parent_session is not None, row.note.header.created_at, row.key.id),
    )
