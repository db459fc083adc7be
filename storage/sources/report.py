"""What was found where: sources with counts, what was skipped, what was lost. Reads the catalog alone."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import attrs

from ..readers.discovery import printable
from ..sqlite import Connection
from .catalog_rows import path_of
from .stamps import unpack_stamp
from .whereabouts import unpack_whereabouts

_ROOTS: Final = "SELECT root_id, format, root, missing, walked_ms FROM catalog_root ORDER BY root_id"
_UNITS: Final = "SELECT root_id, lies, stamp, lost, bytes, problem, message, gone, read_ms FROM catalog_unit"
_SESSIONS: Final = (
    "SELECT u.root_id, count(*), coalesce(sum(s.length), 0) FROM catalog_session AS s"
    " JOIN catalog_unit AS u ON u.unit_id = s.unit_id WHERE s.number > 0 GROUP BY u.root_id"
)
_LOSSES: Final = (
    "SELECT path, offset, length, cause, records FROM catalog_loss ORDER BY unit_id, number LIMIT ?"
)


@attrs.frozen(kw_only=True)
class Skipped:
    """A path that yields nothing, and why."""

    path: str
    reason: str


@attrs.define(kw_only=True)
class SourceReport:
    """One source. ``bytes``: read of its logs. ``changed_ms``: the newest log's change, None without logs.

    ``read_since_ms`` logs were read at or after the time asked for.
    """

    format: str
    path: str
    missing: bool
    logs: int = 0
    sessions: int = 0
    events: int = 0
    bytes: int = 0
    lost_records: int = 0
    logs_read: int = 0
    changed_ms: int | None = None
    skipped: list[Skipped] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class DamagedPlace:
    """Bytes that yielded nothing although they should have."""

    path: str
    offset: int
    length: int
    cause: str
    records: int


def report_sources(connection: Connection, since_ms: int) -> list[SourceReport]:
    """Every source ever read, in the order they were added. ``since_ms``: what "read now" counts from."""
    roots = connection.execute(_ROOTS).fetchall()
    reports = {
        row[0]: SourceReport(format=row[1], path=printable(path_of(row[2])), missing=bool(row[3]))
        for row in roots
    }
    tops = {row[0]: path_of(row[2]) for row in roots}
    for root_id, lies, stamp, lost, size, problem, message, gone, read_ms in connection.execute(
        _UNITS
    ).fetchall():
        report = reports.get(root_id)
        if report is None or gone:
            continue
        report.logs += 1
        report.bytes += size
        report.lost_records += lost
        report.logs_read += read_ms >= since_ms
        seen = unpack_stamp(stamp)
        if seen is not None and seen.newest_ns:
            report.changed_ms = max(report.changed_ms or 0, seen.newest_ns // 1_000_000)
        if problem is not None:
            shown = printable(unpack_whereabouts(lies, tops[root_id], "").path)
            report.skipped.append(Skipped(path=shown, reason=f"{problem}: {message or ''}".rstrip(": ")))
    for root_id, sessions, events in connection.execute(_SESSIONS).fetchall():
        if root_id in reports:
            reports[root_id].sessions, reports[root_id].events = sessions, events
    skipped: dict[int, list[Skipped]] = defaultdict(list)
    for root_id, path, reason in connection.execute("SELECT * FROM catalog_skipped").fetchall():
        skipped[root_id].append(Skipped(path=printable(path_of(path)), reason=reason))
    for root_id, items in skipped.items():
        if root_id in reports:
            reports[root_id].skipped += items
    return list(reports.values())


def report_losses(connection: Connection, limit: int = 10_000) -> list[DamagedPlace]:
    """Every damaged place that was kept, by log and offset."""
    return [
        DamagedPlace(path=path, offset=offset, length=length, cause=cause, records=records)
        for path, offset, length, cause, records in connection.execute(_LOSSES, (limit,)).fetchall()
    ]


def count_unread(connection: Connection) -> int:
    """Logs that are there and could not be read at all, whatever the reason."""
    sql = "SELECT count(*) FROM catalog_unit WHERE NOT gone AND problem IS NOT NULL AND problem <> ?"
    return int(connection.execute(sql, ("not-a-session",)).fetchall()[0][0])


def is_built(connection: Connection) -> bool:
    """Whether every source was walked and every log found was read: later looks only follow changes."""
    sql = (
        "SELECT NOT EXISTS (SELECT 1 FROM catalog_root WHERE walked_ms = 0)"
        " AND NOT EXISTS (SELECT 1 FROM catalog_unit WHERE stamp IS NULL AND NOT gone)"
    )
    return bool(connection.execute(sql).fetchall()[0][0])
