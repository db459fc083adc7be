"""A full disk costs the writes it prevents: what is acknowledged is found, and searches go on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

from session_query import Caller, ServiceConfig, open_service
from session_query.actors.service import Service
from session_query.protocol.errors import Code, QueryError
from session_query.protocol.json_value import JSON
from session_query.storage import sqlite
from session_query.storage.index.writer import Writer
from session_query.storage.journal import Batch, Journal, JournalRefusal
from session_query.storage.store import Store

CALLER = Caller(kind="workspace", workspaces=("/w",))
HEADER: dict[str, JSON] = {"version": 0, "id": "s", "createdAt": 1, "cwd": "/w"}


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with open_service(ServiceConfig(data_dir=tmp_path)) as opened:
        yield opened


def said(word: str) -> dict[str, JSON]:
    return {
        "type": "user/message",
        "time": 1,
        "surfaceOp": "append",
        "data": {
            "id": word,
            "role": "user",
            "source": {"kind": "user"},
            "content": [{"type": "text", "text": word}],
        },
    }


async def found(service: Service, word: str) -> str:
    return (await service.call_tool("session_search", {"query": word, "match": "exact"}, CALLER)).text


def full(*_: object) -> bool:
    raise sqlite.OperationalError("database or disk is full")


def commits_and_fails(self: Journal, batches: Sequence[Batch]) -> list[int | JournalRefusal]:
    """As when the disk takes the events and then fails: whoever asked cannot know."""
    commit(self, batches)
    raise sqlite.OperationalError("disk I/O error")


commit = Journal.commit


async def test_an_append_that_is_repeated_after_a_full_disk_is_found(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = await service.attach(HEADER)
    await live.append([said("alpha")])
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "commit", commits_and_fails)
        with pytest.raises(QueryError) as failed:
            await live.append([said("beta")])
    assert failed.value.code is Code.PERSISTENCE_FAILED
    await live.append([said("beta")])
    await live.append([said("gamma")])
    for word in ("alpha", "beta", "gamma"):
        assert (await found(service, word)).startswith("1 session found"), word


async def test_searches_go_on_while_the_index_cannot_catch_up(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = await service.attach(HEADER)
    await live.append([said("alpha")])
    assert (await found(service, "alpha")).startswith("1 session found")
    with monkeypatch.context() as patched:
        patched.setattr(Writer, "grow", full)
        patched.setattr(Store, "catch_up", full)
        await live.append([said("beta")])  # the journal has it
        text = await found(service, "alpha")
        assert text.startswith("1 session found")
        assert "checked 0 s ago" in text
    assert ", current." in await found(service, "beta")


async def test_a_merge_that_fails_does_not_end_the_service(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = trio.Event()
    token = trio.lowlevel.current_trio_token()

    def merge(*_: object, **__: object) -> bool:
        token.run_sync_soon(tried.set)
        return full()

    monkeypatch.setattr(Writer, "merge_step", merge)
    live = await service.attach(HEADER)
    await live.append([said("alpha")])
    with trio.fail_after(30):
        await tried.wait()
    await trio.testing.wait_all_tasks_blocked()
    assert (await found(service, "alpha")).startswith("1 session found")
