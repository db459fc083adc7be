"""Walks and stamps: what a pass concludes from names and stat, and what it must not conclude."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from session_query.storage.readers.seam import LogUnit, SkippedPath
from session_query.storage.sources import scanner
from session_query.storage.sources.locate import locate
from session_query.storage.sources.report import report_sources
from session_query.storage.sources.spec import SourceSpec
from session_query.storage.sources.stamps import SETTLE_NS, Stamp, pack_stamp, take_stamp, unpack_stamp
from support.stores import EVERYONE, ToyStore, toy_store
from support.toy_logs import CREATED, ToyReader, line


@pytest.fixture
def toys(tmp_path: Path) -> Iterator[ToyStore]:
    with toy_store(tmp_path) as opened:
        yield opened


def test_stamps(tmp_path: Path) -> None:
    log, beside = tmp_path / "log", tmp_path / "beside"
    log.write_text("abc")
    seen = log.stat()
    stamp = take_stamp([log, beside], seen.st_mtime_ns + SETTLE_NS + 1)
    assert stamp.files == ((seen.st_dev, seen.st_ino, 3, seen.st_mtime_ns), None)
    assert (stamp.settled, stamp.size_bytes, stamp.newest_ns) == (True, 3, seen.st_mtime_ns)
    assert stamp.same(stamp)
    assert not stamp.same(None)
    assert unpack_stamp(pack_stamp(stamp)) == stamp
    assert unpack_stamp(None) is None
    young = take_stamp([log], seen.st_mtime_ns)
    assert not young.settled
    assert not young.same(young)
    assert take_stamp([log], seen.st_mtime_ns - SETTLE_NS - 1).settled, "a clock that runs ahead"
    beside.write_text("")
    assert not take_stamp([log, beside], seen.st_mtime_ns).same(stamp)
    odd = Stamp(((2**63 + 5, 2**64 - 1, 0, -1),))
    assert unpack_stamp(pack_stamp(odd)) == odd
    assert take_stamp([log / "below a file"], 0).log is None


def test_what_cannot_be_looked_at_is_not_gone(toys: ToyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    toys.write("closed/one.toy", line("one", "alpha"))
    toys.refresh()

    def units(root: Path) -> Iterator[LogUnit | SkippedPath]:
        yield SkippedPath(path=root / "closed", reason="cannot be read: Permission denied")

    real = os.lstat

    def lstat(path: str) -> os.stat_result:
        if "closed" in str(path):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(toys.toy, "units", units)
    monkeypatch.setattr(scanner.os, "lstat", lstat)
    toys.refresh()
    assert toys.found("alpha") == {"one"}
    monkeypatch.undo()
    toys.refresh()
    assert toys.found("alpha") == {"one"}


def test_a_walk_that_fails_declares_nothing_gone(
    toys: ToyStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    toys.write("a.toy", line("a", "alpha"))
    toys.write("b.toy", line("b", "alpha"))
    toys.refresh()
    toys.write("0.toy", line("new", "alpha"))
    walk = ToyReader().units

    def failing(root: Path) -> Iterator[LogUnit | SkippedPath]:
        yield next(iter(walk(root)))
        raise RuntimeError("a bug in the walk")

    monkeypatch.setattr(toys.toy, "units", failing)
    toys.refresh()
    assert toys.found("alpha") == {"a", "b", "new"}, "what was seen before is read all the same"
    assert "a bug in the walk" in caplog.text
    caplog.clear()
    reports = {report.format: report for report in report_sources(toys.reader.connection, 0)}
    assert [skipped.reason for skipped in reports["toy"].skipped] == ["walk failed: RuntimeError"]


def test_a_log_that_is_there_and_no_longer_a_unit_is_gone(toys: ToyStore, tmp_path: Path) -> None:
    toys.write("one.toy", line("one", "alpha"))
    toys.refresh()
    (toys.logs / "one.toy").rename(toys.logs / "one.old")
    toys.refresh()
    assert toys.sessions() == {}


def test_a_second_root_of_a_format_has_places_of_its_own(toys: ToyStore, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "a").mkdir(parents=True)
    toys.write("a/one.toy", line("one", "alpha", cwd="/a"))
    (other / "a/one.toy").write_bytes(line("one", "beta", cwd="/b"))
    sources = toys.store.sources
    sources.use([*sources.specs(), SourceSpec(format="toy", root=other)])
    toys.refresh()
    with toys.reader.index.snapshot():
        rows = toys.reader.index.with_id("one")
        assert {row.key.place for row in rows} == {"a", f"{other}/a"}
        found = {row.key.place: locate(toys.reader.connection, row.sid) for row in rows}
    units = {place: located.unit for place, located in found.items() if located is not None}
    assert {place: unit.place for place, unit in units.items()} == {"a": "a", f"{other}/a": "a"}
    assert {unit.root for unit in units.values()} == {toys.logs, other}


def test_an_unknown_format_is_passed_over(toys: ToyStore, caplog: pytest.LogCaptureFixture) -> None:
    toys.write("one.toy", line("one", "alpha"))
    toys.store.sources.use([SourceSpec(format="of the future", root=toys.logs), *toys.store.sources.specs()])
    toys.refresh()
    assert toys.found("alpha") == {"one"}
    assert "of the future" in caplog.text


@pytest.mark.parametrize(("at", "title"), [(CREATED + 5, "reported"), (CREATED - 5, "told")])
def test_16_6_7_a_reported_title_wins_when_it_is_newer(toys: ToyStore, at: int, title: str) -> None:
    toys.write(
        "one.toy",
        line("one", "alpha"),
        line("one", "", rename="told"),
        line("one", "x", title="reported", at=at),
    )
    toys.refresh()
    before = toys.sessions()["one"].state
    assert before.title is not None
    assert before.title.title == title
    toys.append("one.toy", line("one", "beta", title="later", at=CREATED + 100))
    toys.refresh()
    after = toys.sessions()["one"].state
    assert after.title is not None
    assert after.title.title == "later"
    assert after.revision != before.revision


def test_a_malformed_title_is_told_as_such(toys: ToyStore) -> None:
    toys.write("one.toy", line("one", "alpha"), line("one", "", rename=7))
    toys.refresh()
    state = toys.sessions()["one"].state
    assert (state.title, state.title_error) == (None, "SESSION_QUERY_CORRUPT_SESSION")
    with toys.reader.index.snapshot():
        assert toys.reader.index.count(EVERYONE) == 1
