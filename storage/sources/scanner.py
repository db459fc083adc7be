"""One pass over a root by names and stat alone: what is new, changed, moved or gone.

Nothing is read but, for a log that vanished while another appeared, the few KB that tell whether it is
the same one moved.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from ..readers.prefix import prefix_verifies
from ..readers.seam import LogUnit, Reader, SkippedPath
from .catalog import Catalog
from .catalog_rows import Root, Unit
from .stamps import Stamp, take_stamp

logger = logging.getLogger(__name__)

STEP_UNITS: Final = 256
"""Units looked at between two steps: about 5 ms, so that an append does not wait for a walk."""


@attrs.frozen
class Changed:
    """A unit to read. ``unit`` None: seen for the first time. ``stamp`` was taken before reading."""

    unit: Unit | None
    found: LogUnit
    stamp: Stamp


@attrs.define(eq=False)
class Pass:
    """What one pass over one root saw. ``present`` False: the root itself is not there, nothing is gone."""

    root: Root
    present: bool = True
    units: int = 0
    changed: list[Changed] = attrs.field(factory=list)
    moved: list[tuple[Unit, LogUnit]] = attrs.field(factory=list)
    gone: list[Unit] = attrs.field(factory=list)
    skipped: list[SkippedPath] = attrs.field(factory=list)


def scan(catalog: Catalog, root: Root, reader: Reader) -> Iterator[Pass]:
    """Walk a root, yielding the pass every ``STEP_UNITS`` units and once more when it is complete.

    A reader that fails while walking ends the pass early, with nothing declared gone.
    """
    seen = Pass(root, present=_present(root.spec.root))
    if not seen.present:
        yield seen
        return
    found_paths: set[str] = set()
    new: list[Changed] = []
    try:
        for found in reader.units(root.spec.root):
            if isinstance(found, SkippedPath):
                seen.skipped.append(found)
                continue
            seen.units += 1
            path = str(found.path)
            if path not in found_paths:
                found_paths.add(path)
                _look(catalog, seen, found, reader, new)
            if seen.units % STEP_UNITS == 0:
                yield seen
    except Exception as exc:
        logger.exception("the %s reader failed while walking", reader.format)
        seen.skipped.append(SkippedPath(path=root.spec.root, reason=f"walk failed: {type(exc).__name__}"))
        seen.changed += new
        yield seen
        return
    missing = [
        unit
        for unit in catalog.units_of(root.root_id)
        if unit.path not in found_paths and not unit.gone and _is_gone(unit.path, seen)
    ]
    _match_moves(catalog, seen, missing, new)
    yield seen


def look_again(catalog: Catalog, unit: Unit, reader: Reader) -> Changed | None:
    """One known unit, without a walk: None if it is unchanged, or no longer where it was."""
    root = catalog.roots[unit.root_id]
    found = LogUnit(
        format=reader.format,
        root=root.spec.root,
        path=Path(unit.path),
        place=root.reader_place(unit),
        files=tuple(map(Path, unit.files)),
    )
    stamp = take_stamp(unit.files, time.time_ns())
    if stamp.log is None or is_current(unit, stamp, root, reader):
        return None
    return Changed(unit, found, stamp)


def version_of(root: Root, reader: Reader) -> int:
    """What a unit of this root is read by: the reader's version, and whether copies are kept."""
    return reader.version * 2 + int(root.spec.retain)


def is_current(unit: Unit, stamp: Stamp, root: Root, reader: Reader) -> bool:
    """Whether nothing of a unit has to be read. Copies that are no longer kept are no reason to."""
    wanted = version_of(root, reader)
    return not unit.gone and stamp.same(unit.stamp) and unit.version in {wanted, wanted | 1}


def _look(catalog: Catalog, seen: Pass, found: LogUnit, reader: Reader, new: list[Changed]) -> None:
    try:
        stamp = take_stamp(found.files, time.time_ns())
    except OSError as exc:
        seen.skipped.append(SkippedPath(path=found.path, reason=f"cannot be read: {exc.strerror}"))
        return
    unit = catalog.find_unit(seen.root.root_id, str(found.path))
    if unit is None:
        new.append(Changed(None, found, stamp))
    elif not is_current(unit, stamp, seen.root, reader):
        seen.changed.append(Changed(unit, found, stamp))


def _match_moves(catalog: Catalog, seen: Pass, missing: list[Unit], new: list[Changed]) -> None:
    """A vanished unit and a new one with the same content are one that moved; the rest is as it seems."""
    for change in new:
        unit = next((one for one in missing if _is_same_log(catalog, one, change)), None)
        if unit is None:
            seen.changed.append(change)
        else:
            missing.remove(unit)
            seen.moved.append((unit, change.found))
            seen.changed.append(attrs.evolve(change, unit=unit))
    seen.gone += missing


def _is_same_log(catalog: Catalog, unit: Unit, change: Changed) -> bool:
    """Whether a new log holds what a vanished one held.

    An inode alone proves nothing: file systems give a deleted file's number to the next one.
    """
    before, now = None if unit.stamp is None else unit.stamp.log, change.stamp.log
    if before is None or now is None:
        return False
    if before == now and now[1]:
        return True
    alike = (
        before[:2] == now[:2] or before[2] == now[2] or os.path.basename(unit.path) == change.found.path.name
    )
    checkpoint = catalog.checkpoint(unit) if alike else None
    if checkpoint is None:
        return alike and before[2:] == now[2:]
    try:
        return checkpoint.offset > 0 and prefix_verifies(
            change.found.path, checkpoint.offset, checkpoint.prefix
        )
    except OSError:
        return False


def _is_gone(path: str, seen: Pass) -> bool:
    """Only what the file system says is not there is gone; a folder we may not enter says nothing.

    A log that is there and no longer a unit (a newer generation replaced it) is gone as well, unless the
    walk could not look at it.
    """
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return all(str(skipped.path) != path for skipped in seen.skipped)


def _present(path: Path) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True
