"""The doctor finds an index that is not what the logs say, and says where."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from session_query.protocol.event import Event
from session_query.protocol.header import SessionHeader
from session_query.protocol.outward import SessionKey
from session_query.storage import sqlite
from session_query.storage.doctor import Examination, check_file, examine
from support.stores import ToyStore, toy_store
from support.toy_logs import line


@pytest.fixture
def toys(tmp_path: Path) -> Iterator[ToyStore]:
    with toy_store(tmp_path) as opened:
        yield opened


def ask(toys: ToyStore, samples: int = 100) -> Examination:
    readers = {"toy": toys.toy, "doc": toys.doc}
    with toys.reader.index.snapshot():
        return examine(toys.reader, readers, samples, seed=1)


def failed(found: Examination) -> dict[str, str]:
    return {check.name: check.detail for check in found.checks if not check.ok}


def fill(toys: ToyStore) -> None:
    toys.write("one.toy", line("one", "alpha \ud800"), line("one", "beta", replace=[0, 0]), b"broken\n")
    toys.write("two.toy", line("two", "gamma"), line("two", "loose tail")[:-1])
    toys.write("not.toy", b"text\ntext\n")
    toys.refresh()
    stored = toys.store.journal.attach("/w", SessionHeader(id="p", created_at=1, cwd="/w"), None, 0)
    toys.store.journal.append(stored.sid, 0, [Event(type="x", seq=0, time=0, data=None)])
    toys.store.catch_up(stored.key)


def test_a_healthy_store(toys: ToyStore) -> None:
    fill(toys)
    found = ask(toys)
    assert found.healthy
    assert failed(found) == {}
    assert "3 sessions compared" in found.checks[-1].detail
    assert [(Path(loss.path).name, loss.cause) for loss in found.losses] == [("one.toy", "not JSON")]
    assert [Path(log.path).name for log in found.unread] == ["not.toy"]
    assert "1 sessions compared" in ask(toys, samples=1).checks[-1].detail


def test_another_document_in_the_index(toys: ToyStore) -> None:
    fill(toys)
    with toys.store.index.transaction():
        toys.store.index.reclassify(toys.sessions()["one"].sid, {0: "current"})
    found = ask(toys)
    assert not found.healthy
    assert "toy:one: event 0 is indexed differently" in failed(found)["samples"]
    list(toys.store.sources.rebuild())
    assert ask(toys).healthy


def test_fewer_documents_in_the_index(toys: ToyStore) -> None:
    fill(toys)
    with toys.store.index.transaction():
        toys.store.index.truncate(toys.sessions()["two"].sid, 1)
    assert "1 documents indexed, 2 in the log" in failed(ask(toys))["samples"]


def test_a_log_that_changed_meanwhile_is_no_difference(toys: ToyStore) -> None:
    fill(toys)
    toys.append("one.toy", line("one", "news"))
    found = ask(toys)
    assert found.healthy
    assert "2 sessions compared" in found.checks[-1].detail


def test_a_published_session_the_index_does_not_have(toys: ToyStore) -> None:
    fill(toys)
    stored = toys.store.journal.find(SessionKey("journal", "/w", "p"))
    assert stored is not None
    toys.store.journal.append(stored.sid, 1, [Event(type="x", seq=1, time=0, data=None)])
    assert "1 behind" in failed(ask(toys))["journal and index"]


def test_a_damaged_file(tmp_path: Path) -> None:
    with toy_store(tmp_path) as toys:
        fill(toys)
        path = Path(toys.store.index_path)
        ((page, size),) = toys.store.connection.execute(
            "SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_master"
            " WHERE name = 'session_id'"
        ).fetchall()
    connection = sqlite.connect_reader(path)
    assert check_file("index", connection).ok
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    connection = sqlite.connect_reader(path)
    assert not check_file("index", connection).ok
    connection.close()


def test_a_journal_with_a_damaged_page_is_reported_and_the_rest_is_checked(tmp_path: Path) -> None:
    with toy_store(tmp_path) as toys:
        fill(toys)
        stored = toys.store.journal.attach("/w", SessionHeader(id="q", created_at=1, cwd="/w"), None, 0)
        events = [Event(type="x", seq=n, time=0, data=str(n) * 99) for n in range(2000)]
        toys.store.journal.append(stored.sid, 0, events)
        toys.store.catch_up(stored.key)
    with (tmp_path / "data" / "journal.db").open("r+b") as file:
        file.seek(0, 2)
        middle = file.tell() // 8192 * 4096
        file.seek(middle)
        file.write(b"\xff" * 40_000)
    with toy_store(tmp_path) as toys:
        found = ask(toys)
    assert {"journal file", "samples"} <= failed(found).keys()
    assert "cannot be read" in failed(found)["samples"]
    assert [(Path(loss.path).name, loss.cause) for loss in found.losses] == [("one.toy", "not JSON")]
