"""A query in a thread: its answer, its failure, and a cancelled caller."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from session_query.storage import sqlite
from session_query.storage.run_query import run_query

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[sqlite.Connection]:
    path = tmp_path / "a.db"
    path.touch()
    writer = sqlite.connect_writer(path)
    writer.execute("CREATE TABLE t(a)")
    writer.execute("INSERT INTO t VALUES (7)")
    connection = sqlite.connect_reader(path)
    yield connection
    connection.close()
    writer.close()


def seven(connection: sqlite.Connection) -> int:
    (row,) = connection.execute("SELECT a FROM t").fetchall()
    return int(row[0])


async def test_answer(reader: sqlite.Connection) -> None:
    assert await run_query(reader, seven) == 7


async def test_failure_is_the_querys_own_and_not_a_group(reader: sqlite.Connection) -> None:
    def fail(connection: sqlite.Connection) -> None:
        connection.execute("BEGIN")
        seven(connection)
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await run_query(reader, fail)
    assert not reader.in_transaction
    assert await run_query(reader, seven) == 7


async def test_cancel_before_the_thread_starts_runs_nothing(reader: sqlite.Connection) -> None:
    calls: list[int] = []
    limiter = trio.CapacityLimiter(1)
    with trio.CancelScope() as scope:
        scope.cancel()
        await run_query(reader, lambda connection: calls.append(seven(connection)), limiter=limiter)
    assert scope.cancelled_caught
    assert calls == []


@pytest.mark.parametrize("statements", [1, 30])
async def test_cancel_stops_an_endless_query_and_leaves_the_connection(
    reader: sqlite.Connection, statements: int
) -> None:
    started = threading.Event()
    left = threading.Event()

    def endless(connection: sqlite.Connection) -> None:
        connection.execute("BEGIN")
        try:
            for _ in range(statements):  # each interrupt ends one statement: it has to be repeated
                started.set()
                try:
                    connection.execute(ENDLESS).fetchall()
                except sqlite.OperationalError:
                    if statements == 1:
                        raise
        finally:
            left.set()

    scope = trio.CancelScope()

    async def cancel_when_started() -> None:
        await trio.to_thread.run_sync(started.wait)
        scope.cancel()

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_when_started)
            with scope:
                await run_query(reader, endless)
    assert scope.cancelled_caught
    assert left.is_set(), "the thread is quiet before the caller goes on"
    assert not reader.in_transaction
    assert await run_query(reader, seven) == 7


async def test_a_cancel_that_comes_too_late_still_cancels(reader: sqlite.Connection) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def slow_python(_: sqlite.Connection) -> int:
        entered.set()
        go_on.wait()
        return 1  # no statement left to interrupt

    scope = trio.CancelScope()

    async def cancel() -> None:
        await trio.to_thread.run_sync(entered.wait)
        scope.cancel()
        go_on.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(cancel)
        with scope:
            await run_query(reader, slow_python)
    assert scope.cancelled_caught
