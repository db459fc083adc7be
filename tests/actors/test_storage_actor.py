"""The storage actor: appends, the index that follows them, its upkeep; on real files."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio
import trio.testing

from session_query.actors import index_side
from session_query.actors.storage import StorageActor, open_storage
from session_query.protocol.event import Event
from session_query.protocol.header import SessionHeader
from session_query.protocol.outward import SessionKey
from session_query.protocol.signal import Signal
from session_query.storage import sqlite
from session_query.storage.index.door import IndexReader, Reach, SearchSpec, SessionState
from session_query.storage.journal import Batch, SeqGap
from session_query.storage.news import News
from session_query.storage.projection import Projection
from session_query.storage.store import Store, StoreSettings, open_store
from support.events import user
from support.gate import BOUND_S, Gate


@attrs.define(eq=False)
class Published:
    """One session of the journal, appended to by hand."""

    storage: StorageActor
    key: SessionKey
    header: SessionHeader
    index_sid: int
    journal_sid: int
    length: int = 0
    projection: Projection = attrs.field(factory=Projection)

    def batch(self, *texts: str) -> tuple[Batch, News]:
        events: list[Event] = [user(self.length + at, text) for at, text in enumerate(texts)]
        end = self.length + len(events)
        state = SessionState(header=self.header, rank=1, length=end, revision=str(end))
        news = News(self.key, self.index_sid, self.projection.feed(events), state)
        return Batch(sid=self.journal_sid, from_seq=self.length, events=events), news

    async def append(self, *texts: str) -> None:
        batch, news = self.batch(*texts)
        self.length += len(texts)
        await self.storage.append(batch, news)


async def publish(storage: StorageActor, session_id: str) -> Published:
    key = SessionKey("journal", "/w", session_id)
    header = SessionHeader(id=session_id, created_at=5, cwd="/w")

    def attach(store: Store) -> tuple[int, int]:
        stored = store.journal.attach("/w", header, None, 0)
        with store.index.transaction():
            return store.index.put_session(key, SessionState(header=header, rank=1)), stored.sid

    index_sid, journal_sid = await storage.write(attach)
    return Published(storage, key, header, index_sid, journal_sid)


@asynccontextmanager
async def opened(directory: Path | None) -> AsyncIterator[StorageActor]:
    settings = StoreSettings(data_dir=directory, readers={})
    async with open_storage(lambda: open_store(settings), search_readers=2) as storage:
        with trio.fail_after(BOUND_S):
            yield storage


def finding(query: str) -> object:
    def search(index: IndexReader) -> list[tuple[str, int]]:
        hits = index.search_sessions(SearchSpec(query=query), Reach()).hits
        return sorted((hit.session.key.id, hit.best.seq) for hit in hits)

    return search


async def found(storage: StorageActor, query: str) -> list[tuple[str, int]]:
    return await storage.search(finding(query))  # type: ignore[arg-type]  # any callable will do


def statistic(storage: StorageActor, name: str) -> int:
    value = storage.statistics()[name]
    assert isinstance(value, int)
    return value


async def test_a_search_that_begins_after_an_append_returned_finds_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as storage:
        session = await publish(storage, "s")
        for number in range(40):
            await session.append(f"word{number} common")
            assert await found(storage, f"word{number}") == [("s", number)]


async def test_what_is_appended_is_indexed_without_anybody_searching(tmp_path: Path) -> None:
    async with opened(tmp_path) as storage:
        session = await publish(storage, "s")
        await session.append("alpha")
        turns: object = None
        while turns != 1:
            await trio.testing.wait_all_tasks_blocked(0.01)
            told = storage.statistics()["index_turns"]
            turns = told["count"] if isinstance(told, dict) else None
        assert storage.point(finding_row(session.key)) == 1


async def test_an_events_share_is_told_beside_the_turn_that_took_it_in(tmp_path: Path) -> None:
    async with opened(tmp_path) as storage:
        session = await publish(storage, "s")
        for number in range(8):
            await session.append(f"word{number}")
        await found(storage, "word7")
        turns, shares = (storage.statistics()[name] for name in ("index_turns", "index_of_an_event"))
    assert isinstance(turns, dict)
    assert isinstance(shares, dict)
    assert turns["count"] == shares["count"] > 0
    assert 0 < float(str(shares["p50_ms"])) <= float(str(turns["p50_ms"]))


def finding_row(key: SessionKey) -> object:
    return lambda reader: reader.index.find(key).documents


async def test_appends_that_wait_together_are_one_commit_and_a_refused_one_costs_only_itself(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as storage:
        sessions = [await publish(storage, f"s{number}") for number in range(20)]
        wrong, news = (await publish(storage, "refused")).batch("never")
        before = statistic(storage, "append_groups")
        gate = Gate()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(storage.write, gate)
            await gate.reached()
            for session in sessions:
                nursery.start_soon(session.append, "common")
            nursery.start_soon(refused, storage, attrs.evolve(wrong, from_seq=9), news)
            await trio.testing.wait_all_tasks_blocked()
            assert statistic(storage, "appends_queued") == 21
            gate.opened.set()
        assert statistic(storage, "append_groups") == before + 1
        assert len(await found(storage, "common")) == 20
        assert await found(storage, "never") == []


async def refused(storage: StorageActor, batch: Batch, news: News) -> None:
    with pytest.raises(SeqGap):
        await storage.append(batch, news)


async def test_work_on_the_index_keeps_no_append_waiting(tmp_path: Path) -> None:
    async with opened(tmp_path) as storage, trio.open_nursery() as nursery:
        session = await publish(storage, "s")
        gate = Gate()
        nursery.start_soon(storage.write_index, gate)
        await gate.reached()
        for number in range(5):
            await session.append(f"word{number}")
        assert len(await storage.read_journal(lambda journal: journal.read_events(1, 0, 9))) == 5
        searched = list[object]()

        async def search() -> None:
            searched.append(await found(storage, "word4"))

        nursery.start_soon(search)
        await trio.testing.wait_all_tasks_blocked()
        assert searched == [], "it waits for what was acknowledged before it began"
        gate.opened.set()
        while not searched:
            await trio.lowlevel.checkpoint()
        assert searched == [[("s", 4)]]


async def test_a_write_of_both_files_is_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as storage, trio.open_nursery() as nursery:
        session = await publish(storage, "s")
        gate, done = Gate(), list[str]()
        nursery.start_soon(storage.write, gate)
        await gate.reached()

        async def append() -> None:
            await session.append("alpha")
            done.append("append")

        nursery.start_soon(append)
        nursery.start_soon(storage.write_index, lambda _: done.append("index"))
        await trio.testing.wait_all_tasks_blocked()
        assert done == []
        gate.opened.set()
        while len(done) < 2:
            await trio.lowlevel.checkpoint()


async def test_a_signal_that_aborts_before_its_turn_writes_nothing(tmp_path: Path) -> None:
    class Reason(Exception):
        pass

    signal = Signal()
    async with opened(tmp_path) as storage, trio.open_nursery() as nursery:
        gate = Gate()
        nursery.start_soon(storage.write, gate)
        await gate.reached()

        async def write() -> None:
            with pytest.raises(Reason):
                await storage.write(lambda _: pytest.fail("it was done"), signal)

        nursery.start_soon(write)
        await trio.testing.wait_all_tasks_blocked()
        signal.abort(Reason())
        gate.opened.set()


async def test_a_cancelled_append_is_stored_or_not_but_never_half(tmp_path: Path) -> None:
    async with opened(tmp_path) as storage:
        session = await publish(storage, "s")
        gate = Gate()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(storage.write, gate)
            await gate.reached()
            with trio.CancelScope() as scope:
                scope.cancel()
                nursery.start_soon(gate_opens_later, gate)
                await session.append("alpha")
                assert storage.statistics()["appended_unindexed"] == 1, "stored, and known to be stored"
                await trio.lowlevel.checkpoint()
            assert scope.cancelled_caught
        assert await found(storage, "alpha") == [("s", 0)]


async def gate_opens_later(gate: Gate) -> None:
    await trio.testing.wait_all_tasks_blocked()
    gate.opened.set()


async def test_memory_is_bounded_when_the_index_cannot_keep_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_side, "NEWS_MAX", 10)
    async with opened(tmp_path) as storage, trio.open_nursery() as nursery:
        session = await publish(storage, "s")
        gate = Gate()
        nursery.start_soon(storage.write_index, gate)
        await gate.reached()

        async def append_many() -> None:
            for number in range(50):
                await session.append(f"word{number}")

        nursery.start_soon(append_many)
        await trio.testing.wait_all_tasks_blocked(0.05)
        while statistic(storage, "appended_unindexed") <= 10:
            await trio.testing.wait_all_tasks_blocked(0.01)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert statistic(storage, "appended_unindexed") == 11
        gate.opened.set()
        while session.length < 50:
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert await found(storage, "word10") == [("s", 10)]


@pytest.mark.parametrize(("searched", "turns"), [(False, [16, 16, 8]), (True, [16, 24])])
async def test_what_gathered_behind_a_long_step_goes_in_bit_by_bit_but_all_of_it_for_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, searched: bool, turns: list[int]
) -> None:
    taken, take = list[int](), Store.take_news

    def noted(store: Store, news: Sequence[News]) -> None:
        taken.append(len(news))
        take(store, news)

    monkeypatch.setattr(Store, "take_news", noted)
    async with opened(tmp_path) as storage, trio.open_nursery() as nursery:
        session = await publish(storage, "s")
        gate = Gate()
        nursery.start_soon(storage.write_index, gate)
        await gate.reached()
        for number in range(40):
            await session.append(f"word{number}")
        if searched:
            nursery.start_soon(found, storage, "word")  # it waits behind the upkeep
        await trio.testing.wait_all_tasks_blocked(0.01)
        gate.opened.set()
        while statistic(storage, "appended_unindexed"):
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert await found(storage, "word39") == [("s", 39)]
    assert taken == turns


async def test_an_index_that_fails_is_caught_up_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(index_side, "MEND_EVERY_S", 0.02)
    broken = True
    from session_query.storage.index.writer import Writer

    grow = Writer.grow

    def failing(self: Writer, sid: int, state: SessionState) -> None:
        if broken:
            raise sqlite.OperationalError("database or disk is full")
        grow(self, sid, state)

    monkeypatch.setattr(Writer, "grow", failing)
    monkeypatch.setattr(Store, "catch_up", catching_up_unless(lambda: broken))
    async with opened(tmp_path) as storage:
        session = await publish(storage, "s")
        await session.append("alpha")
        assert await found(storage, "alpha") == []
        assert storage.is_behind()
        await session.append("beta")
        await trio.sleep(0.1)
        broken = False
        while storage.is_behind():
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert await found(storage, "alpha") == [("s", 0)]
        assert await found(storage, "beta") == [("s", 1)]
        await session.append("gamma")
        assert await found(storage, "gamma") == [("s", 2)]
    assert any("did not take" in record.message for record in caplog.records)


def catching_up_unless(broken: object) -> object:
    catch_up = Store.catch_up

    def attempt(self: Store, key: SessionKey | None = None) -> int:
        if broken():  # type: ignore[operator]  # a callable
            raise sqlite.OperationalError("database or disk is full")
        return catch_up(self, key)

    return attempt


async def test_closing_takes_in_what_waits_so_that_the_next_start_has_nothing_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as storage:
        session = await publish(storage, "s")
        await session.append("alpha")
    monkeypatch.setattr(
        "session_query.storage.store.catch_up_all", lambda *_: pytest.fail("the index was not in step")
    )
    async with opened(tmp_path) as storage:
        assert await found(storage, "alpha") == [("s", 0)]


async def test_everything_works_in_memory() -> None:
    async with opened(None) as storage:
        session = await publish(storage, "s")
        for number in range(30):
            await session.append(f"word{number}")
        assert await found(storage, "word29") == [("s", 29)]


@pytest.mark.slow
@pytest.mark.parametrize("kept_short", [True, False])
async def test_searches_that_always_overlap_do_not_let_the_write_ahead_log_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_short: bool
) -> None:
    """Without the upkeep (the control) the log only grows: there is always a reader in it."""
    bound = 200_000
    monkeypatch.setattr(index_side, "LOG_MAX_BYTES", bound if kept_short else 1 << 60)
    monkeypatch.setattr(index_side, "LOG_LOOK_EVERY", 1)
    log = tmp_path / "index.db-wal"

    def slow(index: IndexReader) -> int:
        generation = index.generation()  # the snapshot begins here
        time.sleep(0.02)
        return generation

    async with opened(tmp_path) as storage, trio.open_nursery() as nursery:
        session = await publish(storage, "s")
        connection = await storage.write(lambda store: store.connection)
        await storage.write(lambda _: connection.execute("PRAGMA wal_autocheckpoint=50").fetchall())

        async def search_for_ever(pause_s: float) -> None:
            await trio.sleep(pause_s)
            while True:
                await storage.search(slow)

        nursery.start_soon(search_for_ever, 0.0)
        nursery.start_soon(search_for_ever, 0.01)
        while log.stat().st_size <= bound:
            await session.append(f"word{session.length} " * 200)
            await storage.take_in()
        for _ in range(30):
            await storage.write_index(lambda _: None)
            await trio.sleep(0.01)
        if kept_short:
            while log.stat().st_size > bound:
                await storage.write_index(lambda _: None)
                await trio.testing.wait_all_tasks_blocked(0.01)
        else:
            assert log.stat().st_size > bound
        nursery.cancel_scope.cancel()
