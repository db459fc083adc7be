"""What every reader of foreign logs must hold, whatever its format.

``check_reader`` takes a reader and one worked log and runs all checks; each can be called alone. A test
module of a format is a worked log, its expected list, and what is special to the format.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path, PurePosixPath
from unittest.mock import patch

import attrs

from session_query.protocol.event import Event
from session_query.protocol.json_codec import canonical_json, lossless_defect
from session_query.protocol.json_value import SAFE_INTEGER_MAX, is_safe_integer
from session_query.protocol.surface import fold
from session_query.storage.readers import driver
from session_query.storage.readers.collect import Collected, CollectedSession, collect
from session_query.storage.readers.driver import READER_FAILED
from session_query.storage.readers.seam import LogUnit, Reader, SkippedPath


def never() -> bool:
    return False


@attrs.frozen(kw_only=True)
class Worked:
    """One worked log: ``files`` by path below a root, and what they must yield.

    ``expected`` is the list of (seq, type) of each session by id. ``log`` names the file that grows and
    is damaged in the checks. ``grows``: the log is lines appended to it. ``native``: each record is kept
    whole under ``data.native``.
    """

    reader: Reader
    files: Mapping[str, bytes]
    expected: Mapping[str, Sequence[tuple[int, str]]]
    log: str
    grows: bool = True
    native: bool = True

    def build(self, root: Path) -> Path:
        """Write the files below ``root``; returns the log."""
        for name, content in self.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return root / self.log


def check_reader(
    reader: Reader,
    files: Mapping[str, bytes],
    expected: Mapping[str, Sequence[tuple[int, str]]],
    tmp_path: Path,
    *,
    log: str | None = None,
    grows: bool = True,
    native: bool = True,
) -> None:
    """Run every check that applies. ``log`` may be left out if there is one file."""
    worked = Worked(
        reader=reader,
        files=files,
        expected=expected,
        log=log or next(iter(files)),
        grows=grows,
        native=native,
    )
    checks: list[Callable[[Worked, Path], None]] = [
        check_names,
        check_expected,
        check_discovery,
        check_repeatable,
        check_nothing_there,
        check_stop,
    ]
    if native:
        checks.append(check_native)
    if grows:
        checks += [check_growth, check_every_cut, check_bad_line, check_rewrite, check_strange_state]
    for number, check in enumerate(checks):
        root = tmp_path / f"{number}-{check.__name__}"
        root.mkdir()
        check(worked, root)


def lines_of(raw: bytes) -> list[bytes]:
    """The lines of a log with their line feeds, cut at line feeds alone."""
    return re.findall(rb"[^\n]*\n|[^\n]+", raw)


def units_of(reader: Reader, root: Path) -> list[LogUnit]:
    return [found for found in reader.units(root) if isinstance(found, LogUnit)]


def unit_of(reader: Reader, root: Path, log: Path) -> LogUnit:
    """The unit that ``log`` belongs to."""
    found = [unit for unit in units_of(reader, root) if unit.path == log or log in unit.files]
    assert len(found) == 1, f"{len(found)} units hold {log.name}"
    return found[0]


def read_unit(reader: Reader, unit: LogUnit, into: Collected | None = None) -> Collected:
    """Read once, going on from the checkpoint of ``into``; every batch must add up, no record be too much."""
    collected = into if into is not None else Collected()
    for batch in reader.read(unit, collected.checkpoint, never):
        assert batch.records == batch.held + sum(loss.records for loss in batch.losses)
        assert [loss for loss in batch.losses if loss.cause == READER_FAILED] == []
        collected.add(batch)
    return collected


def read_root(reader: Reader, root: Path) -> dict[str, CollectedSession]:
    """Every session below a root by id (an id seen twice must not be: use ``read_unit`` then)."""
    sessions: dict[str, CollectedSession] = {}
    for unit in units_of(reader, root):
        for session_id, session in read_unit(reader, unit).sessions.items():
            assert session_id not in sessions
            sessions[session_id] = session
    return sessions


def shape(session: CollectedSession) -> list[tuple[int, str]]:
    return [(event.seq, event.type) for event in session.events]


def check_names(worked: Worked, root: Path) -> None:
    """A reader has a name, a version and usual places on every platform, also in an empty environment."""
    reader = worked.reader
    assert reader.format
    assert reader.format == reader.format.strip().lower()
    assert reader.version >= 1
    home = root / "home"
    for platform in ("linux", "darwin", "win32"):
        places = reader.usual_places({}, home, platform)
        assert all(place.is_relative_to(home) for place in places), "only what is under the home folder"


def check_expected(worked: Worked, root: Path) -> None:
    """The worked log yields its sessions, event by event; headers, events and surfaces are valid."""
    worked.build(root)
    sessions = read_root(worked.reader, root)
    assert {session_id: shape(session) for session_id, session in sessions.items()} == {
        session_id: list(events) for session_id, events in worked.expected.items()
    }
    for session in sessions.values():
        check_session(session)


def check_session(session: CollectedSession) -> None:
    """A header of SPEC 1.1, envelopes of 1.2, contiguity of 1.3.1, a surface that folds."""
    header = session.header
    assert header.version == 0
    assert is_safe_integer(header.created_at)
    assert header.created_at >= 0
    for text in (header.id, header.cwd, header.parent_session, header.agent_preset, header.origin):
        assert text is None or text.encode("utf-8") is not None
    assert header.id
    assert header.origin in (None, "subagent")
    assert 0 <= session.inherited <= len(session.events)
    for index, event in enumerate(session.events):
        check_event(event, index)
    fold(session.events)


def check_event(event: Event, index: int) -> None:
    assert event.seq == index
    assert event.type
    assert is_safe_integer(event.time)
    assert abs(event.time) <= SAFE_INTEGER_MAX
    assert lossless_defect(event.data) in (None, "a negative zero")
    canonical_json(event.data).decode("utf-8")


def check_discovery(worked: Worked, root: Path) -> None:
    """The log is found below its root and when named itself; what only looks like it is skipped."""
    log = worked.build(root)
    first = list(worked.reader.units(root))
    assert any(isinstance(unit, LogUnit) and log in (unit.path, *unit.files) for unit in first)
    named = units_of(worked.reader, log)
    assert len(named) == 1, "a log file can be named itself"
    assert list(worked.reader.units(root / "not there")) == []
    _put_traps(log)
    again = list(worked.reader.units(root))
    assert [unit for unit in again if isinstance(unit, LogUnit)] == [
        unit for unit in first if isinstance(unit, LogUnit)
    ]
    assert list(worked.reader.units(root)) == again, "a stable order"
    for found in again:
        if isinstance(found, LogUnit):
            assert found.format == worked.reader.format
            assert not PurePosixPath(found.place).is_absolute()
        else:
            assert isinstance(found, SkippedPath)
            assert found.reason


def _put_traps(log: Path) -> None:
    """A folder, a link and a loop beside the log, with names that a log could have."""
    suffix = "".join(log.suffixes)
    (log.parent / f"zz-folder{suffix}").mkdir()
    (log.parent / f"zz-link{suffix}").symlink_to(log)
    (log.parent / f"zz-dangling{suffix}").symlink_to(log.parent / "gone")
    (log.parent / "zz-loop").symlink_to(log.parent, target_is_directory=True)


def check_repeatable(worked: Worked, root: Path) -> None:
    """The same bytes give the same sessions, also under another root."""
    (root / "a").mkdir()
    (root / "b").mkdir()
    worked.build(root / "a")
    worked.build(root / "b")
    first, second = read_root(worked.reader, root / "a"), read_root(worked.reader, root / "b")
    assert {name: (session.header, session.events) for name, session in first.items()} == {
        name: (session.header, session.events) for name, session in second.items()
    }


def check_nothing_there(worked: Worked, root: Path) -> None:
    """An empty file yields no event; a text that is no log is refused; neither is an error."""
    log = worked.build(root)
    unit = unit_of(worked.reader, root, log)
    if worked.grows:
        log.write_bytes(b"")
        empty = read_unit(worked.reader, unit)
        assert sum(len(session.events) for session in empty.sessions.values()) == 0
        log.write_bytes(b"[12:00:01] started\n[12:00:02] {not json}\n  done\n" * 20)
        refused = read_unit(worked.reader, unit)
        assert refused.sessions == {}
        assert refused.refusal is not None
        assert refused.refusal.kind == "not-a-session"


def check_stop(worked: Worked, root: Path) -> None:
    """A read that is told to stop ends after the batch at hand."""
    log = worked.build(root)
    assert len(list(worked.reader.read(unit_of(worked.reader, root, log), None, lambda: True))) <= 2


def check_native(worked: Worked, root: Path) -> None:
    """Every object of the log stands whole under ``data.native`` of some event, once."""
    log = worked.build(root)
    collected = read_unit(worked.reader, unit_of(worked.reader, root, log))
    kept = Counter(
        canonical_json(event.data["native"])
        for session in collected.sessions.values()
        for event in session.events
        if isinstance(event.data, dict) and "native" in event.data
    )
    if worked.grows:
        there = Counter(
            canonical_json(json.loads(line)) for line in lines_of(log.read_bytes()) if line.strip()
        )
        assert kept == there
    assert sum(kept.values()) >= 1


@contextmanager
def states_kept() -> Iterator[None]:
    """Every log as if it were a long one: a read goes on from its mapper's state."""
    with patch.object(driver, "MAPPED_AGAIN_BYTES", 0):
        yield


def check_growth(worked: Worked, root: Path) -> None:
    """Read after every line that is written: the same as reading once at the end, with states and without."""
    for name, states in (("mapped again", nullcontext()), ("from states", states_kept())):
        with states:
            _check_growth(worked, root / name)


def _check_growth(worked: Worked, root: Path) -> None:
    log = worked.build(root)
    lines = lines_of(log.read_bytes())
    unit = unit_of(worked.reader, root, log)
    whole = read_unit(worked.reader, unit)
    log.write_bytes(b"")
    grown = Collected()
    for line in lines:
        with log.open("ab") as file:
            file.write(line)
        read_unit(worked.reader, unit, grown)
    _same(grown, whole)


def check_every_cut(worked: Worked, root: Path) -> None:
    """Cut the last line at many places, read, complete it, read on: the same as reading once."""
    for name, states in (("mapped again", nullcontext()), ("from states", states_kept())):
        with states:
            _check_every_cut(worked, root / name)


def _check_every_cut(worked: Worked, root: Path) -> None:
    log = worked.build(root)
    raw = log.read_bytes().rstrip(b"\n") + b"\n"
    log.write_bytes(raw)
    unit = unit_of(worked.reader, root, log)
    whole = read_unit(worked.reader, unit)
    start = raw.rindex(b"\n", 0, -1) + 1 if raw.count(b"\n") > 1 else 0
    step = max(1, (len(raw) - start) // 40)
    for cut in range(start, len(raw), step):
        log.write_bytes(raw[:cut])
        grown = read_unit(worked.reader, unit)
        assert all(loss.records == 0 for loss in grown.losses), "a torn tail is no loss yet"
        log.write_bytes(raw)
        _same(read_unit(worked.reader, unit, grown), whole)


def _same(one: Collected, other: Collected) -> None:
    assert {name: shape(session) for name, session in one.sessions.items()} == {
        name: shape(session) for name, session in other.sessions.items()
    }
    assert {name: (session.header, session.events) for name, session in one.sessions.items()} == {
        name: (session.header, session.events) for name, session in other.sessions.items()
    }
    assert (one.records, one.held, one.losses) == (other.records, other.held, other.losses)


def check_bad_line(worked: Worked, root: Path) -> None:
    """A line of garbage behind any line costs one record and changes nothing else."""
    log = worked.build(root)
    lines = lines_of(log.read_bytes())
    unit = unit_of(worked.reader, root, log)
    whole = read_unit(worked.reader, unit)
    for place in range(1, len(lines), max(1, len(lines) // 20)):
        before = b"".join(lines[:place])
        log.write_bytes(before + b'{"torn":"in the mid\n' + b"".join(lines[place:]))
        damaged = read_unit(worked.reader, unit)
        assert damaged.held == whole.held
        assert len(damaged.losses) == len(whole.losses) + 1
        assert (len(before), 1) in [(loss.offset, loss.records) for loss in damaged.losses]
        assert {name: session.events for name, session in damaged.sessions.items()} == {
            name: session.events for name, session in whole.sessions.items()
        }


def check_rewrite(worked: Worked, root: Path) -> None:
    """A log that shrinks or changes in what was read is read again from its start."""
    log = worked.build(root)
    raw = log.read_bytes()
    lines = lines_of(raw)
    unit = unit_of(worked.reader, root, log)
    known = read_unit(worked.reader, unit)
    for content in (b"".join(lines[: max(1, len(lines) - 1)]), lines[0] + b"\n" + b"".join(lines[1:])):
        log.write_bytes(content)
        again = collect(worked.reader.read(unit, known.checkpoint, never), Collected())
        _same(again, read_unit(worked.reader, unit))


def check_strange_state(worked: Worked, root: Path) -> None:
    """A checkpoint whose state cannot be read (another version wrote it) starts again."""
    log = worked.build(root)
    unit = unit_of(worked.reader, root, log)
    whole = read_unit(worked.reader, unit)
    if whole.checkpoint is None:
        return
    for state in (b"", b"\xff\x00nonsense", b"{}", b"[]", b"null"):
        strange = attrs.evolve(whole.checkpoint, state=state)
        batches = list(worked.reader.read(unit, strange, never))
        assert batches[0].restart, "read again from the start"
        _same(collect(batches), whole)
