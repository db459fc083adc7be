"""Retained logs byte for byte: every byte of a log can be had back when the log is gone (SPEC 16.10)."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_query.protocol.errors import QueryError
from session_query.protocol.outward import SessionKey
from session_query.storage import sqlite
from session_query.storage.guard import open_guarded
from session_query.storage.journal import SCHEMA, Journal, OriginalDamaged
from session_query.storage.journal.originals import PART_BYTES, STEP_BYTES, TABLES
from session_query.storage.originals_export import export, open_originals
from support.stores import ToyStore, open_toy_store, toy_store
from support.toy_logs import line

KEY = SessionKey("toy", "", "s")


def kept(toys: ToyStore) -> dict[str, bytes]:
    """The kept logs by name."""
    originals = toys.reader.journal.originals
    return {original.name: b"".join(originals.read(original.number)) for original in originals.all()}


def journal_in(directory: Path) -> Journal:
    return Journal(open_guarded(directory / "journal.db", SCHEMA, synchronous="FULL")[0])


def keep(journal: Journal, path: Path, *, grown: bool) -> int:
    """Keep a file; returns in how many transactions."""
    steps = journal.originals.keep("toy", "", path.name, path, [KEY], grown=grown)
    return len(list(steps))


def content_of(journal: Journal, name: str = "log") -> bytes:
    (original,) = [one for one in journal.originals.all() if one.name == name]
    content = b"".join(journal.originals.read(original.number))
    assert len(content) == original.size
    return content


def rows(journal: Journal, table: str) -> int:
    return int(journal.connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])


def test_every_byte_survives_the_log(tmp_path: Path) -> None:
    """Bytes that no reader keeps among them: damage, blank lines, CRLF, a mark at the start, a torn tail."""
    toys = open_toy_store(tmp_path, retain=True)
    odd = b"\xef\xbb\xbf" + line("one", "alpha") + b"\r\n\n{not json\xff\x00\n" + line("one", "beta \xe9")
    path = toys.write("deep/one.toy", odd)
    toys.refresh()
    assert kept(toys) == {"deep/one.toy": odd}
    toys.append("deep/one.toy", torn := line("one", "gamma")[:-9])
    toys.refresh()
    assert kept(toys) == {"deep/one.toy": odd + torn}
    toys.append("deep/one.toy", line("one", "gamma")[-9:])
    toys.refresh()
    whole = path.read_bytes()
    assert kept(toys) == {"deep/one.toy": whole}
    path.unlink()
    toys.refresh()
    assert toys.sessions()["one"].state.source_gone
    assert kept(toys) == {"deep/one.toy": whole}
    toys.close()
    connection, originals = open_originals(tmp_path / "data")
    (done,) = export(originals, originals.of("toy", "one"), tmp_path / "back")
    assert (done.path, done.problem) == (tmp_path / "back/toy/deep/one.toy", "")
    assert done.path.read_bytes() == whole
    (again,) = export(originals, originals.all(), tmp_path / "back")
    assert "there already" in again.problem
    connection.close()


def test_nothing_is_kept_unless_asked(tmp_path: Path) -> None:
    with toy_store(tmp_path) as toys:
        toys.write("one.toy", line("one", "alpha"))
        toys.refresh()
        assert kept(toys) == {}


def test_forgetting_takes_the_bytes_and_they_stay_away(tmp_path: Path) -> None:
    with toy_store(tmp_path, retain=True) as toys:
        toys.write("one.toy", line("one", "alpha"), line("two", "beta"))
        toys.write("other.toy", line("other", "gamma"))
        toys.refresh()
        assert set(kept(toys)) == {"one.toy", "other.toy"}
        toys.store.forgetting.forget(toys.sessions()["one"].key)
        assert set(kept(toys)) == {"other.toy"}, "the log that told it told another session as well"
        toys.append("one.toy", line("one", "alpha again"))
        toys.refresh()
        assert set(kept(toys)) == {"other.toy"}
        assert toys.found("beta") == {"two"}


def test_equal_content_is_stored_once(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    noise = random.Random(1).randbytes(PART_BYTES * 3 + 100)
    for name in ("one", "other"):
        (tmp_path / name).write_bytes(noise)
        keep(journal, tmp_path / name, grown=False)
    assert rows(journal, "original_body") == 4
    (tmp_path / "one").write_bytes(noise[:PART_BYTES] + b"changed" + noise[PART_BYTES + 7 :])
    keep(journal, tmp_path / "one", grown=False)
    assert rows(journal, "original_body") == 5
    assert content_of(journal, "one") == (tmp_path / "one").read_bytes()
    assert content_of(journal, "other") == noise
    journal.originals.forget(KEY)
    assert [rows(journal, table) for table in TABLES] == [0, 0, 0, 0]
    journal.connection.close()


def test_a_long_log_is_kept_in_steps_and_growth_costs_what_is_new(tmp_path: Path) -> None:
    journal, log = journal_in(tmp_path), tmp_path / "log"
    content = random.Random(2).randbytes(STEP_BYTES * 2 + 5)
    log.write_bytes(content)
    assert keep(journal, log, grown=False) == 3
    with log.open("ab") as file:
        file.write(b"more")
    assert sum(journal.originals.keep("toy", "", "log", log, [KEY], grown=True)) < PART_BYTES
    assert content_of(journal) == content + b"more"
    assert keep(journal, log, grown=True) == 0, "unchanged: not read"
    journal.connection.close()


def test_a_stop_between_steps_keeps_the_older_copy_of_a_rewritten_log(tmp_path: Path) -> None:
    journal, log = journal_in(tmp_path), tmp_path / "log"
    log.write_bytes(b"older")
    keep(journal, log, grown=False)
    log.write_bytes(b"x" * (STEP_BYTES + 1))
    next(iter(journal.originals.keep("toy", "", "log", log, [KEY], grown=False)))
    assert [b"".join(journal.originals.read(one.number)) for one in journal.originals.of("toy", "s")] == [
        b"older"
    ]
    keep(journal, log, grown=False)
    assert content_of(journal) == log.read_bytes()
    journal.connection.close()


@settings(max_examples=60, deadline=None)
@given(
    changes=st.lists(
        st.tuples(st.sampled_from(["grow", "rewrite", "cut"]), st.integers(0, PART_BYTES * 3)), max_size=6
    )
)
def test_whatever_happens_to_a_log_its_last_bytes_are_kept(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, int]]
) -> None:
    directory = tmp_path_factory.mktemp("kept")
    journal, log = journal_in(directory), directory / "log"
    content = b""
    for number, (what, size) in enumerate(changes):
        match what:
            case "grow":
                content += bytes([number]) * size
            case "rewrite":
                content = bytes([number, 7]) * (size // 2)
            case _:
                content = content[:size]
        log.write_bytes(content)
        os.utime(log, ns=(number + 1, number + 1))
        keep(journal, log, grown=what == "grow")
        assert content_of(journal) == content
    journal.connection.close()


def test_a_damaged_part_is_told_and_what_came_before_is_written(tmp_path: Path) -> None:
    journal, log = journal_in(tmp_path), tmp_path / "log"
    log.write_bytes(random.Random(3).randbytes(PART_BYTES * 2))
    keep(journal, log, grown=False)
    ((digest,),) = journal.connection.execute("SELECT digest FROM original_part WHERE at = 1").fetchall()
    journal.connection.execute("UPDATE original_body SET body = x'0001' WHERE digest = ?", (digest,))
    with pytest.raises(OriginalDamaged):
        content_of(journal)
    (done,) = export(journal.originals, journal.originals.all(), tmp_path / "back")
    assert done.bytes == PART_BYTES
    assert "not what was kept" in done.problem
    journal.connection.close()


def test_names_never_lead_out_of_the_folder(tmp_path: Path) -> None:
    journal, log = journal_in(tmp_path), tmp_path / "log"
    log.write_bytes(b"content")
    names = ["../../up", "/etc/absolute", "..", os.fsdecode(b"caf\xe9"), "same", "same"]
    for number, name in enumerate(names):
        list(journal.originals.keep("toy", str(number), name, log, [KEY], grown=False))
    back = tmp_path / "back"
    done = list(export(journal.originals, journal.originals.all(), back))
    assert [one.problem for one in done] == [""] * len(names)
    assert all(one.path.resolve().is_relative_to(back.resolve()) for one in done)
    assert len({one.path for one in done}) == len(names)
    journal.connection.close()


def test_a_journal_from_before_gets_the_tables(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    for table in TABLES:
        journal.connection.execute(f"DROP TABLE {table}")
    journal.connection.execute("PRAGMA user_version=1")
    journal.connection.close()
    with pytest.raises(QueryError, match="version"):
        open_originals(tmp_path)
    journal = journal_in(tmp_path)
    (tmp_path / "log").write_bytes(b"content")
    keep(journal, tmp_path / "log", grown=False)
    assert content_of(journal) == b"content"
    journal.connection.close()


def test_no_journal_no_logs(tmp_path: Path) -> None:
    with pytest.raises(QueryError):
        open_originals(tmp_path)
    connection = sqlite.open_uri(sqlite.uri(tmp_path / "journal.db", "rwc"))
    connection.execute("CREATE TABLE precious(a)")
    connection.close()
    with pytest.raises(QueryError):
        open_originals(tmp_path)
