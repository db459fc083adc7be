"""Logs into the index: growth, rewriting, moving, vanishing, damage; one bad log costs itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from session_query.storage import sqlite
from session_query.storage.index.door import IndexWriter
from session_query.storage.sources import ingest
from support.stores import ToyStore, open_toy_store, toy_store
from support.toy_logs import CREATED, ToyReader, line


@pytest.fixture
def toys(tmp_path: Path) -> Iterator[ToyStore]:
    with toy_store(tmp_path) as opened:
        yield opened


def test_new_logs_are_read_and_found(toys: ToyStore) -> None:
    toys.write("a/one.toy", line("one", "alpha beta"), line("one", "gamma", title="A title"))
    toys.write("b/two.toy", line("two", "delta", cwd="/other"), line("three", "epsilon"))
    progress = toys.refresh()
    assert progress is not None
    assert (progress.units_done, progress.units_total, progress.sessions, progress.events) == (2, 2, 3, 4)
    assert progress.bytes_done == progress.bytes_total > 0
    sessions = toys.sessions()
    assert {key: row.state.length for key, row in sessions.items()} == {"one": 2, "two": 1, "three": 1}
    assert sessions["one"].key.place == "a"
    assert toys.path("one") == str(toys.logs / "a/one.toy")
    assert sessions["one"].state.title is not None
    assert sessions["one"].state.title.title == "A title"
    assert toys.found("beta") == {"one"}
    assert toys.texts("two") == ["delta"]


def test_nothing_changed_reads_nothing(toys: ToyStore) -> None:
    toys.write("one.toy", line("one", "alpha"))
    old = CREATED * 1_000_000
    os.utime(toys.logs / "one.toy", ns=(old, old))
    toys.refresh()
    before = toys.sessions()["one"]
    toys.toy.reads.clear()
    progress = toys.refresh()
    assert progress is not None
    assert progress.units_total == 0
    assert toys.toy.reads == []
    assert toys.sessions()["one"] == before, "generation and revision included"


def test_a_stamp_that_could_hide_a_change_is_not_trusted(toys: ToyStore) -> None:
    toys.write("one.toy", line("one", "alpha"))
    toys.refresh()
    toys.toy.reads.clear()
    stamp = (toys.logs / "one.toy").stat().st_mtime_ns
    toys.write("one.toy", line("one", "omega"))
    os.utime(toys.logs / "one.toy", ns=(stamp, stamp))
    toys.refresh()
    assert toys.texts("one") == ["omega"], "same size, same mtime, other content"


def test_growth_is_read_from_the_checkpoint(toys: ToyStore) -> None:
    toys.write("one.toy", line("one", "alpha"))
    toys.refresh()
    before = toys.sessions()["one"].state.revision
    size = (toys.logs / "one.toy").stat().st_size
    toys.append("one.toy", line("one", "beta"), line("late", "gamma"))
    toys.refresh()
    assert toys.toy.reads == [("one.toy", 0), ("one.toy", size)]
    assert toys.texts("one") == ["alpha", "beta"]
    assert toys.texts("late") == ["gamma"]
    assert toys.sessions()["one"].state.revision != before


@pytest.mark.parametrize("cold", [False, True])
def test_surfaces_and_titles_go_on_where_they_were(tmp_path: Path, cold: bool) -> None:
    toys = open_toy_store(tmp_path)
    toys.write("one.toy", *(line("one", f"word{n}") for n in range(4)), line("one", "", rename="First"))
    toys.refresh()
    if cold:
        toys.close()
        toys = open_toy_store(tmp_path)
    assert toys.surfaces("one") == "cccc"
    toys.append("one.toy", line("one", "summary", replace=[1, 2]))
    toys.refresh()
    assert toys.surfaces("one") == "csscc"
    title = toys.sessions()["one"].state.title
    assert title is not None
    assert title.title == "First"
    toys.append("one.toy", line("one", "", rename="Second"), line("one", "late", replace=[0, 3]))
    toys.refresh()
    assert toys.surfaces("one") == "sssssc"
    title = toys.sessions()["one"].state.title
    assert title is not None
    assert title.title == "Second"
    toys.close()


@pytest.mark.parametrize("cold", [False, True])
def test_a_last_line_without_line_feed_comes_again(tmp_path: Path, cold: bool) -> None:
    toys = open_toy_store(tmp_path)
    whole = line("one", "beta", replace=[0, 0])
    toys.write("one.toy", line("one", "alpha"), whole[:-1])
    toys.refresh()
    assert toys.texts("one") == ["alpha", "beta"]
    assert toys.surfaces("one") == "sc"
    if cold:
        toys.close()
        toys = open_toy_store(tmp_path)
    toys.append("one.toy", b"\n", line("one", "gamma"))
    toys.refresh()
    assert toys.texts("one") == ["alpha", "beta", "gamma"]
    assert toys.surfaces("one") == "scc"
    toys.close()


@pytest.mark.parametrize("cold", [False, True])
def test_a_loose_tail_that_is_taken_back_restores_what_it_shadowed(tmp_path: Path, cold: bool) -> None:
    toys = open_toy_store(tmp_path)
    head = line("one", "alpha") + line("one", "", rename="Kept")
    toys.write("one.toy", head, line("one", "beta", replace=[0, 0])[:-1])
    toys.refresh()
    assert toys.surfaces("one") == "sc"
    if cold:
        toys.close()
        toys = open_toy_store(tmp_path)
    os.truncate(toys.logs / "one.toy", len(head))
    toys.refresh()
    assert toys.texts("one") == ["alpha"]
    assert toys.surfaces("one") == "c"
    row = toys.sessions()["one"]
    assert row.state.length == 2
    assert row.state.title is not None
    assert row.state.title.title == "Kept"
    assert toys.found("beta") == set()
    toys.close()


def test_truncated_and_rewritten_logs_are_noticed_by_content(toys: ToyStore) -> None:
    path = toys.write("one.toy", *(line("one", f"alpha{n}") for n in range(20)))
    toys.refresh()
    os.truncate(path, len(line("one", "alpha0")))
    toys.refresh()
    assert toys.texts("one") == ["alpha0"]
    toys.write("one.toy", *(line("one", f"omega{n}") for n in range(30)))
    toys.refresh()
    assert toys.texts("one") == [f"omega{n}" for n in range(30)]
    toys.write("one.toy", line("new", "another session altogether"))
    toys.refresh()
    assert set(toys.sessions()) == {"new"}
    assert toys.found("omega3") == set()


@pytest.mark.parametrize("how", ["rename", "copy and delete"])
def test_a_moved_log_keeps_its_session(toys: ToyStore, how: str) -> None:
    path = toys.write("a/one.toy", line("one", "alpha"), line("one", "beta"))
    toys.refresh()
    before = toys.sessions()["one"]
    target = toys.logs / "b/c/one.toy"
    target.parent.mkdir(parents=True)
    if how == "rename":
        path.rename(target)
    else:
        shutil.copyfile(path, target)
        path.unlink()
    toys.append("b/c/one.toy", line("one", "gamma"))
    toys.toy.reads.clear()
    toys.refresh()
    after = toys.sessions()["one"]
    assert (after.sid, after.key) == (before.sid, before.key)
    assert toys.path("one") == str(target)
    assert toys.texts("one") == ["alpha", "beta", "gamma"]
    assert [offset for _, offset in toys.toy.reads] == [len(line("one", "alpha") + line("one", "beta"))]


def test_a_log_that_was_rewritten_takes_its_old_title_along(toys: ToyStore) -> None:
    toys.write("one.toy", line("one", "alpha", title="Told beside the log"), line("one", "beta"))
    toys.refresh()
    toys.write("one.toy", line("one", "beta"))
    toys.refresh()
    assert toys.sessions()["one"].state.title is None


def test_a_renamed_log_is_read_anew_if_its_name_was_its_sessions_id(toys: ToyStore) -> None:
    """Its reader tells another id from now on; under the old one it could be found and not be read."""
    before = line("one", "alpha") + line("two", "beta")
    path = toys.write("one.toy", before)
    toys.refresh()
    sids = {key: row.sid for key, row in toys.sessions().items()}
    toys.toy.reads.clear()
    path = path.rename(toys.logs / "other.toy")
    toys.refresh()
    path.rename(toys.logs / "two.toy")
    toys.refresh()
    assert toys.toy.reads == [("other.toy", 0), ("two.toy", len(before))], "two of these names say no id"
    assert {key: row.sid for key, row in toys.sessions().items()} == sids, "ids in the log stay what they are"
    assert toys.texts("one") == ["alpha"]


def test_the_folder_far_above_a_log_may_be_its_sessions_id_as_well(toys: ToyStore) -> None:
    """As that of a workflow's sub-agents in Claude Code: ID/subagents/workflows/NAME/agent-N.jsonl."""
    below = "subagents/workflows/wf/agent-1.toy"
    toys.write(f"project/parent/{below}", line("parent/agent-1", "alpha"))
    toys.refresh()
    toys.toy.reads.clear()
    (toys.logs / "project").rename(toys.logs / "moved")
    toys.refresh()
    (toys.logs / "moved/parent").rename(toys.logs / "moved/other")
    toys.refresh()
    assert [offset == 0 for _, offset in toys.toy.reads] == [False, True]


@pytest.mark.parametrize("longer", ["the one that moved", "the one that was there"])
def test_a_log_that_moves_beside_one_of_its_id_is_one_session_with_it(toys: ToyStore, longer: str) -> None:
    """SPEC 16.6.1: generations in one folder. What goes on further is told; nothing is hidden behind it."""
    before = [line("one", "alpha"), line("one", "beta")]
    more = [*before, line("one", "gamma")]
    path = toys.write("a/old.toy", *(more if longer == "the one that moved" else before))
    toys.write("b/new.toy", *(before if longer == "the one that moved" else more))
    toys.refresh()
    path.rename(toys.logs / "b/old.toy")
    toys.refresh()
    toys.refresh()
    with toys.reader.index.snapshot():
        (row,) = toys.reader.index.with_id("one")
    assert row.key.place == "b"
    assert toys.texts("one") == ["alpha", "beta", "gamma"]
    (toys.logs / "b/old.toy").unlink()
    toys.refresh()
    assert toys.texts("one")[:2] == ["alpha", "beta"], "the other one tells it on"


def test_a_vanished_log_takes_its_sessions_along(toys: ToyStore) -> None:
    path = toys.write("one.toy", line("one", "alpha"))
    toys.write("two.toy", line("two", "beta"))
    toys.refresh()
    path.unlink()
    toys.refresh()
    assert set(toys.sessions()) == {"two"}
    assert toys.found("alpha") == set()
    toys.write("one.toy", line("one", "alpha"))
    toys.refresh()
    assert toys.found("alpha") == {"one"}


def test_a_root_that_is_not_there_removes_nothing(toys: ToyStore) -> None:
    toys.write("one.toy", line("one", "alpha"))
    toys.refresh()
    away = toys.logs.rename(toys.logs.with_name("unmounted"))
    toys.refresh()
    assert toys.sessions()["one"].state.source_gone
    assert toys.found("alpha") == {"one"}
    away.rename(toys.logs)
    toys.refresh()
    assert not toys.sessions()["one"].state.source_gone


def test_one_id_in_unrelated_folders_is_two_sessions(toys: ToyStore) -> None:
    toys.write("a/x.toy", line("same", "alpha", cwd="/a"))
    toys.write("b/x.toy", line("same", "beta", cwd="/b"))
    toys.refresh()
    with toys.reader.index.snapshot():
        rows = toys.reader.index.with_id("same")
    assert {(row.key.place, row.state.header.cwd) for row in rows} == {("a", "/a"), ("b", "/b")}


def test_generations_in_one_folder_are_one_session(toys: ToyStore) -> None:
    old = line("one", "alpha", at=CREATED)
    toys.write("a/1.toy", old)
    toys.write("a/2.toy", old, line("one", "beta", at=CREATED + 9))
    toys.refresh()
    assert toys.texts("one") == ["alpha", "beta"], "the one that goes on furthest is believed"
    toys.append("a/1.toy", line("one", "gamma", at=CREATED + 20))
    toys.refresh()
    assert toys.texts("one") == ["alpha", "gamma"]
    (toys.logs / "a/1.toy").unlink()
    toys.refresh()
    assert toys.texts("one") == ["alpha", "beta"]
    (toys.logs / "a/2.toy").unlink()
    toys.refresh()
    assert toys.sessions() == {}


def test_losses_are_counted_with_their_session(toys: ToyStore) -> None:
    toys.write("one.toy", line("one", "alpha"), b"broken\n", line("one", "beta"), b'{"no":"id"}\n')
    toys.refresh()
    assert toys.sessions()["one"].state.losses == 2
    toys.append("one.toy", line("one", "gamma"), b"also broken\n", b'{"torn')
    toys.refresh()
    assert toys.sessions()["one"].state.losses == 3, "a torn tail is not lost yet"
    assert toys.texts("one") == ["alpha", "beta", "gamma"]
    toys.write("one.toy", line("one", "alpha"))
    toys.refresh()
    assert toys.sessions()["one"].state.losses == 0, "read again from the start"


def test_losses_of_a_log_with_two_workspaces_are_nobodys(toys: ToyStore) -> None:
    toys.write("one.toy", line("one", "a", cwd="/a"), b"broken\n", line("two", "b", cwd="/b"))
    toys.refresh()
    assert {key: row.state.losses for key, row in toys.sessions().items()} == {"one": 0, "two": 0}


def test_a_log_that_breaks_the_surface_is_quarantined_alone(toys: ToyStore) -> None:
    toys.write("bad.toy", line("bad", "alpha"), line("bad", "beta", replace=[7, 9]), line("bad", "gamma"))
    toys.write("good.toy", line("good", "alpha"))
    toys.refresh()
    assert toys.found("alpha") == {"good"}
    assert toys.unread() == {"bad": "SESSION_QUERY_INVALID_SURFACE"}
    toys.append("bad.toy", line("bad", "delta"))
    toys.refresh()
    assert toys.unread() == {"bad": "SESSION_QUERY_INVALID_SURFACE"}
    toys.write("bad.toy", line("bad", "alpha"), line("bad", "mended"))
    toys.refresh()
    assert toys.unread() == {}
    assert toys.texts("bad") == ["alpha", "mended"]


@pytest.mark.parametrize(
    "error", [RuntimeError("a bug in the reader"), sqlite.OperationalError("a bug in the reader")]
)
def test_a_reader_that_fails_costs_its_unit(
    toys: ToyStore, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    toys.write("good.toy", line("good", "alpha"))
    toys.refresh()
    toys.write("bad.toy", line("bad", "alpha"))
    toys.toy.fail = error
    toys.refresh()
    assert toys.found("alpha") == {"good"}
    assert "a bug in the reader" in caplog.text
    caplog.clear()
    (unit,) = [unit for unit in toys.store.sources.catalog.units.values() if unit.path.endswith("bad.toy")]
    assert (unit.problem, unit.message) == ("bug", type(error).__name__)
    toys.toy.fail = None
    toys.append("bad.toy", line("bad", "beta"))
    toys.refresh()
    assert toys.found("alpha") == {"good", "bad"}
    assert toys.store.sources.catalog.units[unit.unit_id].problem is None


def test_a_log_that_cannot_be_opened_is_tried_again(toys: ToyStore) -> None:
    toys.write("one.toy", line("one", "alpha"))
    toys.toy.fail = PermissionError(13, "Permission denied")
    toys.refresh()
    (unit,) = toys.store.sources.catalog.units.values()
    assert unit.problem == "error"
    toys.toy.fail = None
    toys.refresh()
    assert toys.found("alpha") == {"one"}


def test_a_failure_while_writing_costs_its_unit(
    toys: ToyStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    writer: IndexWriter = toys.store.index
    append = writer.append

    def failing(sid: int, documents: list[object], skeleton: list[object] = ()) -> None:  # type: ignore[assignment]
        if any("poison" in document.text for document in documents):  # type: ignore[attr-defined]
            raise KeyError("our own bug")
        append(sid, documents, skeleton)  # type: ignore[arg-type]

    monkeypatch.setattr(writer, "append", failing)
    for n in range(5):
        toys.write(f"{n}.toy", line(f"s{n}", "poison" if n == 2 else "alpha"))
    toys.refresh()
    assert toys.found("alpha") == {"s0", "s1", "s3", "s4"}
    assert toys.found("poison") == set()
    assert "KeyError" in caplog.text
    caplog.clear()
    monkeypatch.undo()
    toys.write("2.toy", line("s2", "alpha"))
    toys.refresh()
    assert toys.found("alpha") == {"s0", "s1", "s2", "s3", "s4"}


def test_a_full_disk_stops_the_refresh_and_loses_nothing(tmp_path: Path) -> None:
    toys = open_toy_store(tmp_path)
    toys.write("a.toy", line("a", "alpha"))
    toys.refresh()
    for n in range(40):
        toys.write(f"{n}.toy", *(line(f"s{n}", f"word{n} {os.urandom(900).hex()}") for _ in range(8)))
    connection = toys.store.connection
    ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
    connection.execute(f"PRAGMA max_page_count={pages + 40}").fetchall()
    with pytest.raises(sqlite.OperationalError, match="full"):
        toys.refresh()
    assert toys.found("alpha") == {"a"}
    connection.execute("PRAGMA max_page_count=1000000").fetchall()
    for _ in toys.store.sources.refresh():
        pass
    assert len(toys.sessions()) == 41, "what was taken was marked again"
    toys.close()


def test_a_new_reader_version_reads_everything_again(tmp_path: Path) -> None:
    toys = open_toy_store(tmp_path)
    toys.write("one.toy", line("one", "alpha"))
    toys.refresh()
    toys.close()
    toys = open_toy_store(tmp_path, toy=ToyReader(version=2))
    toys.refresh()
    assert toys.toy.reads == [("one.toy", 0)]
    toys.close()


def test_a_log_of_a_newer_version_says_so(toys: ToyStore) -> None:
    toys.write("one.toy", line("one", "alpha"))
    toys.refresh()
    toys.append("one.toy", line("newer", "omega"))
    toys.refresh()
    assert toys.unread()["one"] == "SESSION_QUERY_PERSISTENCE_FAILED"
    assert toys.found("alpha") == set()
    toys.write("one.toy", line("one", "alpha"))
    toys.refresh()
    assert toys.found("alpha") == {"one"}


def test_what_is_no_log_is_listed_with_its_reason(toys: ToyStore) -> None:
    toys.write("not.toy", b"just text\nmore text\n")
    (toys.logs / "link.toy").symlink_to(toys.logs / "not.toy")
    toys.refresh()
    assert toys.sessions() == {}
    (unit,) = toys.store.sources.catalog.units.values()
    assert unit.problem == "not-a-session"
    skipped = toys.store.connection.execute("SELECT path, reason FROM catalog_skipped").fetchall()
    assert skipped == [(os.fsencode(toys.logs / "link.toy"), "a symbolic link")]


def test_a_name_that_is_no_utf8(toys: ToyStore) -> None:
    path = Path(os.fsdecode(os.fsencode(toys.logs) + b"/\xff\xfe.toy"))
    path.write_bytes(line("one", "alpha"))
    toys.refresh()
    assert toys.found("alpha") == {"one"}
    with path.open("ab") as file:
        file.write(line("one", "beta"))
    toys.refresh()
    assert toys.texts("one") == ["alpha", "beta"]


def test_stopping_keeps_what_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "STEP_EVENTS", 4)
    toys = open_toy_store(tmp_path)
    for n in range(10):
        toys.write(f"{n}.toy", *(line(f"s{n}", f"text {n}") for _ in range(3)))
    asked: list[int] = []

    def stopped() -> bool:
        asked.append(1)
        return len(asked) >= 9

    list(toys.store.sources.refresh(stopped))
    some = len(toys.sessions())
    assert 0 < some < 10
    toys.toy.reads.clear()
    toys.refresh()
    assert len(toys.sessions()) == 10
    assert len([name for name, offset in toys.toy.reads if not offset]) <= 10 - some + 1
    toys.close()


def test_searches_are_served_between_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "STEP_EVENTS", 4)
    toys = open_toy_store(tmp_path)
    for n in range(12):
        toys.write(f"{n}.toy", *(line(f"s{n}", "common text") for _ in range(3)))
    seen = [len(toys.found("common")) for _ in toys.store.sources.refresh()]
    assert seen == sorted(seen)
    assert len(set(seen)) > 4
    assert seen[-1] == 12
    toys.close()


def test_in_memory(tmp_path: Path) -> None:
    toys = open_toy_store(tmp_path, in_memory=True)
    toys.write("one.toy", line("one", "alpha"), line("one", "beta", replace=[0, 0])[:-1])
    toys.refresh()
    toys.append("one.toy", b"\n", line("one", "gamma"))
    toys.refresh()
    assert toys.surfaces("one") == "scc"
    toys.close()
    assert not (tmp_path / "data").exists()
