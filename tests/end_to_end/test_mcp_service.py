"""Hosts share one service: started once however many begin at once, found again, ended when idle."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from session_query.actors.hosts.mcp import launching
from session_query.actors.hosts.mcp.launching import LOG_NAME, ServiceStarter, ServiceUnavailable
from session_query.actors.hosts.mcp.link import ServiceLink
from session_query.protocol.json_value import JSON
from session_query.storage.guard import create_private_directory
from session_query.storage.lock import LOCK_NAME, acquire
from support.mcp_process import data_dirs, end_service, holder, wait_until_free

pytestmark = pytest.mark.slow
STRAGGLER_S = 2.0
"""One that begins after the lock has become free again would live on; it ends itself."""


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("SESSION_QUERY_SOURCES", "")
    with data_dirs(tmp_path / "data") as (place,):
        yield place


@asynccontextmanager
async def linked(data_dir: Path, **more: Any) -> AsyncIterator[ServiceLink]:
    async with trio.open_nursery() as nursery:
        link = ServiceLink(ServiceStarter(data_dir, **{"idle_exit_s": STRAGGLER_S, **more}))
        await nursery.start(link.run)
        yield link
        nursery.cancel_scope.cancel()


async def health(link: ServiceLink) -> JSON:
    return await link.ask(lambda client: client.query("health"))


async def test_many_hosts_that_start_at_once_share_one_service(data_dir: Path) -> None:
    starters = [ServiceStarter(data_dir, STRAGGLER_S) for _ in range(4)]
    urls: list[str] = []

    async def find(starter: ServiceStarter) -> None:
        urls.append(await starter.find_or_start(trio.current_time() + 30))

    async with trio.open_nursery() as nursery:
        for starter in starters:
            nursery.start_soon(find, starter)
    assert len(urls) == 4
    assert len(set(urls)) == 1
    alive = holder(data_dir)
    assert alive is not None
    assert alive.url == urls[0]
    log = (data_dir / LOG_NAME).read_text()
    assert "Traceback" not in log, "the others were turned away by the lock, in one line each"
    assert {line for line in log.splitlines() if "in use by" not in line and "WARNING" in line} == set()


async def test_a_service_that_was_killed_is_started_again_and_the_question_repeated(data_dir: Path) -> None:
    async with linked(data_dir) as link:
        assert await health(link) == pytest.approx({"ready": True, "uptime_s": 0}, abs=30)
        first = holder(data_dir)
        end_service(data_dir, signal.SIGKILL)
        assert await link.ask(lambda client: client.query("statistics"))
        second = holder(data_dir)
    assert first is not None
    assert second is not None
    assert second.pid != first.pid
    assert "in use by" not in (data_dir / LOG_NAME).read_text(), "one was started, not several"


async def test_a_service_that_stops_under_a_question_answers_from_the_next_one(data_dir: Path) -> None:
    async with linked(data_dir) as link:
        await health(link)
        first = holder(data_dir)
        assert first is not None
        asked = 0

        async def work(client: Any) -> JSON:
            nonlocal asked
            asked += 1
            if asked == 1:
                os.kill(first.pid, signal.SIGTERM)
                while True:  # until the service says that it is stopping
                    await client.query("health")
            return True

        assert await link.ask(work) is True
    assert asked == 2


async def test_a_service_without_connections_ends_itself_and_the_next_host_starts_another(
    data_dir: Path,
) -> None:
    async with linked(data_dir, idle_exit_s=0.2) as link:
        await health(link)
        first = holder(data_dir)
        await trio.sleep(0.6)
        assert holder(data_dir) == first, "it stays as long as somebody is connected"
    await trio.to_thread.run_sync(wait_until_free, data_dir)
    async with linked(data_dir) as link:
        await health(link)


async def test_a_directory_in_use_without_a_service_is_told(data_dir: Path) -> None:
    lock = acquire(data_dir / LOCK_NAME)
    try:
        with pytest.raises(ServiceUnavailable, match=f"in use by process {os.getpid()}"):
            await ServiceStarter(data_dir).find_or_start(trio.current_time())
    finally:
        lock.release()


async def test_a_service_that_cannot_start_is_told_with_its_log(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_private_directory(data_dir)
    (data_dir / "index.db").write_bytes(b"somebody else's file, and long enough to be looked at" * 100)
    starter = ServiceStarter(data_dir)
    monkeypatch.setattr(launching, "STARTS_MAX", 1)
    with pytest.raises(ServiceUnavailable, match=LOG_NAME):
        await starter.find_or_start(trio.current_time() + 30)
    assert "SESSION_QUERY_INDEX_FAILED" in (data_dir / LOG_NAME).read_text()
    assert (data_dir / LOG_NAME).stat().st_mode & 0o777 == 0o600


def test_a_log_that_has_grown_is_set_aside(data_dir: Path) -> None:
    data_dir.mkdir()
    (data_dir / LOG_NAME).write_text("x" * (launching.LOG_BYTES_MAX + 1))
    os.close(launching._open_log(data_dir / LOG_NAME))
    assert (data_dir / LOG_NAME).read_text() == ""
    assert (data_dir / f"{LOG_NAME}.old").stat().st_size > launching.LOG_BYTES_MAX
