"""The journal against full disks, damage, kills, and forgetting."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_query.protocol.event import Event
from session_query.protocol.header import SessionHeader
from session_query.storage import sqlite
from session_query.storage.journal import (
    Batch,
    Forgotten,
    Journal,
    JournalDamaged,
)
from session_query.storage.journal.codec import RAW_BELOW_BYTES, Packer, decode_event, encode_event
from support.journals import HEADER, event, events, log, open_journal
from support.kill import ROUNDS, run_and_kill


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = open_journal(tmp_path / "journal.db")
    yield opened
    opened.connection.close()


def test_a_full_disk_refuses_the_whole_commit_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal = open_journal(path)
    sid = journal.attach("", HEADER, None, 0).sid
    journal.append(sid, 0, events(0, 9))
    ((pages,),) = journal.connection.execute("PRAGMA page_count").fetchall()
    journal.connection.execute(f"PRAGMA max_page_count={pages + 2}").fetchall()
    noise = random.Random(1).randbytes(40_000).hex()
    with pytest.raises(sqlite.OperationalError, match="full"):
        journal.commit(
            [
                Batch(sid=sid, from_seq=10, events=events(10, 10)),
                Batch(sid=sid, from_seq=11, events=[event(11, noise)]),
            ]
        )
    assert log(journal, sid) == events(0, 9)
    journal.connection.execute("PRAGMA max_page_count=1000000").fetchall()
    assert journal.append(sid, 10, events(10, 10)) == 10
    journal.connection.close()


def test_damage_costs_one_event_and_is_named(journal: Journal) -> None:
    sid = journal.attach("", HEADER, None, 0).sid
    journal.append(sid, 0, events(0, 5))
    for seq, body in ((1, b""), (2, b"\x01junk"), (3, b"\x09abc"), (4, b"\x00{}")):
        journal.connection.execute("UPDATE event SET body = ? WHERE key = ?", (body, sid << 32 | seq))
        with pytest.raises(JournalDamaged) as caught:
            journal.read_event(sid, seq)
        assert (caught.value.sid, caught.value.seq) == (sid, seq)
    assert journal.read_event(sid, 0) == events(0, 0)[0]
    assert journal.read_event(sid, 5) == events(5, 5)[0]
    assert len(journal.sessions()) == 1


WORDS = ["zanzibarquince", "密语", "kumquatledger"]


def test_forgetting_leaves_no_word_and_no_way_back(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal = open_journal(path)
    header = SessionHeader(id="s-1", created_at=12, cwd="/proj/a")
    noise = [random.Random(seq).randbytes(300).hex() for seq in range(40)]
    secret = [event(seq, f"{' '.join(WORDS)} {noise[seq]}") for seq in range(40)]
    kept = journal.attach("other", HEADER, None, 0)
    sid = journal.attach("", header, None, 0).sid
    for seq in range(40):  # interleaved, so that both share pages
        journal.append(sid, seq, [secret[seq]])
        journal.append(kept.sid, seq, events(seq, seq))
    packed = [bytes(journal._packer.pack(encode_event(one))[40:60]) for one in secret]
    needles = [*packed, *(word.encode() for word in WORDS)]
    assert found(tmp_path, packed)
    assert journal.forget(sid, 1000)
    assert not journal.forget(sid, 1000)
    assert journal.purge()
    assert not found(tmp_path, needles)
    assert log(journal, kept.sid) == events(0, 39)
    with pytest.raises(Forgotten):
        journal.attach("", header, None, 0)
    with pytest.raises(Forgotten):
        journal.attach("elsewhere", header, secret[:1], 0)
    journal.connection.close()
    journal = open_journal(path)
    with pytest.raises(Forgotten):
        journal.attach("", header, None, 0)
    journal.attach("", SessionHeader(id="s-1", created_at=13, cwd="/proj/a"), None, 0)
    assert list(journal.tombstones.listing()) == [("journal", "s-1", 1000)]
    assert journal.tombstones.remove(header, secret[0])
    assert not journal.tombstones.remove(header, secret[0])
    journal.attach("back", header, None, 0)
    journal.connection.close()
    assert not found(tmp_path, needles)


def test_tombstones_know_a_session_without_a_creation_time_by_how_it_begins(journal: Journal) -> None:
    header = SessionHeader(id="s-1", created_at=0)
    journal.bury("codex", header, event(0), 5)
    assert journal.tombstones.forgotten(header, event(0))
    assert not journal.tombstones.forgotten(header, event(0, "other"))
    assert not journal.tombstones.forgotten(header, None)
    assert not journal.tombstones.forgotten(SessionHeader(id="s-2", created_at=0), event(0))


def test_purge_waits_for_readers_and_says_so(journal: Journal, tmp_path: Path) -> None:
    sid = journal.attach("", HEADER, events(0, 3), 0).sid
    journal.connection.execute("PRAGMA busy_timeout=1").fetchall()
    reader = sqlite.connect_reader(tmp_path / "journal.db")
    with sqlite.snapshot(reader):
        reader.execute("SELECT count(*) FROM event").fetchall()
        journal.forget(sid, 0)
        assert not journal.purge()
    assert journal.purge()
    reader.close()


def found(directory: Path, needles: list[bytes]) -> list[bytes]:
    contents = [path.read_bytes() for path in directory.rglob("*") if path.is_file()]
    return [needle for needle in needles if any(needle in content for content in contents)]


@given(st.binary(max_size=3000))
@settings(max_examples=100, deadline=None)
def test_a_body_is_restored(plain: bytes) -> None:
    packer = Packer({1: b"some dictionary bytes " * 4}, 1)
    body = packer.pack(plain)
    assert packer.unpack(body) == plain
    assert len(body) <= len(plain) + 1
    if len(plain) < RAW_BELOW_BYTES:
        assert body == b"\x00" + plain


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_restored_or_refused(body: bytes) -> None:
    packer = Packer({1: b"some dictionary bytes " * 4}, 1)
    try:
        plain = packer.unpack(body)
        decode_event(plain)
    except ValueError:
        return
    assert body[0] in {0, 1}


APPENDING = """
from pathlib import Path
from session_query.protocol.event import Event
from session_query.protocol.header import SessionHeader
from session_query.storage.guard import open_guarded
from session_query.storage.journal import SCHEMA, Batch, Journal
journal = Journal(open_guarded(Path({path!r}), SCHEMA, synchronous="FULL")[0])
header = SessionHeader(id="s", created_at=1)
sids = [journal.attach(place, header, None, 0).sid for place in "ab"]
def make(seq):
    return Event(type="x", seq=seq, time=seq, data="word " * (seq * 37 % 900))
lengths = [journal.length(sid) for sid in sids]
print("open", *lengths, flush=True)
while True:
    news = [[make(seq) for seq in range(length, length + 1 + length % 5)] for length in lengths]
    batches = [Batch(sid=sid, from_seq=events[0].seq, events=events) for sid, events in zip(sids, news)]
    lengths = [through + 1 for through in journal.commit(batches)]
    print("done", *lengths, flush=True)
"""


def test_acknowledged_survives_kill(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    dice = random.Random(ROUNDS)
    acknowledged = [0, 0]
    for _ in range(ROUNDS):
        lines, killed = run_and_kill(
            APPENDING.format(path=str(path)), dice.randint(1, 60), delay_s=dice.random() / 100
        )
        assert killed
        opened = [int(part) for part in lines[0].split()[1:]]
        assert all(now >= then for now, then in zip(opened, acknowledged, strict=True))
        acknowledged = [int(part) for part in lines[-1].split()[1:]]
        journal = open_journal(path)
        assert journal.connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        for stored, length in zip(journal.sessions(), acknowledged, strict=True):
            whole = log(journal, stored.sid)
            assert len(whole) >= length
            assert whole == [
                Event(type="x", seq=seq, time=seq, data="word " * (seq * 37 % 900))
                for seq in range(len(whole))
            ]
        journal.connection.close()
