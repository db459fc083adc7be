"""SPEC 6.11-6.13, 4.9: when the index is opened, what file is accepted, which settings are sound."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest
import trio

from session_query import Code, QueryError, ServiceConfig
from session_query.storage.store import INDEX_SCHEMA
from support.doors import World, open_world
from support.sessions import prompts

INDEX_FAILED, DISABLED = Code.INDEX_FAILED.value, Code.SEARCH_DISABLED.value
OURS, CURRENT = INDEX_SCHEMA.application_id, INDEX_SCHEMA.version


def snapshot(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir()) if path.is_file()}


async def fox(world: World) -> Any:
    return await world.door.query("search_sessions", {"query": "fox"})


# -- 6.11 ----------------------------------------------------------------------------------------------


async def test_6_11_startup_opens_before_the_service_is_visible(tmp_path: Path) -> None:
    async with open_world(ServiceConfig(data_dir=tmp_path / "d"), wire=False) as world:
        assert world.service.is_open
        assert (tmp_path / "d" / "index.db").exists()


async def test_6_11_first_search_creates_nothing_before_the_first_search(tmp_path: Path) -> None:
    config = ServiceConfig(data_dir=tmp_path / "d", open_at="first-search")
    assert config.data_dir is not None
    async with open_world(config, wire=False) as world:
        world.mounted("x")
        assert not config.data_dir.exists()
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(fox, world)
        assert (await world.door.query("search_sessions", {"query": "stored"})).ids() == ["x"]
    before = snapshot(config.data_dir)
    async with open_world(config, wire=False):
        pass  # disposed before any search
    assert snapshot(config.data_dir) == before


async def test_14_L24_a_failed_first_opening_is_tried_again(tmp_path: Path) -> None:
    foreign(tmp_path / "index.db", 7, True, 1)
    config = ServiceConfig(data_dir=tmp_path, open_at="first-search")
    async with open_world(config, wire=False) as world:
        for _ in range(2):
            assert (await fox(world)).code == INDEX_FAILED
        (tmp_path / "index.db").unlink()
        assert (await fox(world)).ids() == []


async def test_6_11_never_disables_searches_before_they_are_validated(tmp_path: Path) -> None:
    config = ServiceConfig(data_dir=tmp_path, open_at="never")
    async with open_world(config) as world:
        await world.publish("x", prompts("fox"))
        provider = world.mounted("p")
        for door in world.doors.values():
            assert (await door.query("search_sessions", {"query": "", "limit": -1})).code == DISABLED
            assert (await door.query("search_events", {"session_id": 5, "query": None})).code == DISABLED
            assert (await door.call("session_search", {"query": "fox"})).code == DISABLED
            assert (
                await door.call("session_event_search", {"query": "fox", "session_id": "x"})
            ).code == DISABLED
            assert (await door.query("list_sessions")).ids() == ["p", "x"]
            assert (await door.call("session_event_read", {"session_id": "x", "seq": 0})).code is None
            assert (await door.call("session_trace", {"session_id": "x"})).code is None
            assert (await door.query("filter_events", {"session_id": "x", "filters": []})).code is None
        assert provider.count("list_snapshots") == 0
        assert not (tmp_path / "index.db").exists()


# -- 6.12 ----------------------------------------------------------------------------------------------


def foreign(path: Path, application_id: int, tables: bool, version: int, mode: str = "delete") -> None:
    """A database that is somebody's."""
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    if tables:
        connection.execute("CREATE TABLE sqliteX(precious)")
        connection.execute("INSERT INTO sqliteX VALUES ('data')")
    connection.execute(f"PRAGMA application_id = {application_id}")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()
    connection.close()


REFUSED = {
    "foreign id, tables": (123, True, CURRENT),
    "foreign id, no tables": (123, False, 0),
    "no id, tables": (0, True, 0),
    "no id, tables, our version": (0, True, CURRENT),
    "our id, unknown table": (OURS, True, CURRENT),
    "our id, unknown table, other version": (OURS, True, 1),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("mode", ["delete", "wal"])
async def test_6_12_2_a_foreign_file_is_refused_untouched(tmp_path: Path, case: str, mode: str) -> None:
    foreign(tmp_path / "index.db", *REFUSED[case], mode)
    before = snapshot(tmp_path)
    with pytest.raises(QueryError) as caught:
        async with open_world(ServiceConfig(data_dir=tmp_path), wire=False):
            pytest.fail("the service became visible")
    assert caught.value.code is Code.INDEX_FAILED
    assert {name: data for name, data in snapshot(tmp_path).items() if name in before} == before


async def test_6_12_2_an_empty_file_is_initialised(tmp_path: Path) -> None:
    foreign(tmp_path / "index.db", 0, False, 0)
    async with open_world(ServiceConfig(data_dir=tmp_path), wire=False) as world:
        await world.publish("x", prompts("fox"))
        assert (await fox(world)).ids() == ["x"]


async def test_6_12_2_ours_is_used_and_another_version_rebuilt(tmp_path: Path) -> None:
    config = ServiceConfig(data_dir=tmp_path)
    async with open_world(config, wire=False) as world:
        await world.publish("x", prompts("fox"))
    async with open_world(config, wire=False) as world:
        assert (await fox(world)).ids() == ["x"]
    connection = sqlite3.connect(tmp_path / "index.db")
    connection.execute(f"PRAGMA user_version = {CURRENT ^ 1}")
    connection.commit()
    connection.close()
    async with open_world(config, wire=False) as world:
        assert (await fox(world)).ids() == ["x"]  # from the journal, which is canonical


async def test_6_12_4_the_journal_given_as_index_is_saved_by_the_guard(tmp_path: Path) -> None:
    async with open_world(ServiceConfig(data_dir=tmp_path / "a"), wire=False) as world:
        await world.publish("x", prompts("fox"))
    before = snapshot(tmp_path / "a")
    config = ServiceConfig(data_dir=tmp_path / "b", path=str(tmp_path / "a" / "journal.db"))
    with pytest.raises(QueryError) as caught:
        async with open_world(config, wire=False):
            pytest.fail("the service became visible")
    assert caught.value.code is Code.INDEX_FAILED
    assert {name: data for name, data in snapshot(tmp_path / "a").items() if name in before} == before


async def test_6_12_1_private_files_in_private_directories(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        config = ServiceConfig(data_dir=tmp_path / "a" / "b", path=str(tmp_path / "c" / "d" / "words.db"))
        async with open_world(config, wire=False) as world:
            await world.publish("x", prompts("fox"))
            for name in ("a", "a/b", "c", "c/d"):
                assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o700
            for path in [*(tmp_path / "a/b").glob("*.db*"), *(tmp_path / "c/d").glob("words.db*")]:
                assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    finally:
        os.umask(before)


async def test_6_12_1_memory_and_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_world(ServiceConfig(data_dir=tmp_path / "d", path=":memory:"), wire=False) as world:
        await world.publish("x", prompts("fox"))
        assert (await fox(world)).ids() == ["x"]
        assert not (tmp_path / "d" / "index.db").exists()
    async with open_world(ServiceConfig(data_dir=tmp_path / "d", path="words.db"), wire=False) as world:
        assert (await fox(world)).ids() == ["x"]
        assert (tmp_path / "words.db").exists()


@pytest.mark.parametrize("mode", ["wal", "delete", "truncate", "persist"])
async def test_6_12_5_journal_modes(tmp_path: Path, mode: Any) -> None:
    config = ServiceConfig(data_dir=tmp_path, journal_mode=mode)
    async with open_world(config, wire=False) as world:
        await world.publish("x", prompts("fox"))
        assert (await fox(world)).ids() == ["x"]
    async with open_world(config, wire=False) as world:
        assert (await fox(world)).ids() == ["x"]


async def test_6_12_6_one_engine_owns_an_index(tmp_path: Path) -> None:
    first = ServiceConfig(data_dir=tmp_path / "a", path=str(tmp_path / "words.db"))
    async with open_world(first, wire=False):
        for other in (first, ServiceConfig(data_dir=tmp_path / "b", path=str(tmp_path / "words.db"))):
            with pytest.raises(QueryError) as caught:
                async with open_world(other, wire=False):
                    pytest.fail("two owners")
            assert caught.value.code is Code.INDEX_FAILED
            assert "own" in str(caught.value) or "use" in str(caught.value)
    async with open_world(first, wire=False) as world:
        assert (await fox(world)).ids() == []


# -- 6.13 ----------------------------------------------------------------------------------------------

BAD_SETTINGS: list[dict[str, Any]] = [
    {"path": ""},
    {"path": "  "},
    {"path": 5},
    {"open_at": "later"},
    {"open_at": None},
    {"journal_mode": "memory"},
    {"default_limit": 0},
    {"default_limit": True},
    {"default_limit": 2.0},
    {"default_limit": 101},
    {"max_limit": 19},
    {"max_limit": 2**53 - 1},
    {"max_limit": 0},
    {"snippet_chars": 0},
    {"snippet_chars": "240"},
    {"search_concurrency": 0},
    {"read_window_max": -1},
    {"persisted_inspect_concurrency": 0},
    {"max_search_results": 0},
    {"max_search_results": 2**53},
    {"search_timeout_ms": 0},
    {"search_timeout_ms": 2**31},
    {"max_inline_bytes": -1},
    {"max_inline_bytes": 1.5},
]


@pytest.mark.parametrize("bad", BAD_SETTINGS, ids=str)
def test_6_13_a_bad_setting_is_refused_by_the_constructor(bad: dict[str, Any]) -> None:
    with pytest.raises(QueryError) as caught:
        ServiceConfig(**bad)
    assert caught.value.code is Code.INVALID_CONFIG


def test_6_13_the_borders_are_legal() -> None:
    largest = 2**53 - 2
    assert ServiceConfig(default_limit=1, max_limit=1).max_limit == 1
    assert ServiceConfig(default_limit=largest, max_limit=largest).default_limit == largest
    assert ServiceConfig(snippet_chars=1, search_timeout_ms=1, max_inline_bytes=0).snippet_chars == 1
    assert ServiceConfig(search_timeout_ms=2**31 - 1, max_search_results=2**53 - 1).data_dir is None
    defaults = ServiceConfig()
    assert (defaults.default_limit, defaults.max_limit, defaults.snippet_chars) == (20, 100, 240)
    assert (defaults.max_search_results, defaults.search_timeout_ms) == (100, 30_000)
    assert (defaults.read_window_max, defaults.persisted_inspect_concurrency) == (50, 4)
